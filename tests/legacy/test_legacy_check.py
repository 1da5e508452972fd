"""The shipped experiments equal their recordings, and what fails says what and where."""

import datetime
import json
import re
import shutil
import sys
import time
from pathlib import Path

import pytest
from content import run
from legacy_content import ROOT, TODAY, Shipped

from renderer.legacy.check import compare
from renderer.legacy.waivers import matches

RECIPES = ROOT / "tests/legacy/recipes"


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    for folder in ("presets", "datasets", "experiments"):
        shutil.copytree(ROOT / folder, tmp_path / folder)
    shutil.copytree(ROOT / "tests/legacy", tmp_path / "tests/legacy", ignore=shutil.ignore_patterns("*.py", "scripts"))
    return tmp_path


def edit(root: Path, file: str, old: str, new: str) -> None:
    path = root / file
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")


def test_every_pair_is_equal(shipped: Shipped) -> None:
    for pair in shipped.pairs.values():
        outcome = compare(pair, shipped.recorded(pair), shipped.ours(pair), TODAY)
        assert outcome.equal, (pair.experiment, outcome.differences, outcome.unused)


def test_thirteen_of_thirteen_recipes(shipped: Shipped) -> None:
    paired = {pair.recording.removeprefix("recipes/") for pair in shipped.pairs.values()}
    assert sorted({path.name for path in RECIPES.iterdir()} - paired) == ["wan2.1-14b--bf16-tpu7x-4x4x4.json"]
    assert len([name for name in paired if "/" not in name]) == 13


def test_the_layers_are_shorter_than_what_the_recipes_say(shipped: Shipped, capsys: pytest.CaptureFixture[str]) -> None:
    """The scripts are not here, only what they pass: at least a line there for each argument, flag and option."""
    recipes = [pair for pair in shipped.pairs.values() if pair.recording.startswith("recipes/")]
    said = sum(_entries(json.loads((ROOT / "tests/legacy" / pair.recording).read_bytes())) for pair in recipes)
    models = {shipped.ours(pair).configuration.launch.model for pair in recipes}
    layers = [ROOT / f"experiments/{pair.experiment}.yml" for pair in recipes]
    layers += [path for model in sorted(models) for path in sorted((ROOT / "presets" / model).rglob("*.yml"))]
    lines = sum(map(_content_lines, layers))
    with capsys.disabled():
        what = f"{said} arguments, flags, variables and options recorded; {lines} lines in {len(layers)} files"
        sys.stdout.write(f"\n13 recipes: {what}\n")
    assert lines < said


def _entries(recipe: dict[str, object]) -> int:
    parts = ("launcher_options", "environment", "maxtext_arguments", "libtpu_init_args", "pod_commands_before_training")
    return sum(len(recipe[part]) for part in parts)  # type: ignore[arg-type]


def _content_lines(path: Path) -> int:
    lines = path.read_text(encoding="utf-8").splitlines()
    return sum(bool(line.strip()) and not line.strip().startswith("#") for line in lines)


def test_a_difference_names_both_values_and_our_layer(copy: Path) -> None:
    edit(copy, "presets/llama3.1-70b/topology/64chips/8k.yml", "sa_block_q_dkv: 2048", "sa_block_q_dkv: 1024")
    code, out, err = run(copy, "legacy", "check", "llama3.1-70b/llama70b-8k-fp8-64")
    assert (code, err) == (1, "")
    assert out.splitlines() == [
        "llama3.1-70b/llama70b-8k-fp8-64: NOT EQUAL to recipes/llama3.1-70b--8k-fp8-tpu7x-4x4x4.json "
        "(65 values compared, 7 waived)",
        "    maxtext.sa_block_q_dkv: recorded 2048, ours 1024 "
        "(presets/llama3.1-70b/topology/64chips/8k.yml:24, topology)",
        "experiments equal to their recordings: 0 of 1",
    ]


def test_a_reconstruction_is_called_one() -> None:
    code, out, _ = run(ROOT, "legacy", "check", "ling3-flash/align-smoke-64")
    assert code == 0
    assert "a reconstruction: it proves the checker, not the equivalence" in out


def test_json_says_the_same(copy: Path) -> None:
    edit(copy, "presets/qwen3-235b-a22b/model.yml", "steps: 20", "steps: 21")
    code, out, err = run(
        copy, "legacy", "check", "--format", "json", "experiments/qwen3-235b-a22b/qwen3-235b-4k-bf16-256.yml"
    )
    found = json.loads(out)[0]
    assert (code, err) == (1, "experiments equal to their recordings: 0 of 1\n")
    assert found["differences"] == [
        {
            "path": "maxtext.steps",
            "recorded": "20",
            "ours": "21",
            "origin": "presets/qwen3-235b-a22b/model.yml:32, model",
        }
    ]
    assert {waived["kind"] for waived in found["waived"]} == {"launcher", "placeholder", "log-upload"}


