"""The files under rendered/: found out when wrong, written in one step, kept whole through any crash."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from content import SHIPPED, Content, tree

from renderer.layers import Repository
from renderer.pipeline import render_paths
from renderer.problem import RefusedError
from renderer.rendered_tree import Changes, commit, desired, existing, inspect, owned, plan

RUN = "rendered/test/ling3-flash/run"
POD = "rendered/_pod"


def rendered(content: Content) -> dict[str, bytes]:
    """Render everything, commit it, and return what lies under rendered/."""
    assert content.run("render").code == 0
    return tree(content.root)


def wanted(content: Content) -> dict[str, bytes]:
    paths, strays = Repository(content.root).experiment_paths()
    return desired(result.rendered for result in render_paths(Repository(content.root), paths, strays).results)


def litter(content: Content) -> list[str]:
    """Return what a commit should not leave behind."""
    return [path.name for path in content.root.glob(".renderer*")]


def checked(content: Content, *names: str) -> tuple[int, list[str]]:
    code, out, err = content.run("render", "--check", *names)
    return code, [line for line in [*out.splitlines(), *err.splitlines()] if " frozen " not in line]


def test_first_render_writes_everything_and_the_second_nothing(content: Content) -> None:
    content.experiment()
    assert content.run("render").out.splitlines()[-1] == "7 files written, 0 deleted"
    assert content.run("render").out.splitlines()[-1] == "nothing to write: rendered/ is up to date"
    pod = [path for path in tree(content.root) if path.startswith(POD)]
    assert sorted(tree(content.root)) == sorted([*pod, f"{RUN}/derive.json", f"{RUN}/jobset.yml", f"{RUN}/run.yml"])
    assert [path.rpartition("/")[2] for path in pod] == [
        "bootstrap.sh",
        "derivations.py",
        "run_pretrain.py",
        "start_trainer.py",
    ]
    assert checked(content) == (0, ["1 experiment is rendered and up to date"])


def edit(content: Content, name: str) -> None:
    path = content.root / RUN / name
    path.write_bytes(path.read_bytes() + b"\n")


@pytest.mark.parametrize(
    ("break_it", "messages"),
    [
        (lambda c: edit(c, "run.yml"), [f"{RUN}/run.yml: was edited by hand; run renderer render"]),
        (lambda c: edit(c, "jobset.yml"), [f"{RUN}/jobset.yml: was edited by hand; run renderer render"]),
        (lambda c: edit(c, "derive.json"), [f"{RUN}/derive.json: was edited by hand; run renderer render"]),
        (lambda c: (c.root / RUN / "run.yml").unlink(), [f"{RUN}/run.yml: is missing; run renderer render"]),
        (
            lambda c: (c.root / RUN / "run.yml").write_bytes(b""),
            [f"{RUN}/run.yml: was edited by hand; run renderer render"],
        ),
        (
            lambda c: c.experiment(maxtext={"steps": 7}),
            [
                f"{RUN}/jobset.yml: is stale: its layers, the template or the renderer changed; run renderer render",
                f"{RUN}/run.yml: is stale: its layers, the template or the renderer changed; run renderer render",
            ],
        ),
        (
            lambda c: (c.root / "experiments/ling3-flash/run.yml").rename(c.root / "experiments/ling3-flash/new.yml"),
            [
                "rendered/test/ling3-flash/new/derive.json: is missing; run renderer render",
                "rendered/test/ling3-flash/new/jobset.yml: is missing; run renderer render",
                "rendered/test/ling3-flash/new/run.yml: is missing; run renderer render",
                f"{RUN}/derive.json: is orphaned: no experiment renders it; run renderer render",
                f"{RUN}/jobset.yml: is orphaned: no experiment renders it; run renderer render",
                f"{RUN}/run.yml: is orphaned: no experiment renders it; run renderer render",
            ],
        ),
        (
            lambda c: c.write(f"{RUN}/watcher.yml", "x"),
            [f"{RUN}/watcher.yml: is orphaned: no experiment renders it; run renderer render"],
        ),
        (
            lambda c: c.write(f"{RUN}/notes.txt", "x"),
            [f"{RUN}/notes.txt: is not the renderer's: nothing else belongs under rendered/; delete it"],
        ),
        (
            lambda c: c.write("rendered/staging/ling3-flash/run/run.yml", "x"),
            [
                "rendered/staging/ling3-flash/run/run.yml: is not the renderer's: nothing else "
                "belongs under rendered/; delete it"
            ],
        ),
        (
            lambda c: c.write(f"{POD}/0123456789ab/x.sh", "x"),
            [f"{POD}/0123456789ab/x.sh: is orphaned: no experiment renders it; run renderer render"],
        ),
        (
            lambda c: c.write(f"{POD}/README", "x"),
            [f"{POD}/README: is not the renderer's: nothing else belongs under rendered/; delete it"],
        ),
        (
            lambda c: (c.root / "rendered/link").symlink_to("/"),
            ["rendered/link: is not the renderer's: nothing else belongs under rendered/; delete it"],
        ),
    ],
)
def test_check_names_every_file_that_is_not_as_it_should_be(
    break_it: Callable[[Content], object], messages: list[str], content: Content
) -> None:
    content.experiment()
    rendered(content)
    break_it(content)
    before = tree(content.root)
    code, lines = checked(content)
    assert lines == [
        *messages,
        f"{len(messages)} {'file is' if len(messages) == 1 else 'files are'} not what renderer render writes",
    ]
    assert code == 1
    assert tree(content.root) == before


def test_check_names_an_edited_pod_script(content: Content) -> None:
    content.experiment()
    rendered(content)
    script = next((content.root / POD).glob("*/bootstrap.sh"))
    script.write_bytes(b"#!/bin/bash\n")
    path = script.relative_to(content.root).as_posix()
    assert checked(content)[1][0] == f"{path}: was edited by hand; run renderer render"
    content.run("render")
    assert checked(content)[0] == 0


@pytest.mark.parametrize("old", [b'renderer/files-digest: "', b"    renderer/files-digest:", b"completions: 16"])
def test_an_edit_of_the_digest_line_itself_is_an_edit(old: bytes, content: Content) -> None:
    content.experiment()
    rendered(content)
    jobset = content.root / RUN / "jobset.yml"
    jobset.write_bytes(jobset.read_bytes().replace(old, old + b"x", 1))
    assert checked(content)[1][0] == f"{RUN}/jobset.yml: was edited by hand; run renderer render"


def test_check_of_named_experiments_looks_at_theirs_only(content: Content) -> None:
    content.experiment("one")
    content.experiment("two")
    rendered(content)
    content.write("rendered/test/ling3-flash/gone/run.yml", "x")
    content.write("rendered/test/ling3-flash/one/run.yml", "x")
    assert checked(content, "ling3-flash/two") == (0, ["1 experiment is rendered and up to date"])
    assert checked(content, "ling3-flash/one")[1] == [
        "rendered/test/ling3-flash/one/run.yml: was edited by hand; run renderer render",
        "1 file is not what renderer render writes",
    ]


@pytest.mark.parametrize(
    "break_it",
    [
        lambda c: c.experiment("bad", maxtext={"stesp": 5}),
        lambda c: c.write("experiments/ling3-flash/bad.yml", "launch: [\n"),
        lambda c: c.write("experiments/ling3-flash/bad.yaml", ""),
        lambda c: c.edit("datasets/align_smoke.yml", "dataset_type: lazy", "dataset_type: [lazy"),
        lambda c: c.edit("presets/ling3-flash/environment/test.yml", "steps: 20", "steps: 020"),
        lambda c: c.experiment("bad", launch={"name": "run"}),
    ],
)
def test_nothing_is_written_when_anything_is_wrong(break_it: Callable[[Content], object], content: Content) -> None:
    content.experiment()
    content.experiment("other", maxtext={"steps": 30})
    before = rendered(content)
    content.experiment("other", maxtext={"steps": 40})
    break_it(content)
    code, out, err = content.run("render")
    assert (code, out) == (1, "")
    assert err != ""
    assert tree(content.root) == before
    assert litter(content) == []


def test_render_removes_what_it_owns_and_no_longer_renders(content: Content) -> None:
    content.experiment("one")
    content.experiment("two")
    rendered(content)
    foreign = content.write("rendered/test/ling3-flash/two/notes.txt", "mine")
    (content.root / "experiments/ling3-flash/two.yml").unlink()
    assert content.run("render").out.splitlines()[-1] == "0 files written, 3 deleted"
    assert foreign.read_text() == "mine"
    assert {path.split("/")[3] for path in tree(content.root, "rendered/test")} == {"one", "two"}
    foreign.unlink()
    (content.root / "experiments/ling3-flash/one.yml").unlink()
    assert content.run("render").out.splitlines()[-1] == "0 files written, 7 deleted"
    assert tree(content.root) == {}


def test_render_of_one_leaves_the_others_alone(content: Content) -> None:
    content.experiment("one")
    content.experiment("two")
    before = rendered(content)
    content.experiment("one", maxtext={"steps": 5})
    content.experiment("two", maxtext={"steps": 5})
    assert content.run("render", "ling3-flash/one").out == "2 files written, 0 deleted\n"
    changed = {path for path, data in tree(content.root).items() if before[path] != data}
    assert {path.split("/")[3] for path in changed} == {"one"}


def test_switching_the_environment_moves_the_folder(content: Content) -> None:
    content.experiment(launch={"image": "v1", "branch": None})
    rendered(content)
    content.experiment(launch={"image": "v1", "branch": None, "environment": "prod"})
    assert content.run("render", "ling3-flash/run").out == "4 files written, 3 deleted\n"
    runs = sorted(path for path in tree(content.root) if not path.startswith(POD))
    assert runs == [
        f"rendered/prod/ling3-flash/run/{name}" for name in ("derive.json", "jobset.yml", "run.yml", "watcher.yml")
    ]
    assert not (content.root / RUN).exists()
    assert checked(content)[0] == 0


def test_unchanged_files_keep_time_and_inode(content: Content) -> None:
    for name in ("one", "two", "three"):
        content.experiment(name)
    rendered(content)
    paths = [content.root / path for path in tree(content.root)]
    for path in paths:
        os.utime(path, ns=(1, 1))
    inodes = {path: path.stat().st_ino for path in paths}
    content.experiment("two", maxtext={"steps": 5})
    content.run("render")
    changed = [path.parts[-2:] for path in paths if (path.stat().st_ino, path.stat().st_mtime_ns) != (inodes[path], 1)]
    assert changed == [("two", "jobset.yml"), ("two", "run.yml")]


def test_old_pod_scripts_stay_while_a_run_needs_them(content: Content) -> None:
    content.experiment("one")
    content.experiment("two")
    rendered(content)
    current = next((content.root / POD).iterdir()).name
    old = "0123456789ab"
    content.write(f"{POD}/{old}/bootstrap.sh", "old")
    jobset = content.root / "rendered/test/ling3-flash/two/jobset.yml"
    jobset.write_text(jobset.read_text().replace(current, old))
    content.experiment("one", maxtext={"steps": 5})
    content.run("render", "ling3-flash/one")
    assert (content.root / POD / old).exists()
    content.run("render", "ling3-flash/two")
    assert sorted(path.name for path in (content.root / POD).iterdir()) == [current]


def test_a_file_beside_pod_scripts_that_are_used_is_deleted(content: Content) -> None:
    content.experiment()
    before = rendered(content)
    pod = next(path.rpartition("/")[0] for path in before if path.startswith(POD))
    content.write(f"{pod}/notes.txt", "x")
    assert checked(content) == (
        1,
        [
            f"{pod}/notes.txt: is orphaned: no experiment renders it; run renderer render",
            "1 file is not what renderer render writes",
        ],
    )
    assert content.run("render").out.splitlines()[-1] == "0 files written, 1 deleted"
    assert tree(content.root) == before


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("rendered/test/m/r/run.yml", True),
        ("rendered/prod/m/r/jobset.yml", True),
        ("rendered/prod/m/r/watcher.yml", True),
        ("rendered/_pod/0123456789ab/any.sh", True),
        ("rendered/dev/m/r/run.yml", False),
        ("rendered/test/m/r/x/run.yml", False),
        ("rendered/test/m/run.yml", False),
        ("rendered/test/m/r/run.yml.orig", False),
        ("rendered/_pod/0123456789AB/any.sh", False),
        ("rendered/_pod/0123456789ab/x/any.sh", False),
        ("results/test/m/r/run.yml", False),
    ],
)
def test_what_the_renderer_owns(path: str, own: bool) -> None:
    assert owned(path) is own


def test_plan_names_what_changes_only(content: Content) -> None:
    content.experiment()
    files = wanted(content)
    assert plan(content.root, files) == Changes(files, ())
    commit(content.root, plan(content.root, files))
    assert not plan(content.root, files)
    assert list(inspect(content.root, files)) == []
    assert sorted(existing(content.root)) == sorted(files)


# --- links and foreign things in the way ---


@pytest.mark.parametrize("link", ["rendered", "rendered/test", "rendered/test/ling3-flash", RUN])
def test_a_linked_folder_is_refused_not_followed(link: str, content: Content, tmp_path: Path) -> None:
    content.experiment()
    outside = tmp_path / "outside"
    outside.mkdir()
    (content.root / link).parent.mkdir(parents=True, exist_ok=True)
    (content.root / link).symlink_to(outside)
    code, _, err = content.run("render")
    assert code == 1
    assert err == f"{link}: is a symbolic link: the renderer replaces real folders only\n"
    assert list(outside.iterdir()) == []


def test_a_linked_file_is_replaced_not_followed(content: Content, tmp_path: Path) -> None:
    content.experiment()
    rendered(content)
    outside = tmp_path / "outside.yml"
    outside.write_text("mine")
    (content.root / RUN / "run.yml").unlink()
    (content.root / RUN / "run.yml").symlink_to(outside)
    assert checked(content)[0] == 1
    assert content.run("render").code == 0
    assert outside.read_text() == "mine"
    assert not (content.root / RUN / "run.yml").is_symlink()
    assert checked(content)[0] == 0


def test_a_folder_in_the_place_of_a_file_is_refused(content: Content) -> None:
    content.experiment()
    before = rendered(content)
    (content.root / RUN / "run.yml").unlink()
    content.write(f"{RUN}/run.yml/keep.txt", "mine")
    code, out, err = content.run("render")
    assert (code, out) == (1, "")
    assert "run.yml" in err
    assert (content.root / RUN / "run.yml/keep.txt").read_text() == "mine"
    assert set(before) - set(tree(content.root)) == {f"{RUN}/run.yml"}
    assert litter(content) == []


def test_rendered_that_is_a_file_is_refused(content: Content) -> None:
    content.experiment()
    content.write("rendered", "mine")
    code, _, err = content.run("render")
    assert code == 1
    assert err.startswith("rendered: ")
    assert (content.root / "rendered").read_text() == "mine"


def test_a_root_that_cannot_be_written_changes_nothing(content: Content, monkeypatch: pytest.MonkeyPatch) -> None:
    content.experiment()
    before = rendered(content)
    content.experiment(maxtext={"steps": 3})

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device", "disk")

    monkeypatch.setattr(Path, "write_bytes", full)
    code, out, err = content.run("render")
    monkeypatch.undo()
    assert (code, out, err) == (1, "", "disk: No space left on device\n")
    assert tree(content.root) == before
    assert litter(content) == []


# --- crashes ---


def one_run(content: Content) -> Changes:
    content.experiment("two", maxtext={"steps": 7})
    return plan(content.root, wanted(content))


def several_runs(content: Content) -> Changes:
    content.experiment("two", maxtext={"steps": 7})
    content.experiment("three", launch={"image": "v1", "branch": None, "environment": "prod"})
    return plan(content.root, wanted(content))


def deletion(content: Content) -> Changes:
    (content.root / "experiments/ling3-flash/two.yml").unlink()
    return plan(content.root, wanted(content))


def last_deletion(content: Content) -> Changes:
    for path in (content.root / "experiments/ling3-flash").iterdir():
        path.unlink()
    return plan(content.root, wanted(content))


def first_render(content: Content) -> Changes:
    commit(content.root, Changes({}, ()))
    (content.root / "rendered").rename(content.root / "elsewhere")
    return plan(content.root, wanted(content))


def moved(content: Content) -> Changes:
    content.experiment("two", launch={"image": "v1", "branch": None, "environment": "prod"})
    return plan(content.root, wanted(content))


SCENARIOS = [one_run, several_runs, deletion, last_deletion, first_render, moved]


@pytest.mark.parametrize("swap", [True, False], ids=["swap", "plain"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
def test_a_crash_at_any_step_leaves_the_old_tree_or_the_new(
    scenario: Callable[[Content], Changes], swap: bool, content: Content, tmp_path: Path
) -> None:
    for name in ("one", "two"):
        content.experiment(name)
    rendered(content)
    changes = scenario(content)
    assert changes
    spec = {
        "write": {path: base64.b64encode(data).decode() for path, data in changes.write.items()},
        "delete": changes.delete,
    }
    (tmp_path / "changes.json").write_text(json.dumps(spec))
    left = crash(content.root, tmp_path / "changes.json", *([] if swap else ["plain"]))
    old = files(left[0]["after"])
    new = {path: data for path, data in {**old, **spec["write"]}.items() if path not in changes.delete}
    assert len(left) > 8
    assert [found["killed"] for found in left] == [True] * (len(left) - 1) + [False]
    assert old == {path: base64.b64encode(data).decode() for path, data in tree(content.root).items()}
    assert files(left[-1]["after"]) == new
    for step, found in enumerate(left):
        assert files(found["recovered"]) in (old, new), f"step {step}"
        assert found["litter"] == [], f"step {step}"
        if swap or scenario is first_render:
            assert files(found["after"]) in (old, new), f"step {step}"
            assert found["after"] == found["recovered"], f"step {step}"


def files(state: dict[str, str]) -> dict[str, str]:
    """Return the files of a state: an empty folder is nobody's content."""
    return {path: data for path, data in state.items() if data}


