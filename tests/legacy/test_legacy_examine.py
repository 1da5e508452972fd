"""What the examination finds in a recorded launcher, and what it lets pass."""

import shlex
from pathlib import Path

import pytest

from renderer.legacy.examine import CODES, examine
from renderer.legacy.record import Options, _once
from renderer.schema import load

TRAINER = "python3 -m maxtext.trainers.pre_train.train base.yml model_name=llama3.1-70b"


def findings(folder: Path, lines: str, command: str = TRAINER, option: str = "") -> list[str]:
    options = f"--workload=w --device-type=tpu7x-4x4x4 --num-slices=1 {option} --command={shlex.quote(command)}"
    text = f"xpk workload create {options}"
    path = folder / "launch.sh"
    path.write_text(f"#!/usr/bin/env bash\n{lines}\n{text}\n", encoding="utf-8")
    return [str(problem) for problem in examine(_once(path, Options(folder)), load("0.2.5"))]


@pytest.mark.parametrize(
    ("lines", "command", "option", "found"),
    [
        ("", TRAINER, "", []),
        (
            "",
            f"""export NCCL='{{"a": 1 "b": 2}}'; {TRAINER}""",
            "",
            ['launch.sh: env.NCCL: is not valid JSON: {"a": 1 "b": 2}'],
        ),
        ("", f"""export GOOD='{{"a": 1}}'; {TRAINER}""", "", []),
        (
            "",
            f"{TRAINER} ${{EVAL_ARGS[@]}}",
            "",
            ["the container's command:1:1: EVAL_ARGS is expanded, and nothing sets it"],
        ),
        ("echo $NO_SUCH", TRAINER, "", ["launch.sh:2:1: NO_SUCH is expanded, and nothing sets it"]),
        ("echo ${NO_SUCH:-x} '$QUOTED' # $COMMENT", TRAINER, "", []),
        (
            "KEY=",
            TRAINER,
            "--priority $KEY",
            ["launch.sh: xpk --priority: its value is empty, so it took " + f"--command={TRAINER} for it"],
        ),
        ("KEY=high", TRAINER, "--priority $KEY", []),
        ("HAS_NVLINK=1", TRAINER, "", ["launch.sh:2:1: HAS_NVLINK is set and never read"]),
        ("export NOBODY=1", TRAINER, "", ["launch.sh:2:1: NOBODY is set and never read"]),
        ("", f"export JAX_PLATFORMS=tpu; {TRAINER}", "", []),
        (
            "",
            f"{TRAINER} fsdp_shard_on_exp=true",
            "",
            ["launch.sh: fsdp_shard_on_exp: MaxText 0.2.5 has no such key\n    renamed to shard_exp_on_fsdp"],
        ),
        ("", f"{TRAINER} steps=1 steps=2", "", ["launch.sh: steps: is passed twice: 1 has no effect, 2 has"]),
        ("", f"{TRAINER} run_name=", "", ["launch.sh: run_name: has no value: MaxText reads null"]),
        ("", f"{TRAINER} base_output_directory=/home/alice/out", "", ["/home/alice/out"]),
        (
            "echo $RANDOM",
            TRAINER,
            "",
            ["launch.sh:2:1: $RANDOM differs at each run: use date, or a name that does not change"],
        ),
        ("printf '%(%s)T'", TRAINER, "", []),
    ],
)
def test_findings(tmp_path: Path, lines: str, command: str, option: str, found: list[str]) -> None:
    got = findings(tmp_path, lines, command, option)
    if found == ["/home/alice/out"]:
        assert [text.partition("\n")[0] for text in got] == [
            "launch.sh: holds the path /home/alice/out, which others do not have"
        ] * 2
    else:
        assert got == found


def test_every_code_is_explained() -> None:
    assert all(CODES.values())


def test_a_credential_is_never_accepted_and_never_shown(tmp_path: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5" * 4
    found = findings(tmp_path, "", f"export GITHUB_TOKEN={token}; {TRAINER}")
    assert found
    assert all("looks like a secret (GitHub Token, " in text for text in found)
    assert not any(token in text for text in found)
    assert "secret" not in CODES
