"""The arguments a run needs besides run.yml (rules D1 to D7), each with its reason; pure, stdlib only.

The renderer imports this module for preview and report, and the pod runs it against the MaxText it has.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass


class DerivationError(ValueError):
    """A configuration from which no argument can be derived; the text is ready to print."""


@dataclass(frozen=True)
class Override:
    """One argument for the trainer: `key` takes `value`, because of rule D1 to D7, for this reason."""

    key: str
    value: object
    rule: str
    reason: str


@dataclass(frozen=True)
class Skipped:
    """A rule that applies to the model and changes nothing here (or not all it could), and why."""

    rule: str
    reason: str


Outcome = list[Override | Skipped]

_RULES_KEY = "logical_axis_rules"
_WHOLE_RULES_KEY = "override_logical_axis_rules"
_ALLOW_KEY = "override_model_config"
_SCHEDULE_KEY = "learning_rate_schedule_steps"
_PARAMETERS_KEY = "load_parameters_path"
_SAVED_ACTIVATIONS = ("mlpwi_0", "mlpwi_1", "moe_topk_indices")
_SMALL_BATCH = 2


@dataclass(frozen=True)
class _Run:
    """What the rules read: run.yml, the facts of derive.json, and what the MaxText at hand sets by itself."""

    config: Mapping[str, object]
    facts: Mapping[str, object]
    model_file: Mapping[str, object] | None
    defaults: Mapping[str, object]

    def value(self, key: str) -> object:
        """Return what `key` is without any rule: run.yml's value, else the model file's, else the default."""
        for source in (self.config, self.model_file or {}, self.defaults):
            if key in source:
                return source[key]
        return None

    def number(self, key: str) -> float:
        value = self.value(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise DerivationError(f"{key} must be a number, not {_short(value)}")
        return int(value) if float(value).is_integer() else value

    def is_set(self, key: str) -> bool:
        """Tell whether the text `key` holds something; MaxText takes the word none in any case for null."""
        value = self.value(key)
        return value is not None and str(value).lower() not in {"", "none"}

    def names(self, fact: str) -> Sequence[str]:
        names = self.facts.get(fact)
        return names if isinstance(names, list | tuple) else ()

    def restores_full_state(self) -> bool:
        return "D4" in self.names("derivations") and self.is_set("load_full_state_path")

    def change(self, rule: str, key: str, value: object, reason: str) -> Override | Skipped:
        if self.value(key) == value:
            return Skipped(rule, f"{key} is {_short(value)} already ({reason})")
        return Override(key, value, rule, reason)

    def change_unless_by_person(self, rule: str, key: str, value: object, reason: str) -> Override | Skipped:
        if key in self.names("set_by_person"):
            return Skipped(rule, f"{key} {_short(self.value(key))} was set by a person")
        return self.change(rule, key, value, reason)


def derive(
    config: Mapping[str, object],
    facts: Mapping[str, object],
    *,
    model_file: Mapping[str, object] | None,
    defaults: Mapping[str, object],
) -> Outcome:
    """Return the arguments run.yml needs besides itself, and the rules that change nothing, in rule order.

    `config` is run.yml's data without base_config, `facts` derive.json's, `model_file` what
    configs/models/<model>.yml sets (None: not known here), `defaults` every key this MaxText knows with its
    base value. Raises DerivationError where run.yml contradicts itself or has a type no rule can read.
    """
    run = _Run(config, facts, model_file, defaults)
    outcome: Outcome = []
    for rule, derivation in _BY_MODEL.items():
        if rule in run.names("derivations"):
            outcome += derivation(run)
    outcome += _keys_of_the_model_file(run, {item.key for item in outcome if isinstance(item, Override)})
    outcome += _logical_axis_rules(run)
    return outcome + _permission(run, outcome)


def _saved_activations(run: _Run) -> Outcome:
    """D1: a small batch has the memory to keep these activations instead of computing them twice."""
    if run.value("remat_policy") != "custom":
        return [Skipped("D1", f"remat_policy is {_short(run.value('remat_policy'))}, not custom")]
    batch = run.number("per_device_batch_size")
    if batch > _SMALL_BATCH:
        return [Skipped("D1", f"per_device_batch_size {batch} is above {_SMALL_BATCH}")]
    reason = f"remat_policy is custom and per_device_batch_size {batch} is at most {_SMALL_BATCH}"
    return [
        run.change_unless_by_person("D1", key, "device", reason)
        if key in run.defaults
        else Skipped("D1", f"this MaxText has no {key}")
        for key in _SAVED_ACTIVATIONS
    ]


def _warmup(run: _Run) -> Outcome:
    """D2: WARMUP_ITERS is a number of steps, and MaxText wants it as a fraction of the schedule."""
    warmup = run.facts.get("warmup_iters")
    if not isinstance(warmup, int):
        return [Skipped("D2", "WARMUP_ITERS is not given")]
    source = next((key for key in (_SCHEDULE_KEY, "steps") if run.number(key) > 0), None)
    if source is None:
        return [Skipped("D2", f"neither {_SCHEDULE_KEY} nor steps is positive")]
    schedule = run.number(source)
    outcome: Outcome = []
    if schedule <= warmup:
        reason = f"{source} {schedule} is not above WARMUP_ITERS {warmup}"
        outcome.append(_longer_schedule(run, warmup, reason))
        schedule = 2 * warmup
    reason = f"WARMUP_ITERS {warmup} of {schedule} schedule steps"
    return [*outcome, run.change_unless_by_person("D2", "warmup_steps_fraction", warmup / schedule, reason)]


def _longer_schedule(run: _Run, warmup: int, reason: str) -> Override:
    if _SCHEDULE_KEY in run.names("set_by_person"):
        theirs = f"{_SCHEDULE_KEY} {_short(run.value(_SCHEDULE_KEY))} was set by a person"
        raise DerivationError(f"{reason}, and {theirs}: set it above {warmup}, or lower WARMUP_ITERS")
    return Override(_SCHEDULE_KEY, 2 * warmup, "D2", reason)


def _parameters_path(run: _Run) -> Outcome:
    """D3: a checkpoint is stored with scanned or with unscanned layers, and only one of them fits the run."""
    paths = run.facts.get("load_parameters_path")
    if not isinstance(paths, Mapping):
        return [Skipped("D3", "no LOAD_PARAMETERS_PATH is given")]
    if run.restores_full_state():
        return [Skipped("D3", f"load_full_state_path is set, so D4 clears {_PARAMETERS_KEY}")]
    scanned = run.value("scan_layers")
    if not isinstance(scanned, bool):
        raise DerivationError(f"scan_layers must be true or false, not {_short(scanned)}")
    path = paths.get("scanned" if scanned else "unscanned")
    if path is None:
        name = f"LOAD_PARAMETERS_PATH_{'SCANNED' if scanned else 'UNSCANNED'}"
        return [Skipped("D3", f"scan_layers is {_short(scanned)} and {name} is not given")]
    return [run.change_unless_by_person("D3", _PARAMETERS_KEY, path, f"scan_layers is {_short(scanned)}")]


def _full_state(run: _Run) -> Outcome:
    """D4: a full state holds the parameters too, and MaxText loads it only with checkpointing on."""
    if not run.is_set("load_full_state_path"):
        return [Skipped("D4", "load_full_state_path is not set")]
    reason = "load_full_state_path is set"
    cleared: Outcome = [Override(_PARAMETERS_KEY, "", "D4", reason)] if run.is_set(_PARAMETERS_KEY) else []
    return [*cleared, run.change("D4", "enable_checkpointing", True, reason)]


def _compiled_step(run: _Run) -> Outcome:
    """D5: a train step compiled ahead of time comes without an evaluation step."""
    if not run.is_set("compiled_trainstep_file"):
        return [Skipped("D5", "compiled_trainstep_file is not set")]
    return [run.change("D5", "eval_interval", 0, "compiled_trainstep_file is set")]


def _keys_of_the_model_file(run: _Run, derived: set[str]) -> Outcome:
    """D6: MaxText merges the model file over run.yml, so run.yml's value arrives only as an argument."""
    if run.model_file is None:
        model = run.facts.get("model")
        return [Skipped("D6", f"decided in the pod: the model file of {model} is not known here")]
    outcome: Outcome = []
    for key, value in run.config.items():
        if key in derived or key not in run.model_file or key in {"base_config", _RULES_KEY}:
            continue
        if key == _WHOLE_RULES_KEY and value is True:
            continue  # without rules beside it this argument would empty them; D7 passes both
        theirs, wanted = run.model_file[key], _merged(run.model_file[key], value)
        if wanted != theirs:
            reason = f"the model file sets {_short(theirs)}, and would win over run.yml"
            outcome.append(Override(key, wanted, "D6", reason))
    return outcome


