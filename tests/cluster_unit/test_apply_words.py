"""How an apply is told: as text, as a comment, as data."""

from __future__ import annotations

import json

import pytest
from markdown_it import MarkdownIt

from renderer.cluster.apply import Result
from renderer.cluster.apply_words import data, markdown, text
from renderer.cluster.outcome import Outcome, Verdict
from renderer.plan import Action, Effect
from renderer.report.markdown import LIMIT, length
from renderer.runs import Committed

LAUNCHED = Outcome(
    Verdict.LAUNCHED,
    "m/run",
    "run-64c-11111111",
    "experiments/m/run.yml",
    "new experiment",
    "training",
    starts="starts at step 0",
    pull_request="12",
)
REFUSED = Outcome(
    Verdict.REFUSED,
    "m/other",
    "other-64c-22222222",
    "experiments/m/other.yml",
    "claim a does not exist in training",
    warnings=("secret b does not exist in training; the run starts without it",),
    remedies=("# Make it:\nkubectl apply -f claim.yml",),
)


def result(*outcomes: Outcome, **given: object) -> Result:
    return Result("test", "tpu-test", "1" * 40, "0" * 40, outcomes=outcomes, **given)  # type: ignore[arg-type]


def test_text_tells_each_run_and_how_to_go_on() -> None:
    index = "-l jobset.sigs.k8s.io/jobset-name=run-64c-11111111,batch.kubernetes.io/job-completion-index=0"
    assert list(text(result(REFUSED, LAUNCHED))) == [
        "test (tpu-test): 111111111111 after 000000000000: 1 launched, 1 refused.",
        "  launched  m/run    run-64c-11111111    new experiment; starts at step 0; pull request 12",
        "  refused   m/other  other-64c-22222222  claim a does not exist in training",
        "warning: secret b does not exist in training; the run starts without it",
        "",
        "# Make it:",
        "kubectl apply -f claim.yml",
        "once the cause is mended, apply this commit again: refused runs are tried again then",
        "",
        "run-64c-11111111 in namespace training",
        "  monitor:   kubectl get jobset run-64c-11111111 -n training --watch",
        "             kubectl get pods -n training -l jobset.sigs.k8s.io/jobset-name=run-64c-11111111",
        f"  tail:      kubectl logs -n training {index} -c trainer --tail=100 -f",
        f"  exec:      kubectl exec -it -n training $(kubectl get pods -n training {index} -o name) -c trainer -- bash",
        "  clean up:  merge `state: stopped` under launch: in experiments/m/run.yml",
        "             at once: renderer stop run-64c-11111111",
    ]


def test_many_launches_are_told_once_how_to_go_on() -> None:
    lines = list(text(result(*[LAUNCHED] * 12, REFUSED, REFUSED)))
    assert lines.count("run-64c-11111111 in namespace training") == 10
    assert lines[-1] == "The same commands serve 2 further runs."
    assert list(text(result(*[LAUNCHED] * 11)))[-1] == "The same commands serve 1 further run."
    assert "warning: secret b does not exist in training; the run starts without it (2 runs)" in lines
    assert lines.count("# Make it:") == 1


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"empty": True}, "nothing to do"),
        ({"notices": ("another apply moved the marker meanwhile",)}, "nothing was done."),
        ({"limits": ("would launch 9 runs, at most 8 are allowed",)}, "nothing was done: this would launch 9 runs"),
        ({"dry_run": True, "outcomes": (LAUNCHED,)}, "a dry run, nothing was changed; there would be 1 launched"),
    ],
)
def test_the_headline_says_what_was_done(given: dict[str, object], said: str) -> None:
    found = Result("test", "tpu-test", "1" * 40, "", **given)  # type: ignore[arg-type]
    assert next(iter(text(found))).startswith(f"test (tpu-test): 111111111111: {said}")


def test_a_dry_run_gives_no_commands_for_what_was_not_launched() -> None:
    assert not any("kubectl logs" in line for line in text(result(LAUNCHED, dry_run=True)))


