"""Start the trainer on a run.yml, with the arguments that run needs besides it.

Usage: run_pretrain.py [--print] RUN_YML [KEY=VALUE ...]. derive.json lies beside RUN_YML, or beside the pod's
original run.yml: an edited copy may lie anywhere, and what was changed in it, like every KEY=VALUE, counts as
set by a person. The process becomes the trainer; --print prints its argv as JSON instead. Whatever is wrong
with the configuration ends as one line on stderr and exit code 2.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import os
import re
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException
from yaml import YAMLError

if __package__:
    from pod.derivations import DerivationError, Outcome, Override, arguments, derive, merge_rules
else:  # in the pod these files lie side by side in one folder
    from derivations import (  # type: ignore[import-not-found, no-redef]
        DerivationError,
        Outcome,
        Override,
        arguments,
        derive,
        merge_rules,
    )

CONFIGURATION_ERROR = 2
WRONG_USAGE = 64
_BASE_KEY = "base_config"
_RULES_KEY = "logical_axis_rules"
_WITHOUT_MODEL_FILES = {"0.2.0", "0.2.1"}
_FACTS: dict[str, tuple[type, ...]] = {
    "model": (str,),
    "maxtext_version": (str,),
    "maxtext_mismatch": (str,),
    "trainer": (str,),
    "derivations": (list,),
    "warmup_iters": (int, type(None)),
    "load_parameters_path": (dict, type(None)),
    "set_by_person": (list,),
    "run_name_explicit": (bool,),
    _RULES_KEY: (list, type(None)),
}
Settings = dict[str, object]


class StartError(ValueError):
    """A run that cannot start as it is configured; the text is ready to print."""


@dataclass(frozen=True)
class MaxText:
    """The MaxText of this interpreter: its package folder and configs, its version, and its commit if any."""

    package: Path
    configs: Path
    version: str | None
    commit: str | None

    def is_version(self, wanted: str) -> bool:
        """Tell whether this is `wanted`, a version (with or without v) or a commit's first 7 to 40 digits."""
        if self.version == wanted.removeprefix("v"):
            return True
        return bool(re.fullmatch("[0-9a-f]{7,40}", wanted)) and (self.commit or "").startswith(wanted)

    def __str__(self) -> str:
        return f"MaxText {self.version or 'of unknown version'}" + (f" ({self.commit})" if self.commit else "")


@dataclass(frozen=True)
class Start:
    """What the trainer is started with: its argv, and each argument or skipped rule with the reason."""

    argv: list[str]
    outcome: Outcome
    warnings: list[str]


def main(argv: Sequence[str]) -> int:
    """Replace this process with the trainer; return only after --print (0) or an error (2, usage 64)."""
    only_print = list(argv[:1]) == ["--print"]
    words = list(argv[1:] if only_print else argv)
    if not words or words[0].startswith("-"):
        _say("usage: run_pretrain.py [--print] RUN_YML [KEY=VALUE ...]")
        return WRONG_USAGE
    try:
        start = prepare(Path(words[0]).absolute(), words[1:])
    except (StartError, DerivationError) as error:
        _say(f"run_pretrain: {error}")
        return CONFIGURATION_ERROR
    _explain(start)
    if not only_print:
        os.execv(start.argv[0], start.argv)  # noqa: S606  (a list, never a shell string)
    sys.stdout.write(json.dumps(start.argv) + "\n")
    return 0


def prepare(run_yml: Path, extra: Sequence[str]) -> Start:
    """Return how to start the trainer on `run_yml`, an absolute path, with the arguments `extra`.

    Raises StartError or DerivationError, with the text to print, for anything wrong in the configuration.
    """
    original = Path(f"{os.environ.get('POD_ROOT', '')}/etc/maxtext/run.yml")
    run, added = _read_yaml(run_yml), _read_arguments(extra)
    _check_run(run_yml, run)
    facts = _read_facts(run_yml, original)
    maxtext = _find_maxtext(str(facts["trainer"]))
    warnings = _check_version(maxtext, facts, run_yml)
    defaults = _base_settings(run_yml, run, maxtext)
    facts = _with_persons_changes(facts, _changed_keys(run_yml, run, original), added)
    config = {key: value for key, value in {**run, **added}.items() if key not in {_BASE_KEY, _RULES_KEY}}
    model = str(config.get("model_name", defaults.get("model_name", "default")))
    outcome = derive(config, facts, model_file=_model_file(model, run_yml, maxtext), defaults=defaults)
    shim = Path(__file__).resolve().with_name("start_trainer.py")
    command = [sys.executable, str(shim), str(facts["trainer"]), str(run_yml), *extra, *arguments(outcome)]
    return Start(command, outcome, warnings)


def _read_yaml(path: Path) -> Settings:
    """Return the top-level map of a YAML file, read as MaxText reads it."""
    try:
        data = OmegaConf.load(path)
        if isinstance(data, DictConfig):
            return {str(key): value for key, value in _plain(data).items()}
    except (OSError, UnicodeDecodeError, YAMLError, OmegaConfBaseException) as error:
        raise StartError(f"cannot read {path}: {_one_line(error)}") from error
    raise StartError(f"cannot read {path}: it holds no map of keys")


def _plain(data: DictConfig) -> dict[object, object]:
    plain = OmegaConf.to_container(data)
    return dict(plain.items()) if isinstance(plain, dict) else {}


