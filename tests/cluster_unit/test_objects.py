"""From a run's committed files to its objects: what is not as it was rendered is refused by the file's name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
import yaml

from renderer.cluster.needs import QUEUE_LABEL
from renderer.cluster.objects import Objects, objects, read_runs
from renderer.manifests import HOLD_QUEUE, stream
from renderer.problem import RefusedError
from renderer.runs import Committed
from tests.cluster_unit.committed_repo import CommittedRepo
from tests.repository import MODEL

FOLDER = f"rendered/test/{MODEL}/run"


@pytest.fixture
def files(repo: CommittedRepo) -> tuple[Committed, dict[str, bytes], dict[str, bytes]]:
    """A run, its files, and the pod scripts by their path."""
    head = repo.merge()
    root = repo.content.root
    scripts = {path.relative_to(root).as_posix(): path.read_bytes() for path in root.glob("rendered/_pod/*/*")}
    run = repo.run(head)
    return run, repo.reader(head).files(run), scripts


Files = tuple[Committed, dict[str, bytes], dict[str, bytes]]


def read(files: Files) -> Objects:
    run, found, scripts = files
    return objects(run, FOLDER, found, scripts)


def test_a_run_consists_of_what_was_rendered(files: Files) -> None:
    run, found, scripts = files
    read_ = read(files)
    assert (read_.name, read_.namespace, read_.queue, read_.digest) == (run.name, "default", "", run.content)
    assert read_.run_config_map["metadata"] == {"name": f"run-{run.name}", "namespace": "default"}
    assert read_.run_config_map["data"] == {name: found[name].decode() for name in ("derive.json", "run.yml")}
    names = {path.rpartition("/")[2]: data.decode() for path, data in scripts.items()}
    assert (read_.pod_config_map["data"], read_.pod_config_map["immutable"]) == (names, True)
    assert read_.watcher is None


def test_a_held_jobset_is_suspended_and_with_kueue_in_a_queue_that_does_not_exist(files: Files) -> None:
    read_ = read(files)
    held, queued = read_.held(kueue=False), read_.held(kueue=True)
    assert (held["spec"]["suspend"], QUEUE_LABEL in held["metadata"]["labels"]) == (True, False)
    assert (queued["spec"]["suspend"], queued["metadata"]["labels"][QUEUE_LABEL]) == (True, HOLD_QUEUE)
    assert "suspend" not in read_.jobset["spec"]
    assert QUEUE_LABEL not in read_.jobset["metadata"]["labels"]


def test_the_stream_for_kubectl_holds_the_same_objects(files: Files) -> None:
    read_ = read(files)
    scripts = {path.rpartition("/")[2]: data for path, data in files[2].items()}
    found = list(yaml.safe_load_all(stream(files[1], scripts)))
    assert found == [read_.pod_config_map, read_.run_config_map, read_.held(kueue=True)]


def refusal(files: Files) -> str:
    with pytest.raises(RefusedError) as caught:
        read(files)
    return "; ".join(f"{problem.location}: {problem.message}" for problem in caught.value.problems)


def edit(file: str, old: str, new: str) -> Callable[[Files], None]:
    def change(files: Files) -> None:
        text = files[1][file].decode()
        assert old in text
        files[1][file] = text.replace(old, new, 1).encode()

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (edit("run.yml", "steps: 20", "steps: 21"), "its content digest is not that of the run's files"),
        (edit("jobset.yml", "maxRestarts: 0", "maxRestarts: 9"), "its content digest is not that of the run's files"),
        (edit("derive.json", '"run_name_explicit": false', '"run_name_explicit": 7'), "its content digest is not"),
        (edit("jobset.yml", '  name: "run-', '  name: "other-'), "its name does not end in the content digest"),
        (edit("jobset.yml", "    renderer/content-digest:", "    other:"), "is not a rendered run's: it has no"),
    ],
)
def test_edited_files_are_refused(files: Files, change: Callable[[Files], None], message: str) -> None:
    change(files)
    said = refusal(files)
    assert said.startswith(f"{FOLDER}/jobset.yml: {message}"), said


@pytest.mark.parametrize("name", ["derive.json", "jobset.yml", "run.yml"])
def test_a_missing_file_is_named(files: Files, name: str) -> None:
    del files[1][name]
    assert refusal(files) == f"{FOLDER}/{name}: is missing; run renderer render"


@pytest.mark.parametrize("data", [b"", b"\xff", b"[", b"null", b"- 1", b"a: 1\n", b"[" * 5000])
@pytest.mark.parametrize("name", ["derive.json", "jobset.yml", "run.yml"])
def test_damaged_files_are_refused(files: Files, name: str, data: bytes) -> None:
    files[1][name] = data
    assert refusal(files).startswith(f"{FOLDER}/")


def test_another_attempt_is_another_run(files: Files) -> None:
    run, *rest = files
    said = refusal((replace(run, attempt=2), *rest))  # type: ignore[arg-type]
    assert said == f"{FOLDER}/jobset.yml: its name does not end in the content digest {run.content[:8]}"


def test_another_environment_is_another_folder(files: Files) -> None:
    run, *rest = files
    said = refusal((replace(run, environment="prod"), *rest))  # type: ignore[arg-type]
    assert said == f"{FOLDER}/jobset.yml: its environment is not prod, its folder's"


def test_pod_scripts_are_those_of_their_digest(files: Files) -> None:
    run, found, scripts = files
    path = next(path for path in scripts if path.endswith("bootstrap.sh"))
    folder = path.rpartition("/")[0]
    said = refusal((run, found, {**scripts, path: b"echo\n"}))
    assert said.startswith(f"{folder}: holds other files than were rendered: their digest is ")
    more = refusal((run, found, {**scripts, f"{folder}/more.sh": b""}))
    assert more.startswith(f"{folder}: holds other files than were rendered: ")
    assert refusal((run, found, {})) == f"{folder}: is missing; run renderer render"
    assert refusal((run, found, {**scripts, path: b"\xff"})).startswith(f"{folder}: is not a rendered run's: ")


def test_reading_runs_names_what_was_edited(repo: CommittedRepo) -> None:
    repo.merge()
    repo.merge("sound")
    repo.content.edit(f"{FOLDER}/run.yml", "steps: 20", "steps: 21")
    head = repo.commit()
    reader = repo.reader(head)
    runs = reader.snapshot([(MODEL, "run"), (MODEL, "sound")]).runs
    found = read_runs(repo.history, head, repo.history.tree(head, "."), reader, runs)
    edited, sound = (found[run.name] for run in runs)
    assert edited == f"{FOLDER}/run.yml: edited by hand after it was rendered; run renderer render"
    assert isinstance(sound, Objects)
