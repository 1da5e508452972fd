"""`renderer preview`: what an experiment or bare presets come to; writes nothing (the RFC's --dry-run)."""

from __future__ import annotations

from collections.abc import Iterator

import click

from pod.derivations import Override
from renderer import policy
from renderer.checks import credentials
from renderer.checks.launch import needed
from renderer.cli import OK, App
from renderer.commands.options import checkout_branch, say, selector_nodes, selectors, show
from renderer.configure import Configuration, Configurator
from renderer.derived import overrides
from renderer.layers import Repository
from renderer.location import COMMAND_LINE
from renderer.merge import Tree, leaves
from renderer.pipeline import Result, figures, judge
from renderer.problem import Problem, RefusedError, counted, errors
from renderer.scalars import write
from renderer.yaml_io import Node


@click.command("preview")
@click.argument("experiment", required=False)
@click.argument("values", nargs=-1, metavar="[KEY=VALUE]...")
@selectors
@click.pass_obj
def command(app: App, /, experiment: str | None, values: tuple[str, ...], **given: str | None) -> int:
    """Show both namespaces with each value's origin, what the pod adds, and the rendered files. Writes nothing.

    Without EXPERIMENT the presets that the selectors choose are shown. Selectors win over `launch:`, KEY=VALUE over
    every layer.
    """
    if experiment and "=" in experiment:
        values, experiment = (experiment, *values), None
    repository = Repository(app.root)
    problems: list[Problem] = []
    rules = policy.load(repository.root, problems)
    configuration = _configure(repository, experiment, values, selector_nodes(given), problems)
    result = judge(configuration, rules, problems, to_launch=False) if configuration else None
    if configuration is None or result is None or errors(problems):
        raise RefusedError(dict.fromkeys(problems))
    show(dict.fromkeys(problems))
    say(*_sections(result), known=credentials(configuration))
    return OK


def _configure(
    repository: Repository,
    name: str | None,
    values: tuple[str, ...],
    given: dict[str, Node],
    problems: list[Problem],
) -> Configuration | None:
    experiment = repository.experiment(repository.find_experiment(name), problems) if name else None
    launch = {**(experiment.launch if experiment else {}), **given}
    if "branch" not in launch and "image" not in launch and (branch := checkout_branch()):
        given = {**given, "branch": Node(branch, COMMAND_LINE)}
    if errors(problems):
        return None
    return Configurator(repository).configure(experiment, problems, selectors=given, arguments=values, inside=False)


def _sections(result: Result) -> Iterator[str]:
    """Yield every line."""
    configuration, rendered = result.configuration, result.rendered
    launch, numbers = configuration.launch, figures(configuration)
    yield f"# === run: {configuration.file or 'presets alone'} ==="
    hosts, devices = counted(numbers.slice.hosts, "host"), counted(numbers.slice.devices, "device")
    place = f"{counted(launch.chips, 'chip')} ({numbers.slice.topology}, {hosts})"
    yield f"# {launch.model}, {place}, {launch.environment}, {launch.mode} mode"
    yield f"# mesh {numbers.mesh} over {devices}, global batch {numbers.global_batch}"
    missing = list(needed(configuration))
    if missing:
        yield "# needed to launch:"
        yield from (f"#   {problem.path}: {problem.message}" for problem in map(Problem.masked, missing))
    yield "# === deploy (to jobset.yml) ==="
    yield from _origins(configuration.deploy)
    yield "# === maxtext (to run.yml) ==="
    yield from _origins(configuration.maxtext)
    yield "# === overrides (computed in the pod, passed as arguments) ==="
    for item in overrides(configuration, rendered.run):
        if isinstance(item, Override):
            yield f"{item.key}: {write(item.value)}  # {item.rule}: {item.reason}"  # type: ignore[arg-type]
        else:
            yield f"# {item.rule}: {item.reason}"
    for name in ("jobset.yml", "run.yml", "derive.json", "watcher.yml"):
        if name in rendered.files:
            yield f"# === {name} ==="
            yield from rendered.files[name].decode().rstrip("\n").split("\n")


def _origins(tree: Tree) -> Iterator[str]:
    for path, leaf in leaves(tree):
        yield f"{path}: {write(leaf.node.value)}  # {leaf.node.key_at.in_line}"
