"""A cleanup that is overtaken by an apply deletes nothing that the launched run mounts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from renderer.cluster.api import Api, ApiError, core
from renderer.cluster.cleanup import Plan, delete, find
from renderer.cluster.launch import Launcher
from renderer.cluster.ledger import State
from renderer.cluster.objects import Objects
from renderer.cluster.observe import look
from renderer.commands import cleanup
from tests.cluster.applied import Applied, applying
from tests.cluster.sandbox import Sandbox

pytestmark = pytest.mark.cluster


@pytest.fixture
def applied(sandbox: Sandbox, control: str, tmp_path: Path) -> Iterator[Applied]:
    with applying(sandbox, tmp_path) as found:
        sandbox.pool("2x2x1")
        yield found


def cleaned(applied: Applied, step: str, meanwhile: Callable[[], object]) -> list[str]:
    """Clean up, with something else happening before a step of the command; return what is printed after the list."""
    original: Callable[..., Any] = getattr(cleanup, step)

    def late(*arguments: Any, **named: Any) -> Any:
        meanwhile()
        return original(*arguments, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(cleanup, step, late)
        ran = applied.merges.content.run("cleanup", "--yes")
    assert ran.code == 0, ran.err
    return [line for line in ran.out.splitlines() if " in " not in line]


def mounted(applied: Applied, name: str) -> set[str]:
    """Return the ConfigMaps that a run's pods mount."""
    (pod,) = applied.sandbox.pods(name)
    return {volume["configMap"]["name"] for volume in pod["spec"]["volumes"] if "configMap" in volume}


def there(applied: Applied) -> set[str]:
    found = applied.api.items(core(applied.sandbox.namespace, "configmaps"))
    return {item["metadata"]["name"] for item in found} - {"kube-root-ca.crt"}


def finished(applied: Applied) -> str:
    """Launch a run and let it finish; return its name."""
    applied.merge("old")
    applied.apply()
    name = applied.only().name
    applied.finish(name)
    return name


def deleted(name: str) -> list[str]:
    return [
        f"deleted JobSet {name}",
        f"deleted ConfigMap run-{name}",
        "2 objects deleted; the ledger keeps its entries",
    ]


def test_the_scripts_of_a_run_that_is_launched_after_the_look_stay(applied: Applied) -> None:
    old = finished(applied)
    applied.merge("new")
    assert cleaned(applied, "delete", applied.apply)[:3] == deleted(old)
    (new,) = applied.entries().keys() - {old}
    applied.sandbox.wait_running(new, 1)
    assert mounted(applied, new) == there(applied)


def test_the_scripts_and_the_node_pool_of_a_run_that_is_launched_during_the_question_are_used(
    applied: Applied,
) -> None:
    old = finished(applied)
    applied.merge("new")
    assert cleaned(applied, "agreed", applied.apply) == deleted(old)
    (new,) = applied.entries().keys() - {old}
    applied.sandbox.wait_running(new, 1)
    assert mounted(applied, new) == there(applied)


def test_what_a_dropped_run_left_stays_where_it_is_launched_after_all(applied: Applied) -> None:
    commit = applied.merge()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Api, "create", unavailable)
        assert [found[0] for found in applied.apply(code=1)] == ["pending"]
    applied.remove()
    applied.apply()
    assert applied.states() == ["stopped"]
    files = there(applied)
    applied.merges.git("checkout", "--quiet", commit, ".")
    applied.merges.commit()
    assert cleaned(applied, "delete", applied.apply) == ["0 objects deleted; the ledger keeps its entries"]
    run = applied.only().name
    applied.sandbox.wait_running(run, 1)
    assert mounted(applied, run) == there(applied) == files


def test_what_a_run_mounts_that_is_dropped_and_recorded_anew_meanwhile_stays(applied: Applied) -> None:
    """Cleanup looks while the run is dropped, after the apply at work has written to its ConfigMaps."""
    original, plans = Launcher._create, list[Plan]()

    def create(self: Launcher, objects: Objects) -> str:
        if not plans:
            dropped = applied.store.change(applied.only(), state=State.STOPPED)
            assert dropped
            plans.append(plan_of(applied).still(plan_of(applied)))
            assert applied.store.change(dropped, state=State.PENDING)
        return original(self, objects)

    applied.merge()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Launcher, "_create", create)
        assert applied.apply() == [("launched", "run", "new experiment")]
    run, files = applied.only().name, there(applied)
    assert files == {item.name for item in plans[0].leftovers}
    assert list(delete(applied.api, plans[0])) == []
    applied.sandbox.wait_running(run, 1)
    assert mounted(applied, run) == there(applied) == files


def plan_of(applied: Applied) -> Plan:
    return find(applied.api, look(applied.api, ["test", "prod"], ()).runs, ["test"])


_CREATE = Api.create


def unavailable(self: Api, path: str, body: Any, *, dry_run: bool = False) -> Any:
    """Create anything but a JobSet."""
    if path.endswith("/jobsets") and not dry_run:
        raise ApiError(503, "ServiceUnavailable", "later")
    return _CREATE(self, path, body, dry_run=dry_run)
