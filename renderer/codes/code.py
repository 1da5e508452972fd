"""What is said about one kind of problem."""

from __future__ import annotations

from dataclasses import dataclass

from renderer.problem import Severity


@dataclass(frozen=True, slots=True)
class Code:
    """One kind of problem. `adjustable`: presets/policy.yml may make it a warning or switch it off.

    The others stand for something without which no run can be made, or which nobody may waive.
    """

    name: str
    cause: str
    remedy: str
    adjustable: bool = False
    severity: Severity = Severity.ERROR
