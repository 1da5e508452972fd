"""`renderer preflight`: what the cluster lacks for rendered runs, and what to type for it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import click

from renderer import clusters, policy
from renderer.cli import OK, PROBLEMS, App
from renderer.cluster.facts import Facts, gather
from renderer.cluster.findings import Finding
from renderer.cluster.needs import Needs, needs
from renderer.cluster.preflight import check
from renderer.commands.on_cluster import FEW, cluster, load_clusters
from renderer.commands.options import format_option, say, say_json
from renderer.layers import ENVIRONMENTS, Repository
from renderer.manifest_yaml import load
from renderer.outputs import DAMAGED
from renderer.policy import Rules
from renderer.problem import Problem, RefusedError, Severity, counted, errors
from renderer.rendered_run import RenderedRun, damaged, rendered_run

_NAMED = 3
"""How many runs a finding names; JSON names all."""


@click.command("preflight")
@click.argument("experiments", nargs=-1, metavar="[EXPERIMENT]...")
@click.option("--environment", type=click.Choice(ENVIRONMENTS), help="All rendered runs of this environment.")
@format_option("text", "json")
@click.pass_obj
def command(app: App, experiments: tuple[str, ...], environment: str | None, form: str) -> int:
    """Check that the cluster has what the rendered runs of EXPERIMENTs need, and print how to get what is missing.

    The cluster is that of kubeconfig's current context. Nothing is changed there. Warnings do not fail.
    """
    if bool(experiments) == bool(environment):
        raise click.UsageError("name experiments, or an --environment")
    repository = Repository(app.root)
    runs = [
        _run(rendered_run(repository, name))
        for name in dict.fromkeys(experiments) or _names(app.root, str(environment))
    ]
    judge = _Judge.of(app.root)
    with cluster(FEW) as api:
        facts = gather(api, (run.needs.namespace for run in runs))
    found = judge.findings(facts, runs)
    if form == "json":
        say_json(_as_data(facts, runs, found))
    else:
        _print(facts, runs, found)
    return PROBLEMS if any(finding.severity is Severity.ERROR for finding in found) else OK


@dataclass(frozen=True, slots=True)
class _Run:
    """A rendered run: its name as people know it, its environment, and what it needs."""

    name: str
    environment: str
    needs: Needs


@dataclass(frozen=True, slots=True)
class _Judge:
    clusters: clusters.Clusters
    policy: policy.Policy

    @classmethod
    def of(cls, root: Path) -> _Judge:
        """Return the judge by the reviewed files under the root. Raises RefusedError for what is wrong in them."""
        problems: list[Problem] = []
        judge = cls(load_clusters(root), policy.load(root, problems))
        if errors(problems):
            raise RefusedError(problems)
        return judge

    def findings(self, facts: Facts, runs: Iterable[_Run]) -> dict[Finding, list[str]]:
        """Return the findings, errors first, each with the names of the runs that it is about."""
        found: dict[Finding, list[str]] = {}
        for run in runs:
            its_cluster = self.clusters.by_environment.get(run.environment)
            for finding in check(facts, run.needs, its_cluster, self.policy.rules.get(run.environment, Rules())):
                found.setdefault(finding, []).append(run.name)
        return dict(sorted(found.items(), key=lambda item: item[0].severity is not Severity.ERROR))


def _names(root: Path, environment: str) -> list[str]:
    jobsets = sorted((root / "rendered" / environment).glob("*/*/jobset.yml"))
    return [f"{jobset.parent.parent.name}/{jobset.parent.name}" for jobset in jobsets]


def _run(rendered: RenderedRun) -> _Run:
    jobset, watcher = (rendered.files.get(name) for name in ("jobset.yml", "watcher.yml"))
    _, environment, name = rendered.folder.split("/", 2)
    try:
        found = needs(load((jobset or b"").decode()), load(watcher.decode()) if watcher else None)
    except DAMAGED as error:
        damaged(f"{rendered.folder}/jobset.yml", error)
    return _Run(name, environment, found)


def _as_data(facts: Facts, runs: list[_Run], found: dict[Finding, list[str]]) -> dict[str, object]:
    findings = [
        {"severity": finding.severity.value, "what": finding.what, "remedy": finding.remedy, "runs": names}
        for finding, names in found.items()
    ]
    return {"caller": facts.caller, "runs": [run.name for run in runs], "findings": findings}


def _print(facts: Facts, runs: list[_Run], found: dict[Finding, list[str]]) -> None:
    failing = sum(finding.severity is Severity.ERROR for finding in found)
    counts = f"{counted(failing, 'error')}, {counted(len(found) - failing, 'warning')}"
    say(f"{counted(len(runs), 'run')}, as {facts.caller}: {counts}")
    for number, (finding, names) in enumerate(found.items(), 1):
        about = "" if len(names) == len(runs) else f" ({_some(names)})"
        say(f"{number:>3}  {finding.severity.value:<7}  {finding.what}{about}")
    for number, finding in enumerate(found, 1):
        say("", f"# {number}. {finding.what}", *finding.remedy.split("\n"))


def _some(names: list[str]) -> str:
    """Return the first names, and how many there are besides."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
