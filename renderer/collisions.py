"""Two experiments that share a name, or would write into one directory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from renderer.location import Location
from renderer.names import output_directory
from renderer.problem import Problem


@dataclass(frozen=True, slots=True)
class Identity:
    """What must differ between experiments.

    `experiment` is its model and effective name, `object` the run's object name, `resume` the run it continues, if any.
    Problems are reported at `place`.
    """

    file: str
    place: Location
    experiment: tuple[str, str]
    object: str
    run_name: str
    base_output_directory: str
    resume: str

    @property
    def output(self) -> str:
        """The folder that the run writes to, however it is spelt; without a base, its name under MaxText's own."""
        return output_directory(self.base_output_directory, self.run_name) or self.run_name


def check(identities: Iterable[Identity]) -> Iterator[Problem]:
    """Yield a problem for each experiment that takes what one before it has."""
    seen: dict[tuple[str, object], Identity] = {}
    for one in identities:
        for key, code, path, message in (
            (("experiment", one.experiment), "name-twice", "launch.name", f"the name {one.experiment[1]} is taken"),
            (("object", one.object), "name-twice", "launch.name", f"the name {one.object} is taken"),
            (
                ("output", one.output),
                "output-twice",
                "maxtext.run_name",
                f"run_name {one.run_name} and its output directory are taken",
            ),
        ):
            other = seen.setdefault(key, one)
            if other is not one and not _resumes(one, other):
                yield Problem(code, one.place, path, f"{message} by {other.file}")
                break


def _resumes(one: Identity, other: Identity) -> bool:
    """Whether one of the two continues the other's checkpoints; two that continue the same run collide."""
    return bool(one.resume) != bool(other.resume)
