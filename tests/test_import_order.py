"""The order of the modules: each imports only from above, so that reading from the top needs nothing from below."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from content import SHIPPED

# fmt: off
ORDER = [
    "location", "scalars", "secrets", "problem", "yaml_io", "manifest_yaml", "content_files", "yaml_comments",
    "yaml_round_trip",
    "key_types", "keys", "yaml_edit", "schema_shapes", "schema", "schema_script", "schema_update", "maxtext_words",
    "maxtext_types", "codes", "layers", "tables", "clusters", "extensions", "merge", "overrides", "launch", "names",
    "configure", "accelerators", "mesh", "origins", "checks", "run_spec", "policy", "derived", "jobset_schema",
    "jobset", "run_file", "run_text", "outputs", "rendered_run", "output_checks", "git", "runs", "plan", "committed",
    "target", "collisions", "freeze", "promises", "integrity", "pipeline", "exchange", "rendered_tree", "run_rows",
    "affected", "compare", "manifests", "editor_schema", "key_page", "validation", "legacy", "report",
    "train_log", "cluster", "smoke", "cli", "commands", "__main__",
]
# fmt: on
"""Modules and packages of renderer/, each below all that it imports. A new one goes as high as its imports allow.

The commands come after `cli`, which loads them by name: they take its App and its exit codes.
"""

RENDERER = sorted((SHIPPED / "renderer").rglob("*.py"))
POD = sorted((SHIPPED / "pod").rglob("*.py"))


def dotted(path: Path) -> str:
    return ".".join(path.relative_to(SHIPPED).with_suffix("").parts).removesuffix(".__init__")


def imported(path: Path) -> Iterator[str]:
    """Yield the dotted name of everything that a module imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{dotted(path)}: relative import"
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def part(name: str) -> str:
    """Return the module or package of renderer/ that a dotted name lies in, nothing for the package itself."""
    return [*name.split("."), ""][1]


MODULES = {dotted(path): path for path in RENDERER}


@pytest.mark.parametrize("name", sorted({part(name) for name in MODULES} - {""}))
def test_every_module_imports_only_from_above(name: str) -> None:
    assert name in ORDER, f"add {name} to ORDER"
    above = ORDER[: ORDER.index(name) + 1]
    for module, path in MODULES.items():
        if part(module) == name:
            below = {found for found in imported(path) if found.startswith("renderer.") and part(found) not in above}
            assert below == set(), f"{module} imports {below}"


def test_order_names_each_module_once() -> None:
    assert len(ORDER) == len(set(ORDER))


def test_no_cycle_inside_a_package() -> None:
    graph = {module: set[str]() for module in MODULES}
    for module, path in MODULES.items():
        for found in imported(path):
            target = found if found in MODULES else found.rpartition(".")[0]
            if target in MODULES and target not in {module, "renderer"} and part(target) == part(module):
                graph[module].add(target)
    while graph:
        free = {module for module, needs in graph.items() if not needs}
        assert free, f"cycle among {sorted(graph)}"
        graph = {module: needs - free for module, needs in graph.items() if module not in free}


@pytest.mark.parametrize("path", POD, ids=dotted)
def test_the_pod_imports_nothing_of_the_renderer(path: Path) -> None:
    """What runs in a pod finds MaxText there and what that brings along, but no renderer."""
    allowed = sys.stdlib_module_names | {
        "pod",
        "derivations",
        "start_trainer",
        "run_pretrain",
        "maxtext",
        "MaxText",
        "omegaconf",
        "yaml",
    }
    assert {name.split(".")[0] for name in imported(path)} <= allowed
    if path.name == "derivations.py":
        assert {name.split(".")[0] for name in imported(path)} <= sys.stdlib_module_names


@pytest.mark.parametrize("path", [*RENDERER, *POD], ids=dotted)
def test_imports_stand_at_the_top(path: Path) -> None:
    tree = ast.parse(path.read_text())
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    inside = [
        ast.unparse(node)
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    if path.parent.name == "pod" or path.name == "schema_script.py":  # they run where MaxText may be missing
        inside = [line for line in inside if not any(word in line.lower() for word in ("maxtext", "import pyconfig"))]
    assert inside == []
    assert "TYPE_CHECKING" not in path.read_text()


SCRIPTS = {"renderer.schema_script", "renderer.legacy.stand_in"}
"""What other interpreters run: programs of their own."""
BELOW = [
    path
    for path in RENDERER
    if part(dotted(path)) not in {"commands", "cli", "__main__"} and dotted(path) not in SCRIPTS
]


@pytest.mark.parametrize("path", BELOW, ids=dotted)
def test_nothing_below_the_command_line_prints_or_exits(path: Path) -> None:
    calls = [ast.unparse(node.func) for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.Call)]
    assert [call for call in calls if call in {"print", "exit", "quit", "sys.exit", "click.echo", "os._exit"}] == []
    assert [call for call in calls if call.lower().endswith("console.print")] == []
    assert not {name.split(".")[0] for name in imported(path)} & {"click", "rich"}


LATE = {
    "renderer.cli",  # the one command that is called
    "renderer.commands.render",  # rich, for tables
    "renderer.jobset_schema",  # jsonschema_rs, as is the next
    "renderer.report.codec",
    "renderer.secrets",  # detect_secrets, whose modules are found by name
    "renderer.schema_script",  # MaxText and what it brings along
}
"""What is loaded by name when it is needed, as it loads slowly, and may not be there."""


def test_modules_are_loaded_by_name_in_few_places() -> None:
    found = {
        dotted(path)
        for path in RENDERER
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("import_module", "__import__"))
    }
    assert found == LATE
