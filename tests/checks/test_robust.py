"""Whatever a value is, level 1 answers with problems that have a place, or the experiment renders."""

from __future__ import annotations

import pytest
from small_content import Small

from renderer import outputs
from renderer.keys import DEPLOY_KEYS
from renderer.problem import errors
from renderer.run_spec import specify

ODD = (
    "null",
    "true",
    "-1",
    "0",
    "1.5",
    "1.0e+308",
    "9223372036854775807",
    '""',
    '"x"',
    '"\\x07"',
    "[]",
    "[1, a]",
    "{}",
    "{a: 1}",
    "{a: {b: c}}",
    "!remove",
)
KEYS = (
    *(f"deploy.{key}" for key in DEPLOY_KEYS),
    "maxtext.per_device_batch_size",
    "maxtext.gradient_accumulation_steps",
    "maxtext.ici_fsdp_parallelism",
    "maxtext.ici_tensor_parallelism",
    "maxtext.dcn_data_parallelism",
    "maxtext.base_output_directory",
    "maxtext.run_name",
    "maxtext.steps",
    "maxtext.enable_checkpointing",
    "maxtext.logical_axis_rules",
    "maxtext.remat_policy",
    "maxtext.learning_rate_schedule_steps",
    "maxtext.no_such_key",
    "checks.global_batch",
    "checks.no_such_key",
)


FILES = {
    "experiments/llama2-7b/e.yml",
    "presets/llama2-7b/model.yml",
    "presets/llama2-7b/topology/64chips/4k.yml",
    "presets/llama2-7b/environment/test.yml",
}


@pytest.mark.parametrize("key", KEYS)
def test_odd_values(small: Small, key: str) -> None:
    namespace, _, name = key.partition(".")
    for value in ODD:
        small.experiment(f"{namespace}:\n  {name}: {value}\n")
        wrong = errors(small.problems())
        if wrong:
            assert {problem.location.file for problem in wrong} <= FILES, value
            assert all(problem.location.line for problem in wrong), value
        else:
            files = outputs.render(specify(small.configuration()), "e").files
            assert files.keys() >= set(outputs.REQUIRED), value