def test_the_comment_tells_the_same() -> None:
    assert markdown(result(REFUSED, LAUNCHED)) == (
        "<!-- renderer apply test -->\n"
        "### Applied to `test`: 1 launched, 1 refused.\n"
        "\n**launched**\n\n"
        "- `m/run` `run-64c-11111111`: new experiment; starts at step 0; pull request 12\n"
        "\n**refused**\n\n"
        "- `m/other` `other-64c-22222222`: claim a does not exist in training\n"
        "\nwarning: secret b does not exist in training; the run starts without it\n"
        "\n**What mends it**\n\n"
        "    # Make it:\n"
        "    kubectl apply -f claim.yml\n"
        "\n`111111111111` after `000000000000` on `tpu-test`.\n"
    )


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            {"dry_run": True, "outcomes": (LAUNCHED,)},
            "Apply to `test`: a dry run, nothing was changed; there would be 1",
        ),
        ({"dry_run": True, "empty": True}, "Apply to `test`: nothing to do."),
        ({"limits": ("would launch 9 runs",)}, "Not applied to `test`: nothing was done: this would launch 9 runs."),
        ({"notices": ("another apply moved the marker",)}, "Not applied to `test`: nothing was done."),
        ({"empty": True}, "Applied to `test`: nothing to do."),
    ],
)
def test_the_comment_is_headed_by_what_was_done(given: dict[str, object], said: str) -> None:
    found = Result("test", "tpu-test", "1" * 40, "", **given)  # type: ignore[arg-type]
    assert markdown(found).splitlines()[1].startswith(f"### {said}")


LIMITS = "the limits stand under merge: in presets/policy.yml; raise them there in a reviewed change"


@pytest.mark.parametrize(
    ("marker", "other"),
    [
        ("", "or begin with --adopt: it records every run as launched and starts none; what is merged later starts"),
        ("0" * 40, "or, of several merges, apply an earlier one first; or revert a part, and merge it again later"),
    ],
)
def test_above_the_limits_is_told_what_helps(marker: str, other: str) -> None:
    found = Result("test", "tpu-test", "1" * 40, marker, limits=("would launch 9 runs, at most 8 are allowed",))
    assert list(text(found))[1:] == [LIMITS, other]
    plain = markdown(found).replace("`", "")
    assert f"\n{LIMITS}\n\n{other}\n" in plain


def test_what_is_left_out_of_the_comment_is_counted() -> None:
    said = markdown(result(LAUNCHED, notices=("a notice",) * 21))
    assert "\nand 1 more such notice in the log of the job\n" in said


HOSTILE = "`@team` <script>\n# [x](y) #12 ghp_" + "a" * 36


def test_no_value_in_the_comment_is_more_than_text() -> None:
    one = Outcome(Verdict.REFUSED, HOSTILE, HOSTILE, HOSTILE, HOSTILE, warnings=(HOSTILE,), remedies=(HOSTILE,))
    said = markdown(result(one, notices=(HOSTILE,)))
    assert "ghp_" not in said
    tokens = MarkdownIt("commonmark").parse(said)
    assert [token.content for token in tokens if token.type == "html_block"] == ["<!-- renderer apply test -->\n"]
    assert sum(token.type == "heading_open" for token in tokens) == 1
    inline = {child.type for token in tokens for child in token.children or ()}
    assert inline <= {"text", "code_inline", "strong_open", "strong_close"}
    plain = [child.content for token in tokens for child in token.children or () if child.type == "text"]
    assert not any(mark in text for text in plain for mark in ("@", "<", "[", "#"))


@pytest.mark.parametrize("text_", ["x" * 300, "é🙂`" * 100])
def test_the_comment_is_within_the_limit(text_: str) -> None:
    many = [Outcome(Verdict.REFUSED, f"m/{text_}", text_, text_, text_) for _ in range(2000)]
    said = markdown(result(*many))
    assert length(said) <= LIMIT
    assert "more lines, left out here." in said


def test_data_is_json_with_the_plan_and_what_became_of_it() -> None:
    state = Committed("m/run", "experiments/m/run.yml", "test", chips=64)
    actions = (
        Action(Effect.LAUNCH, "run-64c-11111111", "test", "new experiment", state, "starts at step 0"),
        Action(Effect.NOTHING, "other", "test", "its content did not change", state),
    )
    found = json.loads(json.dumps(data(result(LAUNCHED, REFUSED, actions=actions))))
    assert [item["effect"] for item in found["plan"]] == ["launch"]
    assert [(item["verdict"], item["run"]) for item in found["results"]] == [
        ("launched", "run-64c-11111111"),
        ("refused", "other-64c-22222222"),
    ]
    about = {key: found[key] for key in ("environment", "head", "marker", "dry_run", "empty", "complete", "good")}
    assert about == {
        "environment": "test",
        "head": "1" * 40,
        "marker": "0" * 40,
        "dry_run": False,
        "empty": False,
        "complete": True,
        "good": False,
    }
