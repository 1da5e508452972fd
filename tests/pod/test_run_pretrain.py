"""run_pretrain.py over a small stand-in for an installed MaxText: the argv it starts, and every refusal."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pod import run_pretrain

SHIM = str(Path(run_pretrain.__file__).with_name("start_trainer.py"))
TRAINER = "standin.trainers.train"
FACTS: dict[str, Any] = {
    "model": "tiny",
    "maxtext_version": "0.2.5",
    "maxtext_mismatch": "error",
    "trainer": TRAINER,
    "derivations": [],
    "warmup_iters": None,
    "load_parameters_path": None,
    "set_by_person": [],
    "run_name_explicit": False,
    "logical_axis_rules": None,
}
BASE = """\
model_name: default
steps: 150001
learning_rate_schedule_steps: -1
warmup_steps_fraction: 0.1
base_emb_dim: 2048
vocab_size: 32000
logical_axis_rules: [[embed, [fsdp]]]
"""
RUN = "base_config: base.yml\nmodel_name: tiny\nbase_emb_dim: 64\n"


@pytest.fixture
def maxtext(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An installed package `standin` 0.2.5, with one model file."""
    package = tmp_path / "site" / "standin"
    (package / "configs/models").mkdir(parents=True)
    (package / "trainers").mkdir()
    (package / "__init__.py").write_text("raise AssertionError('imported')\n")
    (package / "trainers/train.py").touch()
    (package / "configs/base.yml").write_text(BASE)
    (package / "configs/models/tiny.yml").write_text("base_emb_dim: 4096\nlogical_axis_rules: [[norm, fsdp]]\n")
    set_version(tmp_path / "site", "0.2.5")
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    monkeypatch.delenv("MAXTEXT_CONFIGS_DIR", raising=False)
    monkeypatch.setenv("POD_ROOT", str(tmp_path))
    return package


def set_version(site: Path, version: str) -> None:
    for old in site.glob("*.dist-info/METADATA"):
        old.unlink()
        old.parent.rmdir()
    info = site / f"standin-{version}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: standin\nVersion: {version}\n")


@pytest.fixture
def original(maxtext: Path, tmp_path: Path) -> Path:
    """The pod's own run.yml with derive.json beside it."""
    return write_run(tmp_path / "etc/maxtext")