def test_an_unused_waiver_fails(copy: Path) -> None:
    edit(copy, "tests/legacy/checks.yml", "paths: [job.debug_logs]", "paths: [job.debug_logs, job.priority]")
    code, out, _ = run(copy, "legacy", "check", "llama3.1-70b/llama70b-8k-bf16-64")
    assert code == 1
    assert re.search(
        r"waiver debug-logs \(tests/legacy/checks.yml:\d+:5\): job.priority waives nothing: delete it", out
    )


def test_a_waiver_whose_value_changed_no_longer_matches(copy: Path) -> None:
    edit(
        copy,
        "presets/llama3.1-70b/environment/test.yml",
        "gs://example-maxtext-test/llama3.1-70b",
        "gs://example-maxtext-test/x",
    )
    code, out, _ = run(copy, "legacy", "check", "llama3.1-70b/llama70b-8k-bf16-64")
    assert code == 1
    assert "maxtext.base_output_directory: recorded X_BASE_OUTPUT_DIR_X, ours gs://example-maxtext-test/x" in out
    assert "maxtext.base_output_directory waives nothing: delete it" in out


def test_an_expired_waiver_fails(shipped: Shipped) -> None:
    pair = shipped.pairs["llama3.1-70b/llama70b-8k-bf16-64"]
    last = datetime.date(2027, 12, 31)
    assert compare(pair, shipped.recorded(pair), shipped.ours(pair), last).equal
    outcome = compare(pair, shipped.recorded(pair), shipped.ours(pair), last + datetime.timedelta(days=1))
    assert not outcome.equal
    assert {waiver.name for waiver in outcome.expired} == {"image", "output", "job-name", "run-name", "debug-logs"}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("kind: launcher", "kind: lancher", "job-name.kind: unknown kind\n    known: launcher"),
        ('expires: "2027-12-31"', 'expires: "soon"', 'expires: must be a date such as "2027-12-31"'),
        ("paths: [job.name]", "paths: [maxtext.steps]", "job-name.paths: launcher waives job.name, job.run_name"),
        ("      reason: Whoever runs", "      because: Whoever runs", "because: unknown field"),
        ("use: [recipe]", "use: [recipes]", "no waivers recipes"),
        ("refused:", "refuses:", "refuses: unknown key"),
        ("    recording: recipes/", "    recordings: recipes/", "recordings: unknown key"),
    ],
)
def test_what_is_wrong_in_checks_yml_is_said(copy: Path, old: str, new: str, message: str) -> None:
    edit(copy, "tests/legacy/checks.yml", old, new)
    code, out, err = run(copy, "legacy", "check")
    assert (code, out) == (1, "")
    assert message in err


def test_a_recording_without_an_experiment_fails(copy: Path) -> None:
    shutil.copy(RECIPES / "gemma4-2b--8k-bf16-tpu7x-4x4x4.json", copy / "tests/legacy/recipes/another.json")
    code, _, err = run(copy, "legacy", "check")
    assert code == 1
    assert "tests/legacy/recipes/another.json: no experiment is compared with it" in err


def test_a_refusal_that_no_longer_holds_fails(copy: Path) -> None:
    edit(copy, "tests/legacy/checks.yml", "refused:\n", "refused:\n  recipes/another.json: not ours\n")
    shutil.copy(RECIPES / "gemma4-2b--8k-bf16-tpu7x-4x4x4.json", copy / "tests/legacy/recipes/another.json")
    code, _, err = run(copy, "legacy", "check")
    assert code == 1
    assert "refused.recipes/another.json: can be compared: pair it with an experiment" in err


def test_another_program_is_refused(copy: Path) -> None:
    edit(copy, "tests/legacy/checks.yml", "gemma4-2b--8k-bf16-tpu7x-4x4x4.json", "wan2.1-14b--bf16-tpu7x-4x4x4.json")
    code, _, err = run(copy, "legacy", "check", "gemma4-e2b/gemma4-e2b-8k-bf16-64")
    assert code == 1
    assert err == (
        "tests/legacy/recipes/wan2.1-14b--bf16-tpu7x-4x4x4.json: starts -m src.maxdiffusion.train_wan, "
        "which is not MaxText's pre-training\n"
        "    known: python3 -m MaxText.train or -m maxtext.trainers.pre_train.train\n"
    )


def test_an_unknown_pair_is_refused() -> None:
    code, _, err = run(ROOT, "legacy", "check", "qwen3-0.6b/smoke-64")
    assert code == 1
    assert "no recording is paired with qwen3-0.6b/smoke-64" in err


@pytest.mark.parametrize(
    ("pattern", "text", "same"),
    [
        ("env.*", "env.A", True),
        ("env.*", "env", False),
        ("*", "", True),
        ("a", "ab", False),
        ("a*a", "a", False),
        ("a*b*c", "axbxb\nc", True),
        ("a*bc*c", "abc", False),
        ("[a].*", "a.", False),
    ],
)
def test_a_star_stands_for_anything(pattern: str, text: str, same: bool) -> None:
    assert matches(pattern, text) is same


def test_stars_take_time_in_proportion_to_the_text() -> None:
    started = time.process_time()
    assert not matches("*a" * 30 + "b", "a" * 100_000)
    assert time.process_time() - started < 2
