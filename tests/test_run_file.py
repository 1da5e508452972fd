"""run.yml and derive.json: what stands where, and that nothing but values reaches their bytes."""

from __future__ import annotations

import json

from content import Content, settled
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from syrupy.assertion import SnapshotAssertion

from renderer.manifest_yaml import load
from renderer.names import sealed
from renderer.outputs import recompute_digest


def test_run_yml_groups_keys_by_the_layer_that_won(content: Content, snapshot: SnapshotAssertion) -> None:
    rendered = content.render(content.experiment(maxtext={"steps": 7, "opt_type": "adamw", "learning_rate": 1e-05}))
    assert settled(rendered.files["run.yml"].decode()) == snapshot
    assert rendered.files["derive.json"].decode() == snapshot


def test_an_edit_that_moves_lines_changes_no_byte(content: Content) -> None:
    before = content.render(content.experiment())
    for path in (
        "presets/ling3-flash/model.yml",
        "presets/ling3-flash/environment/test.yml",
        "datasets/align_smoke.yml",
    ):
        content.write(path, b"# one more comment\n\n" + (content.root / path).read_bytes())
    path = content.experiment()
    path.write_text("# moved\n\n" + path.read_text())
    assert content.render(path).files == before.files


def test_line_ends_and_byte_order_marks_change_no_byte(content: Content) -> None:
    before = content.render(content.experiment())
    paths = [
        *content.root.glob("presets/ling3-flash/**/*.yml"),
        *content.root.glob("datasets/*.yml"),
        content.experiment(),
    ]
    for path in paths:
        path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    after = content.render(content.root / "experiments/ling3-flash/run.yml")
    assert (after.files, after.names) == (before.files, before.names)


def test_null_is_a_value_and_a_removed_key_is_absent(content: Content) -> None:
    path = content.experiment()
    path.write_text(path.read_text() + "maxtext:\n  final_logits_soft_cap: null\n  opt_type: !remove\n")
    text = content.render(path).files["run.yml"].decode()
    assert "\nfinal_logits_soft_cap: null\n" in text
    assert "opt_type" not in text


def test_logical_axis_rules_travel_in_derive_json(content: Content) -> None:
    rules = [["activation_batch", ["data", "fsdp"]], ["mlp", []]]
    rendered = content.render(content.experiment(maxtext={"logical_axis_rules": rules}))
    assert json.loads(rendered.files["derive.json"])["logical_axis_rules"] == rules
    assert b"logical_axis_rules" not in rendered.files["run.yml"]


# What level 1 lets through: no control characters, nothing to expand, no placeholder.
TEXT = st.text(
    st.characters(exclude_categories=["Cs", "Cc"], exclude_characters="$<>\ufeff\ufffe\uffff\u2028\u2029"), max_size=30
).filter(lambda text: not any(word in text for word in ("TODO", "FIXME", "CHANGE", "X_", "None", "none", "NONE")))


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(text=TEXT, variable=TEXT, rate=st.floats(0, 1), steps=st.integers(1, 2**31))
def test_any_value_arrives_and_the_digests_hold(
    text: str, variable: str, rate: float, steps: int, content: Content
) -> None:
    rendered = content.render(
        content.experiment(
            deploy={"ENV": {"A": variable + "\n x\n"}},
            maxtext={"lazy_train_files": text, "learning_rate": rate, "steps": steps},
        )
    )
    run = load(rendered.files["run.yml"].decode())
    assert (run["lazy_train_files"], run["learning_rate"], run["steps"]) == (text, rate, steps)
    spec = load(rendered.files["jobset.yml"].decode())["spec"]["replicatedJobs"][0]["template"]["spec"]["template"][
        "spec"
    ]
    assert [entry["value"] for entry in spec["containers"][0]["env"] if entry["name"] == "A"] == [variable + "\n x\n"]
    assert recompute_digest(rendered.files) == rendered.names.content_digest
    assert sealed(rendered.files)