def _merged(under: object, over: object) -> object:
    """Return `over` merged over `under` the way OmegaConf merges: maps deep, everything else replaced."""
    if not (isinstance(under, Mapping) and isinstance(over, Mapping)):
        return over
    return {**under, **{key: _merged(under.get(key), value) for key, value in over.items()}}


def _logical_axis_rules(run: _Run) -> Outcome:
    """D7: in run.yml the rules would replace every other; only as an argument MaxText merges them by name."""
    rules = run.facts.get(_RULES_KEY)
    if not isinstance(rules, list):
        return []
    if run.config.get(_WHOLE_RULES_KEY) is True:
        reason = f"{_WHOLE_RULES_KEY} is true: these rules and no others"
        return [Override(_RULES_KEY, rules, "D7", reason), Override(_WHOLE_RULES_KEY, True, "D7", reason)]
    if not rules:
        return [Skipped("D7", f"{_RULES_KEY} is empty")]
    merged = merge_rules((run.model_file or {}).get(_RULES_KEY), rules)
    kept = "those" if run.model_file is None else len(merged) - len(rules)
    reason = f"merged by rule name over MaxText's own rules and {kept} of the model file"
    return [Override(_RULES_KEY, merged, "D7", reason)]


def merge_rules(under: object, over: Sequence[Sequence[object]]) -> list[Sequence[object]]:
    """Return `over` after those rules of `under` whose name it does not have, as MaxText merges rules."""
    names = {rule[0] for rule in over}
    kept = [rule for rule in under if rule[0] not in names] if isinstance(under, list) else []
    return [*kept, *over]


