"""What stands in a cluster and is not as this package makes it, as data: what it is, what is wrong, what mends it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Damaged:
    """An object in the cluster that is not as this package makes it: what is wrong with it, and what mends it."""

    kind: str
    namespace: str
    name: str
    wrong: str
    mend: str = ""

    @property
    def command(self) -> str:
        """The command that shows it."""
        return f"kubectl get {self.kind.lower()} {self.name} -n {self.namespace} -o yaml"

    @property
    def data(self) -> dict[str, str]:
        """What a machine may want to know of it."""
        about = {"kind": self.kind, "namespace": self.namespace, "name": self.name}
        return {**about, "wrong": self.wrong, "command": self.command}

    def __str__(self) -> str:
        return f"{self.kind} {self.name} in {self.namespace} {self.wrong}"


class LedgerError(Exception):
    """What stands in the control namespace is no ledger; the text says which object and why."""


class UnreadableError(LedgerError):
    """Objects of the ledger that cannot be read."""

    def __init__(self, *damaged: Damaged) -> None:
        super().__init__("; ".join(map(str, damaged)))
        self.damaged = damaged
