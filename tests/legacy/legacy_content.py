"""The shipped pairs of experiments and recordings, for the tests of legacy equivalence."""

import datetime
from pathlib import Path

from renderer.configure import Configurator
from renderer.layers import Repository
from renderer.legacy import ours, pairs, sources
from renderer.legacy.ours import Ours
from renderer.legacy.pairs import FOLDER, Pair
from renderer.legacy.sources import Recorded

ROOT = Path(__file__).parents[2]
TODAY = datetime.date(2026, 12, 1)


class Shipped:
    """The shipped pairs: each experiment is resolved once, and never changed."""

    def __init__(self) -> None:
        self.configurator = Configurator(Repository(ROOT))
        self.pairs = {pair.experiment: pair for pair in pairs.read(ROOT).pairs}
        self._ours: dict[str, Ours] = {}

    def ours(self, pair: Pair) -> Ours:
        if pair.experiment not in self._ours:
            self._ours[pair.experiment] = ours.read(self.configurator, ROOT / f"experiments/{pair.experiment}.yml")
        return self._ours[pair.experiment]

    def recorded(self, pair: Pair) -> Recorded:
        file = f"{FOLDER}/{pair.recording}"
        return sources.read(ROOT / file, file, pair.version, self.ours(pair).configuration.snapshot)
