"""Start MaxText's trainer so that a configuration error ends with exit code 2, and change nothing else.

Usage: start_trainer.py MODULE [ARGUMENT ...]. MaxText means to exit with 2, but re-raises (exit 1) where
unittest is loaded, which jax always does; and it takes a failed start of jax.distributed for a configuration
error, which a restart may well cure.
"""

from __future__ import annotations

import functools
import importlib
import runpy
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import NoReturn

from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

CONFIGURATION_ERROR = 2
_CONFIGURATION_ERRORS = (
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    AssertionError,
    NotImplementedError,
    FileNotFoundError,
    OmegaConfBaseException,
    YAMLError,
)
_CLUSTER_STEP = "maybe_initialize_jax_distributed_system"
_CHECKS = (
    (("utils.train_utils", "train_utils"), "validate_train_config"),
    (("utils.maxtext_utils", "maxtext_utils"), "create_device_mesh"),
)
"""Configuration checks of MaxText outside its loader, by the places where versions have them."""


def main(argv: list[str]) -> None:
    """Run the module argv[1] as __main__ with the rest as its arguments, in this process."""
    module = argv[1]
    sys.argv = argv[1:]
    sys.path[0] = str(Path.cwd())  # as `python -m` has it, instead of the folder of this script
    _guard(module.partition(".")[0])
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _guard(package: str) -> None:
    loader = _first_module(package, ("configs.pyconfig", "pyconfig"))
    if loader is None:
        return
    report = getattr(loader, "_handle_config_exception", None)
    if report is None:
        loader.initialize = _exits_with_two(loader.initialize, _say)  # type: ignore[attr-defined]
    else:
        loader._handle_config_exception = functools.partial(_exit_if_configuration, report=report)  # type: ignore[attr-defined]
    for places, name in _CHECKS:
        module = _first_module(package, places)
        if hasattr(module, name):
            setattr(module, name, _exits_with_two(getattr(module, name), report or _say))


def _first_module(package: str, places: tuple[str, ...]) -> ModuleType | None:
    for place in places:
        name = f"{package}.{place}"
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            if error.name is None or not name.startswith(error.name):
                raise
    return None


def _exits_with_two(check: Callable[..., object], report: Callable[[Exception], object]) -> Callable[..., object]:
    @functools.wraps(check)
    def guarded(*args: object, **kwargs: object) -> object:
        try:
            return check(*args, **kwargs)
        except Exception as error:
            _exit_if_configuration(error, report=report)
            raise

    return guarded


def _exit_if_configuration(error: Exception, *, report: Callable[[Exception], object]) -> None:
    """Exit with 2 after MaxText's own report if `error` is about the configuration; else return."""
    if isinstance(error, _CONFIGURATION_ERRORS) and not _in_cluster_step(error):
        _exit_after(report, error)


def _in_cluster_step(error: Exception) -> bool:
    frame = error.__traceback__
    while frame is not None:
        if frame.tb_frame.f_code.co_name == _CLUSTER_STEP:
            return True
        frame = frame.tb_next
    return False


def _exit_after(report: Callable[[Exception], object], error: Exception) -> NoReturn:
    try:
        report(error)
    except BaseException as raised:  # it re-raises `error` or exits by itself, depending on what is imported
        if raised is not error and not isinstance(raised, SystemExit):
            raise
    raise SystemExit(CONFIGURATION_ERROR) from error


def _say(error: Exception) -> None:
    sys.stderr.write(f"CONFIG ERROR: {type(error).__name__}: {error}\n")


if __name__ == "__main__":
    main(sys.argv)
