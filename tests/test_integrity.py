"""The merge queue's `render --check --digests` refuses what apply refuses, though every digest of bytes is right."""

from __future__ import annotations

import pytest
from content import Content

from renderer.cluster.objects import objects
from renderer.committed import Reader
from renderer.integrity import check
from renderer.layers import Repository
from renderer.names import seal
from renderer.outputs import POD_SCRIPTS, RUN_FILES
from renderer.problem import RefusedError
from renderer.runs import Committed

FOLDER = "rendered/prod/ling3-flash/run"
UNIT = ("ling3-flash", "run")


def judged(content: Content) -> str:
    """Return what the check of all digests says."""
    return "; ".join(f"{problem.location}: {problem.message}" for problem in check(Repository(content.root)))


def run(content: Content) -> Committed:
    paths = [f"experiments/{UNIT[0]}/{UNIT[1]}.yml", *(f"{FOLDER}/{name}" for name in RUN_FILES)]
    files = {path: (content.root / path).read_bytes() for path in paths if (content.root / path).is_file()}
    (found,) = Reader({path: path for path in files}, files).snapshot([UNIT]).runs
    return found


def applied(content: Content, state: Committed) -> str:
    """Return why apply refuses the run, empty if it does not."""
    folder = content.root / state.folder
    files = {name: (folder / name).read_bytes() for name in RUN_FILES if (folder / name).is_file()}
    found = (content.root / POD_SCRIPTS).glob("*/*")
    scripts = {path.relative_to(content.root).as_posix(): path.read_bytes() for path in found}
    try:
        objects(state, state.folder, files, scripts)
    except RefusedError as error:
        return "; ".join(f"{problem.location}: {problem.message}" for problem in error.problems)
    return ""


@pytest.fixture
def rendered(content: Content) -> Content:
    launch = {"environment": "prod", "chips": 256, "image": "v1", "branch": None, "owner": "team"}
    content.experiment("run", launch=launch)
    content.run("render")
    return content


def test_a_rendered_run_is_whole(rendered: Content) -> None:
    assert (judged(rendered), applied(rendered, run(rendered))) == ("", "")


@pytest.mark.parametrize(
    ("file", "old", "new", "said"),
    [
        ("jobset.yml", "\nspec:\n", "\nspec:\n  suspend: true\n", "jobset.yml: its content digest is not that of"),
        ("jobset.yml", "maxRestarts: ", "maxRestarts: 9", "jobset.yml: its content digest is not that of"),
        ("jobset.yml", '  name: "run-', '  name: "other-', "jobset.yml: its volume run does not name the ConfigMap"),
        ("jobset.yml", 'name: "run-run-', 'name: "run-other-', "jobset.yml: its volume run does not name the"),
        ("jobset.yml", "    renderer/environment:", "    other:", "jobset.yml: "),
        ("watcher.yml", '-hf"', '-other"', "watcher.yml: is no Deployment run-"),
        ("run.yml", "steps: ", "steps: 1", "jobset.yml: its content digest is not that of the run's files"),
    ],
)
def test_resealed_files_are_refused_alike(rendered: Content, file: str, old: str, new: str, said: str) -> None:
    folder = rendered.root / FOLDER
    files = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert old.encode() in files[file]
    files[file] = files[file].replace(old.encode(), new.encode(), 1)
    for name, data in seal(files).items():
        (folder / name).write_bytes(data)
    assert judged(rendered).startswith(f"{FOLDER}/{said}")
    refused = applied(rendered, run(rendered))  # by the first reason alone
    assert refused
    assert judged(rendered).startswith(refused)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("launch: [\n", "2:1: while parsing a flow node, did not find expected node content"),
        ("launch: {model: ling3-flash, chips: 64, context: 8k}\n", "1:1: missing: prod or test."),
        (
            "launch: {model: ling3-flash, chips: 64, context: 8k, environment: staging}\n",
            '1:67: "staging" is not prod or test',
        ),
    ],
)
def test_an_experiment_that_does_not_say_where_it_is_rendered_is_told_why(
    text: str, said: str, rendered: Content
) -> None:
    rendered.write("experiments/ling3-flash/run.yml", text)
    assert judged(rendered) == f"experiments/ling3-flash/run.yml:{said}"


def test_scripts_that_many_runs_share_are_judged_by_their_bytes(rendered: Content) -> None:
    script = next((rendered.root / POD_SCRIPTS).glob("*/bootstrap.sh"))
    whole = script.read_bytes()
    script.write_bytes(whole + b"#")
    assert "holds other files than were rendered: their digest is" in judged(rendered)
    script.write_bytes(whole)
    assert judged(rendered) == ""
