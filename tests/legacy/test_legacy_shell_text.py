import time

import pytest

from renderer.legacy.shell_text import bare_text, bash_only, clock, read

TEXT = """#!/bin/bash
# $COMMENT
STEPS=${STEPS:-20}
export IMAGE="$REPO:${TAG}" B=2
local x y=3
ARGS=(--wandb-key $KEY 'no $SINGLE'
  steps=20
  "foo=${BAR}" )
cmd "${ARGS[@]}" "${EVAL_ARGS[@]}" \\
  key=$V \\
  other=3 "export INSIDE=1"
A=1 C=$(foo d=1) run e=3
cat <<'EOF'
$NOT
EOF
cat <<EOF
$YES
EOF
for i in a b; do echo $i; done
read -r -p "x y" answer
if [ -n "$Q" ]; then W=3; fi
echo "it's $Z" $((N+1)) ${#LENGTH} ${!POINTER}
"""


def test_what_is_set_and_expanded() -> None:
    script = read("x.sh", TEXT)
    sets = {(use.name, use.line) for use in script.sets}
    assert sets == {
        *(("STEPS", 3), ("IMAGE", 4), ("B", 4), ("x", 5), ("y", 5), ("ARGS", 6)),
        *(("A", 12), ("C", 12), ("i", 19), ("answer", 20), ("W", 21)),
    }
    expands = [(use.name, use.line, use.guarded) for use in script.expands]
    assert expands == [
        *(("STEPS", 3, True), ("REPO", 4, False), ("TAG", 4, False), ("KEY", 6, False), ("BAR", 8, False)),
        *(("ARGS", 9, False), ("EVAL_ARGS", 9, False), ("V", 10, False), ("YES", 17, False), ("i", 19, False)),
        *(("Q", 21, False), ("Z", 22, False), ("LENGTH", 22, True), ("POINTER", 22, False), ("N", 22, True)),
    ]
    assert script.exports == {"IMAGE", "B"}
    assert script.valued_flags == {"--wandb-key"}


def test_lines_stay_where_they_are() -> None:
    assert bare_text(TEXT).count("\n") == TEXT.count("\n")


def test_bash_only() -> None:
    assert bash_only("#!/bin/sh\nif [ -n \"$X\" ]; then echo '[[ ]]'; fi\n") is None
    assert bash_only("#!/bin/sh\n\nif [[ -n $X ]]; then :; fi\n") == (3, "[[ ]]")
    assert bash_only("#!/bin/sh\necho ${A[@]}\n") == (2, "an array")


def test_clocks() -> None:
    assert clock("echo $(date)\necho $$\n") == (2, "$$")
    assert clock("echo '$RANDOM'\n") is None


@pytest.mark.parametrize("part", ["a", "A_", "((", "$((", "${a[", "%(", "\n", "\n ", "-export ", "x"])
@pytest.mark.parametrize("head", ["", "cat <<'EOF'\n", "declare -", "export "])
def test_a_script_takes_time_in_proportion_to_its_length(head: str, part: str) -> None:
    text = f"{head}{part * (100_000 // len(part))}!"
    started = time.process_time()
    read("x.sh", text)
    bash_only(text)
    clock(text)
    assert time.process_time() - started < 2


def test_an_option_is_no_word_of_the_shell() -> None:
    script = read("x.sh", "kubectl set image --local -f pod.yaml\nmake -export A\n")
    assert (script.sets, script.exports) == ((), frozenset())


def test_arithmetic_that_nothing_closes_holds_no_names() -> None:
    assert [use.name for use in read("x.sh", "echo $((A + B))\necho $((C").expands] == ["A", "B"]