def _read_arguments(extra: Sequence[str]) -> Settings:
    for word in extra:
        if not re.match("[A-Za-z_][A-Za-z0-9_]*=", word):
            raise StartError(f"{word!r} is not KEY=VALUE")
    try:
        return {str(key): value for key, value in _plain(OmegaConf.from_cli(list(extra))).items()}
    except (YAMLError, OmegaConfBaseException) as error:
        raise StartError(f"cannot read the arguments: {_one_line(error)}") from error


def _check_run(run_yml: Path, run: Settings) -> None:
    if run_yml.suffix != ".yml":
        raise StartError(f"{run_yml} must end in .yml: MaxText takes any other name for an argument")
    if _BASE_KEY not in run:
        raise StartError(f"{run_yml} has no {_BASE_KEY}: base.yml, so MaxText would not load its defaults")
    if _RULES_KEY in run:
        raise StartError(
            f"{run_yml} sets {_RULES_KEY}, which would replace every rule: pass it as an argument, KEY=[...]"
        )


def _read_facts(run_yml: Path, original: Path) -> Settings:
    beside = run_yml.with_name("derive.json")
    path = beside if beside.exists() else original.with_name("derive.json")
    try:
        facts = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise StartError(f"cannot read {path}: {_one_line(error)}") from error
    if not isinstance(facts, dict):
        raise StartError(f"cannot read {path}: it holds no map of keys")
    wrong = [key for key, types in _FACTS.items() if not isinstance(facts.get(key, ...), types)]
    if wrong:
        raise StartError(f"cannot read {path}: {', '.join(wrong)} missing or of a wrong type")
    return facts


def _find_maxtext(trainer: str) -> MaxText:
    """Return where the package of the module `trainer` is, without importing it (half a minute)."""
    name = trainer.partition(".")[0]
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise StartError(f"{sys.executable} has no package {name}: is it the image of this MaxText?")
    package = Path(next(iter(spec.submodule_search_locations)))
    if not package.joinpath(*trainer.split(".")[1:]).with_suffix(".py").is_file():
        raise StartError(f"the package {name} in {package} has no module {trainer}")
    configs = Path(os.environ.get("MAXTEXT_CONFIGS_DIR", package / "configs"))
    return MaxText(package, configs, _version(name), _commit(package))


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _commit(package: Path) -> str | None:
    """Return the commit of the checkout that `package` is part of, if it is not an installed copy."""
    if "site-packages" in package.parts:
        return None
    try:
        command = ["git", "-C", str(package), "rev-parse", "HEAD"]
        result = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    except OSError:
        return None
    return result.stdout.strip() or None if result.returncode == 0 else None


def _check_version(maxtext: MaxText, facts: Settings, run_yml: Path) -> list[str]:
    if maxtext.version in _WITHOUT_MODEL_FILES and maxtext.package not in run_yml.resolve().parents:
        raise StartError(
            f"{maxtext} finds no model file for a run.yml outside its package, and would train base.yml's"
            " sizes: use 0.2.2 or later"
        )
    wanted = str(facts["maxtext_version"])
    if maxtext.is_version(wanted):
        return []
    text = f"{maxtext} is installed, and the run was checked against {wanted}"
    if facts["maxtext_mismatch"] == "error":
        raise StartError(text)
    return [text]


def _base_settings(path: Path, settings: Settings, maxtext: MaxText) -> Settings:
    """Return what the base_config of `settings` (the data of `path`) sets, itself over its own base."""
    base = settings.get(_BASE_KEY)
    if base is None:
        return {}
    beside = path.parent / str(base)
    found = beside if beside.is_file() else maxtext.configs / str(base)
    data = _read_yaml(found)
    return {**_base_settings(found, data, maxtext), **data}


def _model_file(model: str, run_yml: Path, maxtext: MaxText) -> Settings:
    """Return what the model file sets, found in the places and the order in which MaxText looks for it."""
    if model == "default":
        return {}
    name = f"{model.replace('-Instruct', '')}.yml"
    beside, above = run_yml.parent, run_yml.parent.parent
    folders = [beside / "models", above / "models", maxtext.package / "configs/models"]
    for place in folders:
        if (place / name).is_file():
            return _read_yaml(place / name)
    raise StartError(f"this MaxText has no model file {name} in {folders[-1]}: it would train base.yml's sizes")


def _changed_keys(run_yml: Path, run: Settings, original: Path) -> set[str]:
    """Return the keys whose value differs from the original's, if `run_yml` is an edited copy of it."""
    if not original.is_file():
        return set()
    beside = run_yml.with_name("derive.json")
    if beside.is_file() and beside.read_bytes() != original.with_name("derive.json").read_bytes():
        return set()  # another run, with facts of its own
    before = _read_yaml(original)
    return {key for key, value in run.items() if key not in before or before[key] != value}


def _with_persons_changes(facts: Settings, changed: set[str], added: Settings) -> Settings:
    names = facts["set_by_person"]
    rules = added.get(_RULES_KEY)
    before = facts[_RULES_KEY]
    if isinstance(rules, list):
        before = merge_rules(before, rules)
    known = names if isinstance(names, list) else []
    return {**facts, "set_by_person": sorted({*known, *changed, *added}), _RULES_KEY: before}


def _explain(start: Start) -> None:
    for warning in start.warnings:
        _say(f"run_pretrain: warning: {warning}")
    for item in start.outcome:
        if isinstance(item, Override):
            _say(f"run_pretrain: {item.rule} {arguments([item])[0]}  ({item.reason})")
        else:
            _say(f"run_pretrain: {item.rule} nothing  ({item.reason})")


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split()) or type(error).__name__


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.path[0] = str(Path.cwd())  # as `python -m` has it, so that a checkout in the working folder is found
    sys.exit(main(sys.argv[1:]))