def _permission(run: _Run, outcome: Outcome) -> Outcome:
    """Return the flag without which MaxText refuses an argument that contradicts the model file."""
    model_file = run.model_file or {}
    derived = [item for item in outcome if isinstance(item, Override) and item.key in model_file]
    against = [item for item in derived if item.value != model_file[item.key]]
    if not against:
        return []
    reason = f"the model file sets {', '.join(item.key for item in against)} too"
    return [Override(_ALLOW_KEY, True, against[0].rule, reason)]


_BY_MODEL = {
    "D1": _saved_activations,
    "D2": _warmup,
    "D3": _parameters_path,
    "D4": _full_state,
    "D5": _compiled_step,
}


def arguments(overrides: Iterable[Override | Skipped]) -> list[str]:
    """Return the trainer's arguments, `key=value` each, with override_model_config=true where D6 needs it."""
    chosen = [item for item in overrides if isinstance(item, Override)]
    texts = [f"{item.key}={encode(item.value)}" for item in chosen]
    if any(item.rule == "D6" for item in chosen) and all(item.key != _ALLOW_KEY for item in chosen):
        texts.append(f"{_ALLOW_KEY}=true")
    return texts


def encode(value: object) -> str:
    """Return the text after `key=` that OmegaConf.from_cli reads back as `value`, unchanged.

    Raises DerivationError for a string that OmegaConf would interpolate, and for a value YAML does not hold.
    """
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, float) and not math.isfinite(value):
        return ".nan" if math.isnan(value) else (".inf" if value > 0 else "-.inf")
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(encode, value))}]"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{encode(key)}: {encode(item)}' for key, item in value.items())}}}"
    raise DerivationError(f"{value!r} cannot be passed as an argument")


def _quoted(text: str) -> str:
    if "${" in text:
        raise DerivationError(f"{_short(text)} would be interpolated by OmegaConf")
    quoted = json.dumps(text, ensure_ascii=False)
    # YAML folds or refuses these inside quotes, and joins no surrogate pairs, so JSON's own escapes do not do
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _short(value: object) -> str:
    text = value if isinstance(value, str) and value else json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 60 else f"{text[:57]}..."
