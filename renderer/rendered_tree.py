"""The files under rendered/: what should be there, what is, and the one step from the one to the other."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from renderer import exchange, names
from renderer.committed import experiment_path, units_of
from renderer.content_files import LINK
from renderer.freeze import Frozen
from renderer.git import Git
from renderer.integrity import scripts_of, wrong_scripts
from renderer.layers import RENDERED
from renderer.location import Location
from renderer.outputs import POD_SCRIPTS, RUN_FILES, Rendered, pod_digest, pod_files
from renderer.problem import Problem, refuse
from renderer.run_text import POD_DIGEST
from renderer.target import Target

FOLDER = RENDERED
STAGING = ".renderer-staging-"
"""How the folders begin in which a new tree is built."""
_RUN_FILE = re.compile(rf"{FOLDER}/(?:prod|test)/[^/]+/[^/]+/(?:{'|'.join(map(re.escape, RUN_FILES))})")
_POD_FILE = re.compile(rf"{POD_SCRIPTS}/([0-9a-f]{{12}})/[^/]+")


@dataclass(frozen=True, slots=True)
class Changes:
    """What brings the tree up to date, by path under the root; what does not change is not named."""

    write: Mapping[str, bytes]
    delete: tuple[str, ...]

    def __bool__(self) -> bool:
        return bool(self.write or self.delete)


def desired(runs: Iterable[Rendered]) -> dict[str, bytes]:
    """Return every file that `runs` consist of, the pod scripts included, by path under the root."""
    files = {f"{run.folder}/{name}": data for run in runs for name, data in run.files.items()}
    return {**files, **pod_files()} if files else files


def kept(runs: Iterable[Frozen], target: Target) -> dict[str, bytes]:
    """Return every file that frozen `runs` consist of, with the pod scripts they were reviewed with."""
    files = {f"{run.folder}/{name}": data for run in runs for name, data in run.files.items()}
    jobsets = (data for path, data in files.items() if path.endswith("/jobset.yml"))
    pods = {match.decode() for data in jobsets for match in POD_DIGEST.findall(data)}
    for pod in sorted(pods):
        files.update(pod_files() if pod == pod_digest() else target.scripts(f"{POD_SCRIPTS}/{pod}"))
    return files


def existing(root: Path, below: str = FOLDER) -> Iterator[str]:
    """Yield the path under the root of everything below a folder of rendered/ that is not a folder."""

    def fail(error: OSError) -> None:
        if not isinstance(error, FileNotFoundError | NotADirectoryError):
            raise error  # a folder that cannot be read is not an empty one

    start = len(os.path.join(root, ""))  # noqa: PTH118  pathlib takes half of the time of a large tree
    for folder, folders, files in os.walk(root / below, onerror=fail):
        relative = folder[start:].replace(os.sep, "/")
        links = [name for name in folders if os.path.islink(f"{folder}/{name}")]  # noqa: PTH114
        for name in sorted(files + links):
            yield f"{relative}/{name}"


def owned(path: str) -> bool:
    """Return whether the renderer may write and remove `path`."""
    return bool(_RUN_FILE.fullmatch(path) or _POD_FILE.fullmatch(path))


def plan(root: Path, files: Mapping[str, bytes], folders: Sequence[str] | None = None) -> Changes:
    """Return what makes the tree hold `files`: everything owned, or only what lies in `folders`.

    Pod scripts stay as long as any jobset.yml that remains refers to them.
    """
    write = {path: data for path, data in files.items() if not _same(root / path, data)}
    inside = [path for folder in ([FOLDER] if folders is None else folders) for path in existing(root, folder)]
    delete = _runs_left(root, files, inside)
    if folders is None:
        delete += _scripts_left(root, files, delete, inside)
    elif _pods(root, {}, {*write, *delete}) - _pods(root, files, set()):
        # Only now: a large tree takes longer to walk than one run to render.
        delete += _scripts_left(root, files, delete, list(existing(root)))
    return Changes(write, tuple(sorted(delete)))


def _runs_left(root: Path, files: Mapping[str, bytes], present: Iterable[str]) -> list[str]:
    """Return the files of runs among `present` that no experiment renders, be it one that is not checked out."""
    found = [path for path in present if path not in files and _RUN_FILE.fullmatch(path)]
    absent = Git(root).left_out("experiments") if found else {}
    return [path for path in found if not absent.keys() & map(experiment_path, units_of([path]))]


def _scripts_left(root: Path, files: Mapping[str, bytes], gone: Iterable[str], present: Sequence[str]) -> list[str]:
    """Return the pod scripts among `present` that no run needs once `gone` is deleted, be it one not checked out."""
    scripts = [(path, match[1]) for path in present if (match := _POD_FILE.fullmatch(path)) and path not in files]
    if not scripts:
        return []
    known = {match[1] for path in files if (match := _POD_FILE.fullmatch(path))}
    used = _pods(root, files, set(present) - set(gone))
    git = Git(root)
    jobsets = [blob for path, blob in git.left_out(FOLDER).items() if path.endswith("/jobset.yml")]
    used |= {match.decode() for data in git.blobs(jobsets).values() for match in POD_DIGEST.findall(data)}
    return [path for path, pod in scripts if pod in known or pod not in used]


def _same(path: Path, data: bytes) -> bool:
    return path.is_file() and not path.is_symlink() and path.read_bytes() == data


def _pods(root: Path, files: Mapping[str, bytes], remaining: set[str]) -> set[str]:
    """Return the digests of the pod scripts that jobsets refer to: those in `files`, and the others on disk."""
    jobsets = [data for path, data in files.items() if path.endswith("/jobset.yml")]
    others = [root / path for path in remaining - set(files) if path.endswith("/jobset.yml")]
    jobsets += [path.read_bytes() for path in others if path.is_file()]
    return {match.decode() for data in jobsets for match in POD_DIGEST.findall(data)}


def inspect(
    root: Path,
    files: Mapping[str, bytes],
    folders: Sequence[str] | None = None,
    frozen: Collection[str] = (),
    target: Target | None = None,
) -> Iterator[Problem]:
    """Yield a problem per file under rendered/ that is missing, edited by hand, stale, orphaned or not the renderer's.

    With `folders`, files that `files` does not name are looked for in these only. `frozen` are the folders of runs that
    stay as they were reviewed. Pod scripts that `target` has too may be left over: two merges that each removed one of
    the last two runs of them leave them behind.
    """
    if (root / FOLDER).is_symlink():
        yield Problem("rendered-link", Location(FOLDER), "", LINK)
    yield from _damaged_scripts(files)
    for path, data in sorted(files.items()):
        if not (root / path).is_file():
            yield _problem("rendered-missing", path, "is missing")
        elif not _same(root / path, data):
            if _edited(root, path):
                yield _problem("rendered-edited", path, "was edited by hand")
            elif path.rpartition("/")[0] in frozen:
                yield _problem(
                    "rendered-frozen", path, "is not as reviewed, and its experiment's content did not change"
                )
            else:
                yield _problem("rendered-stale", path, "is stale: its layers, the template or the renderer changed")
    inside = [path for folder in ([FOLDER] if folders is None else folders) for path in existing(root, folder)]
    runs = _runs_left(root, files, inside)
    left = {*runs, *_scripts_left(root, files, runs, inside)}
    yield from _surplus(files, inside, left, target)


def _surplus(
    files: Mapping[str, bytes], present: Iterable[str], left: Collection[str], target: Target | None
) -> Iterator[Problem]:
    """Yield a problem per file of `present` that nothing needs: the renderer's in `left`, and what is not its own."""
    for path in present:
        if path in files:
            continue
        if not owned(path):
            message = "is not the renderer's: nothing else belongs under rendered/; delete it"
            yield Problem("rendered-unknown", Location(path), "", message)
        elif path in left and not (target and _POD_FILE.fullmatch(path) and target.has(path)):
            yield _problem("rendered-orphan", path, "is orphaned: no experiment renders it")


