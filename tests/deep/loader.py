"""Resolve configurations with MaxText's own loader, many in one process (its import takes half a minute).

Run by MaxText's interpreter: `python tests/deep/loader.py [PACKAGE]`, PACKAGE being maxtext unless given.
First one line {"ready": true} on stdout; then one line of JSON out for each line in, until stdin ends:

    {"argv": ["/path/run.yml", "key=value", ...], "environment": {"NAME": "VALUE"}}  (environment: optional)
    -> {"ok": true, "config": {every key: resolved value}}
    or {"ok": false, "type": "ValidationError", "error": "the loader's own words"}

`argv` is what the trainer gets after its module: one run.yml, then arguments. `environment` holds for that
one line only. Values are plain JSON; an enum is its value, a dtype its text, a float
that is not finite as NaN or Infinity. What MaxText logs goes to stderr. Without a TPU give compile_topology and
compile_topology_num_slices, or skip_jax_distributed_system, or the loader starts jax.distributed.
"""

from __future__ import annotations

import contextlib
import enum
import importlib
import json
import os
import sys
from collections.abc import Iterator
from typing import Any

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("DECOUPLE_GCLOUD", "TRUE")


def main(package: str = "maxtext") -> int:
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # whatever a library prints must not stand between the answers
    loader = _loader(package)
    loader._handle_config_exception = str  # it would exit or log; its caller raises the error by itself
    _answer(answers, {"ready": True})
    for line in sys.stdin:
        question = json.loads(line)
        with _environment(question.get("environment", {})):
            _answer(answers, _resolve(loader, question["argv"]))
    return 0


def _loader(package: str) -> Any:
    for name in (f"{package}.configs.pyconfig", f"{package}.pyconfig"):
        with contextlib.suppress(ModuleNotFoundError):
            return importlib.import_module(name)
    raise SystemExit(f"{sys.executable} has no {package} with a pyconfig")


@contextlib.contextmanager
def _environment(extra: dict[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.update(extra)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _resolve(loader: Any, argv: list[str]) -> dict[str, Any]:
    try:
        config = loader.initialize(["", *argv])
        return {"ok": True, "config": {key: _plain(value) for key, value in config.get_keys().items()}}
    except BaseException as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return {"ok": False, "type": type(error).__name__, "error": str(error)}


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, enum.Enum):
        return _plain(value.value)
    return value if value is None or type(value) in {bool, int, float, str} else str(value)


def _answer(stream: Any, answer: dict[str, Any]) -> None:
    stream.write(json.dumps(answer) + "\n")
    stream.flush()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