def crash(root: Path, changes: Path, *options: str) -> list[dict[str, Any]]:
    command = [sys.executable, str(Path(__file__).with_name("crash.py")), str(root), str(changes), *options]
    done = subprocess.run(command, capture_output=True, check=True, env={**os.environ, "PYTHONPATH": str(SHIPPED)})
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


# --- two at once ---

RENDER = """
import sys
from renderer.cli import main
sys.exit(max(main(["--root", sys.argv[1], "render", *sys.argv[2:]]) for _ in range(5)))
"""


def test_renders_at_the_same_time_do_not_disturb_each_other(content: Content) -> None:
    for name in ("one", "two", "three"):
        content.experiment(name)
    rendered(content)
    for name in ("one", "two", "three"):
        content.experiment(name, maxtext={"steps": 7})
    commands = [["ling3-flash/one"], ["ling3-flash/two"], [], ["ling3-flash/three"]]
    running = [
        subprocess.Popen(
            [sys.executable, "-c", RENDER, str(content.root), *names],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": str(SHIPPED)},
        )
        for names in commands
    ]
    done = [process.communicate() for process in running]
    said = {line for _, err in done for line in err.decode().splitlines() if " frozen " not in line}
    assert ([process.returncode for process in running], said) == ([0] * 4, set())
    assert checked(content) == (0, ["3 experiments are rendered and up to date"])
    assert litter(content) == []


def test_refused_error_carries_its_problem(content: Content, tmp_path: Path) -> None:
    (content.root / "rendered").symlink_to(tmp_path)
    with pytest.raises(RefusedError) as refused:
        commit(content.root, Changes({"rendered/x": b""}, ()))
    assert [problem.code for problem in refused.value.problems] == ["rendered-link"]


def test_nothing_named_means_nothing_deleted(content: Content) -> None:
    """An empty list of folders is not the whole tree."""
    content.experiment("one")
    rendered(content)
    assert not plan(content.root, {}, [])
    assert list(inspect(content.root, {}, [])) == []