def _damaged_scripts(files: Mapping[str, bytes]) -> Iterator[Problem]:
    """Yield a problem per folder of pod scripts that a run refers to and that is not what its name says."""
    for pod in sorted(_pods(Path(), files, set())):
        if wrong_scripts(pod, scripts_of(pod, files)):
            message = "is missing or was edited; restore it from git, or run renderer render --refresh for its runs"
            yield Problem("rendered-digest", Location(f"{POD_SCRIPTS}/{pod}"), "", message)


def _problem(code: str, path: str, message: str) -> Problem:
    return Problem(code, Location(path), "", f"{message}; run renderer render")


def _edited(root: Path, path: str) -> bool:
    """Return whether a run's files no longer carry their own digest. Pod scripts are named by theirs."""
    if _POD_FILE.fullmatch(path):
        return True
    folder = (root / path).parent
    files = {name: (folder / name).read_bytes() for name in RUN_FILES if (folder / name).is_file()}
    return not names.sealed(files)


def commit(root: Path, changes: Changes) -> None:
    """Make the changes in one step: a crash at any point leaves the old tree or the new one.

    The smallest folder that holds all changes is built anew beside the tree (unchanged files are linked, so neither
    their bytes nor their times change) and put in its place.
    """
    _refuse_foreign(root, changes)
    with _locked(root):
        if not changes:
            return
        target = _target(root, changes)
        staging = Path(tempfile.mkdtemp(prefix=STAGING, dir=root))
        try:
            (staging / ".gitignore").write_text("*\n", encoding="utf-8")
            _build(root, target, staging / "new", changes)
            exchange.replace(target, staging)
        finally:
            exchange.recover(staging, root / FOLDER)


