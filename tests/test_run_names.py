"""Names fit every rule of the cluster at every size, and digests depend on data alone."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from renderer.names import (
    blank,
    budget,
    digest,
    files_digest,
    label,
    label_value,
    object_name,
    room_for_name,
    run_name,
    seal,
    sealed,
)

DNS_1035 = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
DIGEST = "0123456789abcdef" * 4
CHIPS = st.integers(1, 9216)


def hosts_of(chips: int) -> int:
    return max(1, chips // 4)


def pod_name(jobset: str, hosts: int) -> str:
    """The longest pod name of a JobSet, as JobSet's webhook composes it (pkg/webhooks/jobset_webhook.go)."""
    return f"{jobset}-slice-job-0-{hosts - 1}-xxxxx"


def test_budget_is_exactly_what_the_webhook_leaves() -> None:
    for chips in range(1, 9217):
        hosts = hosts_of(chips)
        assert len(pod_name("j" * budget(hosts), hosts)) == 63


def test_budget_of_64_hosts_is_the_measured_one() -> None:
    assert budget(64) == 42


@given(st.text(max_size=80), CHIPS)
def test_any_stem_fits_with_99_attempts(stem: str, chips: int) -> None:
    hosts = hosts_of(chips)
    name = run_name(stem, chips, DIGEST, hosts)
    assert name.endswith(f"-{chips}c-01234567")
    last = object_name(name, 99)
    assert last == f"{name}-a99"
    assert len(pod_name(last, hosts)) <= 63
    for made in (name, last, pod_name(last, hosts)):
        assert DNS_1035.fullmatch(made)
        assert "--" not in made or "--" in label(stem)


@pytest.mark.parametrize("chips", [1, 64, 1024, 9216])
def test_stems_that_differ_beyond_the_cut_stay_apart(chips: int) -> None:
    stems = [f"an-experiment-with-a-name-that-does-not-fit-anywhere-{number}" for number in range(50)]
    assert len({run_name(stem, chips, DIGEST, hosts_of(chips)) for stem in stems}) == 50


@given(CHIPS, st.data())
def test_a_name_of_at_most_the_room_is_kept_whole(chips: int, data: st.DataObject) -> None:
    hosts = hosts_of(chips)
    room = room_for_name(chips, hosts)
    name = data.draw(st.from_regex(rf"[a-z][a-z0-9]{{0,{room - 1}}}", fullmatch=True))
    assert run_name(name, chips, DIGEST, hosts) == f"{name}-{chips}c-01234567"
    longer = name.ljust(room + 1, "x")
    cut = run_name(longer, chips, DIGEST, hosts).removesuffix(f"-{chips}c-01234567")
    assert re.fullmatch(rf"{longer[: room - 5]}-[0-9a-f]{{4}}", cut)


@pytest.mark.parametrize(
    ("stem", "chips", "name"),
    [
        ("lr3e4-fineweb", 1024, "lr3e4-fineweb-1024c-01234567"),
        ("LR_3e-4.final", 64, "lr-3e-4-final-64c-01234567"),
        ("2026-run", 64, "r-2026-run-64c-01234567"),
        ("-._", 64, "r-64c-01234567"),
        ("Ünïcode", 64, "n-code-64c-01234567"),
        ("a" * 60, 1024, "a" * 17 + "-11ee-1024c-01234567"),
    ],
)
def test_run_name(stem: str, chips: int, name: str) -> None:
    assert run_name(stem, chips, DIGEST, hosts_of(chips)) == name


def test_the_first_attempt_has_no_ending() -> None:
    assert (object_name("run", 1), object_name("run", 2)) == ("run", "run-a2")


@given(st.text(max_size=100))
def test_label_value_is_one(text: str) -> None:
    assert re.fullmatch(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?)?", label_value(text))


def test_label_value_keeps_what_it_can() -> None:
    assert label_value("feature/x") == "feature-x"
    assert label_value("x" * 62 + "/y") == "x" * 62


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=3), JSON, max_size=5))
def test_order_of_keys_does_not_count(data: dict[str, object]) -> None:
    assert digest(data) == digest(dict(reversed(data.items())))


@pytest.mark.parametrize(
    "others",
    [
        [1, 1.0, "1", True],
        [None, "null", "", False, 0],
        [[], {}, ""],
        [["a", "b"], ["b", "a"], ["ab"]],
        [{"a": 1}, {"a": "1"}],
    ],
)
def test_values_of_another_type_or_order_count(others: list[object]) -> None:
    assert len({digest(value) for value in others}) == len(others)


JOBSET = b'metadata:\n  annotations:\n    renderer/files-digest: ""\nspec: 1\n'


@given(st.dictionaries(st.sampled_from(["run.yml", "derive.json", "watcher.yml"]), st.binary(max_size=20)), st.data())
def test_any_changed_byte_breaks_the_seal(others: dict[str, bytes], data: st.DataObject) -> None:
    files = seal({**others, "jobset.yml": JOBSET})
    assert sealed(files)
    name = data.draw(st.sampled_from([name for name in sorted(files) if files[name]]))
    index = data.draw(st.integers(0, len(files[name]) - 1))
    changed = bytearray(files[name])
    changed[index] ^= data.draw(st.integers(1, 255))
    assert not sealed({**files, name: bytes(changed)})


def test_a_missing_or_further_file_breaks_the_seal() -> None:
    files = seal({"run.yml": b"x", "jobset.yml": JOBSET})
    assert not sealed({"jobset.yml": files["jobset.yml"]})
    assert not sealed({"run.yml": b"x"})
    assert not sealed({**files, "watcher.yml": b""})
    assert not sealed({**files, "jobset.yml": JOBSET})
    assert not sealed({**files, "jobset.yml": files["jobset.yml"].replace(b"    renderer/files-digest", b"    #")})
    assert not sealed({**files, "jobset.yml": files["jobset.yml"] + files["jobset.yml"]})


def test_bytes_do_not_move_between_files() -> None:
    assert files_digest({"a": b"bc", "d": b""}) != files_digest({"a": b"b", "d": b"c"})
    assert files_digest({"a": b"b"}) != files_digest({"ab": b""})


def test_blank_leaves_out_the_digest_alone() -> None:
    sealed_jobset = seal({"jobset.yml": JOBSET})["jobset.yml"]
    assert re.fullmatch(
        rb'metadata:\n  annotations:\n    renderer/files-digest: "[0-9a-f]{64}"\nspec: 1\n', sealed_jobset
    )
    assert blank(sealed_jobset) == JOBSET
