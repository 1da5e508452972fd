"""What edited presets and datasets would do to frozen runs, found by rendering these anew in memory."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from posixpath import normpath

from renderer import compare
from renderer.committed import Reader, Unit
from renderer.configure import Configuration
from renderer.jobset import Names, jobset_yml, watcher_yml
from renderer.location import Location
from renderer.merge import Leaf
from renderer.outputs import DAMAGED
from renderer.problem import Problem
from renderer.report.data import Impact, Role
from renderer.report.grouping import Group, Groups
from renderer.report.sources import Sources
from renderer.report.values import differences, origin, shown
from renderer.run_file import derive_json, run_yml
from renderer.run_spec import Run
from renderer.runs import Committed
from renderer.yaml_io import Node, read

_LAYER = re.compile(r"(?:presets/[^/]+/(?:model|topology/[^/]+/[^/]+|environment/[^/]+)|datasets/.+)\.yml")
_POD = re.compile(rb'name: "(pod-[0-9a-f]{12})"')


@dataclass(frozen=True, slots=True)
class Edit:
    """One key of an edited layer file, with where it stands now."""

    path: str
    old: object
    new: object
    place: Location


def layer_files(changed: Iterable[str]) -> list[str]:
    """Return which of these paths may be layers below the experiment: presets, datasets, and datasets by path."""
    return [path for path in changed if _LAYER.fullmatch(path) or (path.endswith(".yml") and not _elsewhere(path))]


def _elsewhere(path: str) -> bool:
    return path.startswith(("experiments/", "rendered/", "results/", "tests/", ".github/", "presets/"))


def layers_of(sources: Sources, units: Iterable[Unit], files: Iterable[str]) -> list[str]:
    """Return which of `layer_files` are layers: of those outside presets/ and datasets/, what an experiment names."""
    files = list(files)
    if all(map(_LAYER.fullmatch, files)):
        return files
    found = filter(None, (sources.configure(unit, []) for unit in units))
    named = set().union(*(_used(sources, configuration) for configuration in found))
    return [path for path in files if _LAYER.fullmatch(path) or path in named]


def edits(path: str, old: bytes | None, new: bytes | None) -> Iterator[Edit]:
    """Yield every key that an edited layer file sets to another value, or no longer sets."""
    prefix = "" if path.startswith("presets/") else "maxtext"
    before, after = (dict(_entries(read(data, path, _unread()), prefix)) for data in (old or b"", new or b""))
    for key in sorted({*before, *after}):
        was, now = (side[key].value if key in side else compare.ABSENT for side in (before, after))
        if was != now or type(was) is not type(now):
            yield Edit(key, was, now, after[key].key_at if key in after else Location(path))


def _unread() -> list[Problem]:
    """Return a list for problems that others report."""
    return []


def _entries(node: Node, path: str) -> Iterator[tuple[str, Node]]:
    """Yield (dotted path, node) of every value below a mapping."""
    for key, child in node.value.items():
        below = f"{path}.{key}" if path else key
        if isinstance(child.value, dict) and child.value:
            yield from _entries(child, below)
        else:
            yield below, child


def impact(
    sources: Sources, reader: Reader, frozen: Mapping[Unit, Committed], edited: Mapping[str, list[Edit]]
) -> tuple[Impact, Groups]:
    """Return what the edited files would change in frozen runs, and the values, grouped over the runs."""
    counts = dict.fromkeys(("frozen", "changed", "earlier", "invalid"), 0)
    groups = Groups(Role.IMPACT)
    for unit, run in frozen.items():
        files = reader.files(run)
        found = _differences(sources, unit, run, files, edited)
        if found is None:
            continue
        counts["frozen"] += 1
        if isinstance(found, _Invalid):
            counts["invalid"] += 1
            continue
        mine = [(item, difference) for item, difference in found.rows if item]
        counts["changed" if mine else "earlier"] += bool(found.rows)
        for _, (path, old, new) in mine:
            group = Group.of(path, shown(path, old), shown(path, new), origin(found.configuration, path))
            groups.add(group, run.experiment)
    return Impact(files=tuple(sorted(edited)), **counts), groups


@dataclass(frozen=True, slots=True)
class _Invalid:
    """The frozen run's experiment makes no run any more."""


@dataclass(frozen=True, slots=True)
class _Found:
    configuration: Configuration
    rows: list[tuple[bool, tuple[str, object, object]]]


def _differences(
    sources: Sources, unit: Unit, run: Committed, files: Mapping[str, bytes], edited: Mapping[str, list[Edit]]
) -> _Found | _Invalid | None:
    """Return how a frozen run differs from a fresh one, each with whether an edit did it; nothing if it uses none."""
    fresh = sources.run(unit)
    if fresh is None:
        return _Invalid() if _may_use(unit, edited) else None
    configuration, specified = fresh
    used = _used(sources, configuration) & edited.keys()
    if not used:
        return None
    keys = {edit.path for path in used for edit in edited[path]}
    try:
        found = differences(files, _anew(specified, run, files))
    except DAMAGED:
        return _Invalid()
    return _Found(configuration, [(_covers(keys, path), (path, old, new)) for path, old, new in found])


def _may_use(unit: Unit, edited: Mapping[str, object]) -> bool:
    return any(path.startswith(f"presets/{unit[0]}/") or not path.startswith("presets/") for path in edited)


def _used(sources: Sources, configuration: Configuration) -> set[str]:
    """Return the files of the layers below the experiment."""
    used = set(sources.repository.preset_files(configuration.launch.selection).values())
    leaf = configuration.deploy.get("DATASETS_YAML")
    chosen = leaf.node.value if isinstance(leaf, Leaf) else None
    if isinstance(chosen, str):
        used.add(normpath(chosen) if "/" in chosen or chosen.endswith(".yml") else f"datasets/{chosen}.yml")
    return used


def _covers(keys: set[str], path: str) -> bool:
    return path in keys or any(key.startswith(f"{path}.") or path.startswith(f"{key}.") for key in keys)


def _anew(run: Run, committed: Committed, files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Return the run's files as they would be now, under the frozen run's names and with its pod scripts."""
    pod = _POD.search(files["jobset.yml"])
    names = Names(
        object=committed.name,
        run=committed.run_name,
        pod_config_map=pod[1].decode() if pod else "",
        content_digest=committed.content,
        experiment_digest=committed.own,
        base_output_directory=str(run.maxtext.get("base_output_directory") or ""),
    )
    fresh = {"jobset.yml": jobset_yml(run, names), "run.yml": run_yml(run, names.run), "derive.json": derive_json(run)}
    return {**fresh, "watcher.yml": watcher_yml(run, names)} if run.watcher else fresh


def frozen_runs(reader: Reader, units: Iterable[Unit]) -> dict[Unit, Committed]:
    """Return the rendered runs among experiments that the branch does not touch."""
    found = {}
    for unit in units:
        run = next(iter(reader.snapshot([unit]).runs), None)
        if run and run.name and not run.problem:
            found[unit] = run
    return found