def _refuse_foreign(root: Path, changes: Changes) -> None:
    """Refuse to write through a link, which may lead anywhere, or over something that is no folder."""
    paths = [Path(path) for path in (*changes.write, *changes.delete)]
    for folder in sorted({parent.as_posix() for path in paths for parent in path.parents} - {"."}):
        if (root / folder).is_symlink():
            refuse("rendered-link", Location(folder), "is a symbolic link: the renderer replaces real folders only")
        if (root / folder).exists() and not (root / folder).is_dir():
            refuse("rendered-link", Location(folder), "is not a folder: move it away")


@contextmanager
def _locked(root: Path) -> Iterator[None]:
    """Hold the root, so that two renders wait for each other, and clear what a crashed one left."""
    handle = os.open(root, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        for staging in root.glob(f"{STAGING}*"):
            if staging.is_dir() and not staging.is_symlink():
                exchange.recover(staging, root / FOLDER)
        yield
    finally:
        os.close(handle)


def _target(root: Path, changes: Changes) -> Path:
    """Return the folder to replace: it holds every change, its parent exists, and something is left in it."""
    paths = [root / path for path in (*changes.write, *changes.delete)]
    target = Path(os.path.commonpath([path.parent for path in paths]))
    deleted = set(changes.delete)
    while target != root / FOLDER and (not target.parent.is_dir() or not _keeps(root, target, changes, deleted)):
        target = target.parent
    return target


def _keeps(root: Path, folder: Path, changes: Changes, deleted: set[str]) -> bool:
    prefix = folder.relative_to(root).as_posix() + "/"
    if any(path.startswith(prefix) for path in changes.write):
        return True
    return any(path not in deleted for path in existing(root, prefix))


def _build(root: Path, target: Path, new: Path, changes: Changes) -> None:
    new.mkdir()
    gone = {*changes.delete, *changes.write}
    prefix = target.relative_to(root).as_posix() + "/"
    made: set[str] = set()
    for path in existing(root, prefix):
        if path not in gone:
            _link(root / path, _place(new, path.removeprefix(prefix), made))
    for path, data in changes.write.items():
        _place(new, path.removeprefix(prefix), made).write_bytes(data)


def _place(new: Path, path: str, made: set[str]) -> Path:
    """Return where a file belongs below `new`, its folder made once."""
    folder = path.rpartition("/")[0]
    if folder not in made:
        (new / folder).mkdir(parents=True, exist_ok=True)
        made.add(folder)
    return new / path


def _link(old: Path, new: Path) -> None:
    try:
        new.hardlink_to(old)
    except OSError:  # a file system without hard links
        shutil.copy2(old, new, follow_symlinks=False)