def write_run(folder: Path, run: str = RUN, **facts: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.yml").write_text(run)
    (folder / "derive.json").write_text(json.dumps({**FACTS, **facts}))
    return folder / "run.yml"


Answer = tuple[int, list[str], str]
Run = Callable[..., Answer]


@pytest.fixture
def run(capfd: pytest.CaptureFixture[str]) -> Run:
    def printed(*words: object) -> Answer:
        code = run_pretrain.main(["--print", *map(str, words)])
        out, err = capfd.readouterr()
        return code, json.loads(out) if out else [], err

    return printed


def test_the_trainer_gets_the_run_and_what_the_model_file_would_hide(run: Run, original: Path) -> None:
    code, argv, err = run(original)
    assert code == 0
    assert argv == [
        *(sys.executable, SHIM, TRAINER, str(original)),
        *("base_emb_dim=64", "override_model_config=true"),
    ]
    assert err == (
        "run_pretrain: D6 base_emb_dim=64  (the model file sets 4096, and would win over run.yml)\n"
        "run_pretrain: D6 override_model_config=true  (the model file sets base_emb_dim too)\n"
    )


def test_skipped_rules_are_explained(run: Run, original: Path) -> None:
    write_run(original.parent, derivations=["D2"])
    assert "run_pretrain: D2 nothing  (WARMUP_ITERS is not given)\n" in run(original)[2]


def test_the_process_becomes_the_trainer(original: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Any] = []

    def execv(program: str, argv: list[str]) -> None:
        seen.append((program, argv))
        raise SystemExit

    monkeypatch.setattr(run_pretrain.os, "execv", execv)
    with pytest.raises(SystemExit):
        run_pretrain.main([str(original)])
    assert [(program, argv[0], argv[1], argv[2]) for program, argv in seen] == [
        (sys.executable, sys.executable, SHIM, TRAINER)
    ]


def test_rules_travel_beside_the_run_and_join_the_model_files(run: Run, original: Path) -> None:
    write_run(original.parent, logical_axis_rules=[["embed", []]])
    assert 'logical_axis_rules=[["norm", "fsdp"], ["embed", []]]' in run(original)[1]


def test_arguments_count_as_a_persons_and_come_before_the_derived_ones(run: Run, original: Path) -> None:
    write_run(original.parent, RUN + "steps: 10\n", derivations=["D2"], warmup_iters=100)
    _, argv, err = run(original, "warmup_steps_fraction=0.3", "base_emb_dim=32", "steps=20")
    assert argv[4:] == [
        *("warmup_steps_fraction=0.3", "base_emb_dim=32", "steps=20", "learning_rate_schedule_steps=200"),
        *("base_emb_dim=32", "override_model_config=true"),
    ]
    assert "D2 nothing  (warmup_steps_fraction 0.3 was set by a person)" in err


def test_rules_as_an_argument_join_the_runs(run: Run, original: Path) -> None:
    write_run(original.parent, logical_axis_rules=[["embed", []], ["heads", []]])
    argv = run(original, "logical_axis_rules=[[embed,[fsdp]]]")[1]
    assert argv[-2] == 'logical_axis_rules=[["norm", "fsdp"], ["heads", []], ["embed", ["fsdp"]]]'


SHORT = RUN + "steps: 10\nlearning_rate_schedule_steps: 50\n"


def test_in_an_edited_copy_the_changed_keys_are_a_persons(run: Run, original: Path, tmp_path: Path) -> None:
    write_run(original.parent, SHORT, derivations=["D2"], warmup_iters=100)
    assert run(original)[0] == 0
    copy = tmp_path / "copy.yml"
    copy.write_text(SHORT)
    assert "learning_rate_schedule_steps=200" in run(copy)[1]
    copy.write_text(SHORT.replace("steps: 50", "steps: 60"))
    assert run(copy)[2] == (
        "run_pretrain: learning_rate_schedule_steps 60 is not above WARMUP_ITERS 100, and"
        " learning_rate_schedule_steps 60 was set by a person: set it above 100, or lower WARMUP_ITERS\n"
    )


def test_a_copy_of_the_whole_folder_is_a_copy_too(run: Run, original: Path, tmp_path: Path) -> None:
    facts = {"derivations": ["D2"], "warmup_iters": 100}
    write_run(original.parent, SHORT, **facts)
    copy = write_run(tmp_path / "copy", SHORT.replace("steps: 50", "steps: 60"), **facts)
    assert run(copy)[0] == 2


def test_another_run_beside_its_own_facts_is_no_copy(run: Run, original: Path, tmp_path: Path) -> None:
    other = write_run(tmp_path / "other", SHORT, derivations=["D2"], warmup_iters=100)
    assert "learning_rate_schedule_steps=200" in run(other)[1]


@pytest.mark.parametrize("place", ["etc/maxtext/models", "etc/models"])
def test_a_model_file_near_the_run_wins_as_it_does_in_maxtext(
    run: Run, original: Path, tmp_path: Path, place: str
) -> None:
    (tmp_path / place).mkdir()
    (tmp_path / place / "tiny.yml").write_text("base_emb_dim: 64\n")
    assert run(original)[1][4:] == []


def test_an_instruct_model_has_the_file_of_its_base(run: Run, original: Path) -> None:
    write_run(original.parent, RUN.replace("tiny", "tiny-Instruct"))
    assert run(original)[1][4:] == ["base_emb_dim=64", "override_model_config=true"]


def test_the_default_model_has_no_file(run: Run, original: Path) -> None:
    write_run(original.parent, "base_config: base.yml\nbase_emb_dim: 64\n")
    assert run(original)[1][4:] == []


def test_a_base_config_has_its_own_base(run: Run, original: Path) -> None:
    (original.parent / "mine.yml").write_text("base_config: base.yml\nlearning_rate_schedule_steps: 7\n")
    write_run(original.parent, "base_config: mine.yml\n", derivations=["D2"], warmup_iters=3)
    assert run(original)[1][4:] == [f"warmup_steps_fraction={3 / 7}"]


@pytest.mark.parametrize(("installed", "wanted"), [("0.2.5", "v0.2.5"), ("1.5.0", "1.5.0"), ("0.2.5", "0.2.5")])
def test_versions_that_agree(run: Run, original: Path, tmp_path: Path, installed: str, wanted: str) -> None:
    set_version(tmp_path / "site", installed)
    write_run(original.parent, maxtext_version=wanted)
    assert run(original)[0] == 0


def test_another_version_is_an_error_or_a_warning(run: Run, original: Path) -> None:
    text = "MaxText 0.2.5 is installed, and the run was checked against 0.2.6"
    write_run(original.parent, maxtext_version="0.2.6")
    assert run(original) == (2, [], f"run_pretrain: {text}\n")
    write_run(original.parent, maxtext_version="0.2.6", maxtext_mismatch="warn")
    code, argv, err = run(original)
    assert (code, len(argv)) == (0, 6)
    assert err.startswith(f"run_pretrain: warning: {text}\n")


def test_a_commit_is_the_checkouts(run: Run, original: Path, maxtext: Path) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", str(maxtext.parent), *command], check=True)
    head = subprocess.check_output(["git", "-C", str(maxtext), "rev-parse", "HEAD"], text=True).strip()
    write_run(original.parent, maxtext_version=head[:7])
    assert run(original)[0] == 0
    write_run(original.parent, maxtext_version="f" * 7)
    assert run(original)[2] == (
        f"run_pretrain: MaxText 0.2.5 ({head}) is installed, and the run was checked against fffffff\n"
    )


def test_an_installed_copy_has_no_commit(tmp_path: Path) -> None:
    package = tmp_path / "lib/site-packages/maxtext"
    package.mkdir(parents=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    for command in (["init", "-q"], [*identity, "commit", "-q", "--allow-empty", "-m", "x"]):
        subprocess.run(["git", "-C", str(tmp_path), *command], check=True)
    assert run_pretrain._commit(package) is None


def test_versions_that_find_no_model_file_are_refused(run: Run, original: Path, tmp_path: Path) -> None:
    set_version(tmp_path / "site", "0.2.1")
    write_run(original.parent, maxtext_version="0.2.1")
    assert run(original) == (
        2,
        [],
        "run_pretrain: MaxText 0.2.1 finds no model file for a run.yml outside its package, and would train"
        " base.yml's sizes: use 0.2.2 or later\n",
    )


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("base_config: [", "cannot read {run}: "),
        ("- a\n", "cannot read {run}: it holds no map of keys"),
        ("model_name: tiny\n", "{run} has no base_config: base.yml, so MaxText would not load its defaults"),
        (
            RUN + "logical_axis_rules: []\n",
            "{run} sets logical_axis_rules, which would replace every rule: pass it as an argument, KEY=[...]",
        ),
        ("base_config: no.yml\n", "cannot read {configs}/no.yml: [Errno 2] No such file or directory: "),
        (
            RUN.replace("tiny", "huge"),
            "this MaxText has no model file huge.yml in {configs}/models: it would train base.yml's sizes",
        ),
        (RUN.replace("64", "${x}"), "${x} would be interpolated by OmegaConf"),
    ],
)
def test_a_run_that_cannot_start(run: Run, original: Path, maxtext: Path, text: str, message: str) -> None:
    write_run(original.parent, text)
    code, argv, err = run(original)
    expected = message.replace("{run}", str(original)).replace("{configs}", str(maxtext / "configs"))
    assert (code, argv, err.count("\n")) == (2, [], 1)
    assert err.startswith(f"run_pretrain: {expected}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)"),
        ("[]", "it holds no map of keys"),
        (json.dumps({**FACTS, "trainer": 3, "model": None}), "model, trainer missing or of a wrong type"),
        (json.dumps({"model": "tiny"}), "maxtext_version, maxtext_mismatch, trainer, derivations, warmup_iters, "),
    ],
)
def test_bad_facts(run: Run, original: Path, text: str, message: str) -> None:
    original.with_name("derive.json").write_text(text)
    code, argv, err = run(original)
    assert (code, argv, err.count("\n")) == (2, [], 1)
    assert err.startswith(f"run_pretrain: cannot read {original.with_name('derive.json')}: {message}")


