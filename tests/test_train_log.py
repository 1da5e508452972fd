"""What MaxText's log says of a training step, in whatever else a log may hold."""

from __future__ import annotations

import time

import pytest

from renderer.train_log import Step, parse_step

LINE = (
    "I1129 10:00:00 metric_logger.py:196] completed step: 3, seconds: 0.004, TFLOP/s/device: 0.020, "
    "Tokens/s/device: 31387.935, total_weights: 128, loss: 5.990, moe_lb_loss: 1e-05, grad norm nan"
)


def test_a_step_is_read_by_its_pairs() -> None:
    values = {
        "seconds": 0.004,
        "TFLOP/s/device": 0.02,
        "Tokens/s/device": 31387.935,
        "total_weights": 128,
        "loss": 5.99,
        "moe_lb_loss": 1e-05,
    }
    step = parse_step(LINE)
    assert step is not None
    assert str(step.values["grad norm"]) == "nan"
    assert step == Step(3, {**values, "grad norm": step.values["grad norm"]})


@pytest.mark.parametrize("line", ["", "eval metrics after step: 3", f"completed step: {'9' * 5_000}, loss: 1.0"])
def test_any_other_line_is_no_step(line: str) -> None:
    assert parse_step(line) is None


@pytest.mark.parametrize("part", ["a", "a ", " 0", "a 0", "a/", "a: 0.0.", "x 1e", " 1234567890", "a: 12, "])
def test_a_line_takes_time_in_proportion_to_its_length(part: str) -> None:
    started = time.process_time()
    parse_step(f"completed step: 3, a {part * (100_000 // len(part))}!")
    assert time.process_time() - started < 2