@pytest.mark.parametrize(
    ("trainer", "message"),
    [
        ("nowhere.train", f"{sys.executable} has no package nowhere: is it the image of this MaxText?"),
        ("standin.train", "the package standin in {package} has no module standin.train"),
    ],
)
def test_no_trainer(run: Run, original: Path, maxtext: Path, trainer: str, message: str) -> None:
    write_run(original.parent, trainer=trainer)
    assert run(original) == (2, [], f"run_pretrain: {message.replace('{package}', str(maxtext))}\n")


def test_missing_and_misnamed_runs(run: Run, original: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing.yml"
    text = f"cannot read {missing}: [Errno 2] No such file or directory: '{missing}'"
    assert run(missing) == (2, [], f"run_pretrain: {text}\n")
    named = original.rename(original.with_suffix(".yaml"))
    assert run(named)[2] == (f"run_pretrain: {named} must end in .yml: MaxText takes any other name for an argument\n")


@pytest.mark.parametrize("word", ["--steps=3", "steps", "=3"])
def test_an_argument_without_a_key(run: Run, original: Path, word: str) -> None:
    assert run(original, word) == (2, [], f"run_pretrain: {word!r} is not KEY=VALUE\n")


def test_an_argument_omegaconf_cannot_read(run: Run, original: Path) -> None:
    code, _, err = run(original, "steps=[")
    assert code == 2
    assert err.startswith("run_pretrain: cannot read the arguments: while parsing a flow node")


@pytest.mark.parametrize("words", [[], ["--print"], ["--help"]])
def test_wrong_usage_is_no_configuration_error(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run_pretrain.main(words) == 64
    assert capsys.readouterr().err == "usage: run_pretrain.py [--print] RUN_YML [KEY=VALUE ...]\n"


def test_the_scripts_work_side_by_side_without_the_package(original: Path, tmp_path: Path) -> None:
    scripts = tmp_path / "scripts"
    scripts.mkdir()
    for name in ("run_pretrain.py", "derivations.py", "start_trainer.py"):
        (scripts / name).write_bytes(Path(SHIM).with_name(name).read_bytes())
    command = [sys.executable, str(scripts / "run_pretrain.py"), "--print", str(original)]
    result = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path / "site", check=True)
    assert json.loads(result.stdout)[1:4] == [str(scripts / "start_trainer.py"), TRAINER, str(original)]
