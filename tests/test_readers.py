"""Whatever the renderer writes means the same to every reader: PyYAML and what MaxText and kubectl use (YAML 1.1),
ruamel.yaml and yq (YAML 1.2), and the renderer itself."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st
from omegaconf import OmegaConf
from ruamel.yaml import YAML

from renderer import outputs
from renderer.configure import Configurator
from renderer.jobset import jobset_yml, watcher_yml
from renderer.layers import Repository
from renderer.manifest_yaml import load
from renderer.pipeline import configure
from renderer.run_file import run_yml
from renderer.run_spec import Run, Watcher, specify
from renderer.scalars import write

ROOT = Path(__file__).parents[1]
RUN_FILES = sorted((ROOT / "rendered").glob("*/*/*/run.yml"))
MANIFESTS = sorted(path for kind in ("jobset", "watcher") for path in (ROOT / "rendered").glob(f"*/*/*/{kind}.yml"))
YQ = next(iter(sorted((ROOT / ".cache").glob("yq-*/yq"))), None)


def by_omegaconf(text: str) -> Any:
    return OmegaConf.to_container(OmegaConf.create(text))


READERS: dict[str, Callable[[str], Any]] = {
    "PyYAML": yaml.safe_load,
    "ruamel.yaml": lambda text: YAML(typ="safe", pure=True).load(text),
    "OmegaConf": by_omegaconf,
    "the renderer": load,
}
KUBERNETES_READERS = ("PyYAML", "ruamel.yaml", "the renderer")


def exact(value: Any) -> str:
    """Return a text that tells 1, 1.0, "1" and true apart."""
    return json.dumps(value, sort_keys=True)


def as_json(value: Any) -> Any:
    """Return `value` as it is after a way through JSON, which has one kind of number."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [as_json(item) for item in value]
    if isinstance(value, dict):
        return {key: as_json(item) for key, item in value.items()}
    return value


def by_yq(text: str) -> Any:
    if YQ is None:
        assert "REQUIRE_YQ" not in os.environ, "REQUIRE_YQ is set, but there is no yq: run make yq"
        pytest.skip("no yq of mikefarah's: run make yq")
    done = subprocess.run([YQ, "-o", "json", "."], input=text.encode(), capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return json.loads(done.stdout)


@pytest.mark.parametrize("path", RUN_FILES, ids=lambda path: path.parent.name)
def test_run_yml_is_one_configuration_to_all(path: Path) -> None:
    text = path.read_text("utf-8")
    expected = exact(yaml.safe_load(text))
    assert {name: exact(read(text)) for name, read in READERS.items()} == dict.fromkeys(READERS, expected)


def test_run_yml_is_the_same_to_yq() -> None:
    for path in RUN_FILES:
        text = path.read_text("utf-8")
        assert as_json(by_yq(text)) == as_json(yaml.safe_load(text)), path


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_a_manifest_is_one_object_to_all(path: Path) -> None:
    text = path.read_text("utf-8")
    expected = exact(yaml.safe_load(text))
    read = {name: exact(READERS[name](text)) for name in KUBERNETES_READERS}
    assert read == dict.fromkeys(KUBERNETES_READERS, expected)


def test_something_is_rendered() -> None:
    assert len(RUN_FILES) >= 12
    assert len(MANIFESTS) > len(RUN_FILES)


# YAML 1.1 and 1.2 disagree about most of these when they stand unquoted.
WORDS = """
695e0514 12e4567 1e5 1E5 1e-05 1e+16 1e+3 3e-4 .5 5. +1 -1 0x1F 0o17 017 010 0012 08 0b11 1_000 1__0 0.1_0
12:30 1:30:00 190:20:30.15 2026-01-01 2026-1-1 2026-01-01T12:00:00Z on off On ON y n Y N yes no Yes NO true
false TRUE True null Null NULL ~ none None nan .nan .NaN inf .inf -.Inf +.inf = << - -- --- ... ? : , [ ] { }
[] {} # ! !remove !!str & * @ ` % | > " ' a: a:b :a a,b #x x#y *x &x @x %x !x |x >x ?x -x 'x' "x" 'x "x it's
\\ \\n \\x41 \\\\ // http://x $ $x $(x) $$ {{x}} {%x%}
"""
AWKWARD = [
    *WORDS.split(),
    "",
    " ",
    "  two",
    "trailing ",
    " both ",
    "a: b",
    "a : b",
    "a #b",
    "- a",
    "? a",
    "two\nlines",
    "two\n\nlines\n",
    "\n",
    "\nleading break",
    "cr\rlf\r\nend",
    "tab\tbetween",
    "\ttab",
    "{a: 1}",
    "[1, 2]",
    '{"a": 1}',
    "fixed,-224,224",
    "0.66 /a 0.34 /b",
    "gs://bucket/path",
    "line\u2028separator",
    "paragraph\u2029separator",
    "next\x85line",
    "\ufeffmark",
    "mark\ufeff",
    "nbsp\xa0",
    "soft\xadhyphen",
    "zero\u200bwidth",
    "bell\x07null\x00escape\x1bdelete\x7f",
    "c1\x80\x9f",
    "\ufffd\ufffe\uffff",
    "混合数据",
    "ÄÖÜ ß İı",
    "e\u0301 ≠ \xe9",
    "🚀",
    "👩‍👩‍👧",
    "\U0001fffe\U0010ffff",
    "x" * 5000,
    "word " * 500,
]
NUMBERS: list[int | float] = [
    *(0, 1, -1, 7, 8, 10, 1000, 2**31, 2**53, 2**53 + 1, 2**63 - 1, -(2**63)),
    *(0.0, -0.0, 0.1, 1.0, 8.0, 1e5, 1e15, 1e16, 1e17, 1.5e16, 1e22, 1e100, 1.7976931348623157e308, 5e-324, 2.5e-310),
    *(1e-4, 1e-5, 3e-4, 0.00001234, 1e-7, -1e-7, 123456789.123456789, 1 / 3),
]
texts = st.one_of(st.sampled_from(AWKWARD), st.text(st.characters(exclude_categories=("Cs",)), max_size=30))
scalars = st.one_of(
    texts,
    st.none(),
    st.booleans(),
    st.sampled_from(NUMBERS),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
)
# A key << is a merge to yq even where it is quoted: no layer may hold one.
keys = texts.filter(lambda text: len(text) < 100 and text != "<<")
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(keys, inner, max_size=4)),
)


def omegaconf_takes(value: Any) -> bool:
    """OmegaConf reads ${ and ??? as its own; the renderer refuses them before anything is written."""
    return not any(mark in exact(value) for mark in ("${", "???"))


def check_all(data: dict[str, Any], text: str) -> None:
    for name, read in READERS.items():
        assert exact(read(text)) == exact(data), f"{name} reads something else"


def every_value_on_its_own_line(items: list[Any]) -> tuple[dict[str, Any], str]:
    data = {f"key_{index}": item for index, item in enumerate(items)}
    return data, "".join(f"{key}: {write(item)}\n" for key, item in data.items())


@given(st.lists(values.filter(omegaconf_takes), min_size=1, max_size=20))
@example([*AWKWARD, *NUMBERS])
@example([AWKWARD, {word: word for word in AWKWARD if len(word) < 1000}, [[], {}, [{}], {"a": []}]])
@settings(max_examples=60)
def test_a_written_value_is_the_same_to_all(items: list[Any]) -> None:
    check_all(*every_value_on_its_own_line(items))


@given(st.lists(values, min_size=1, max_size=20))
@example([*AWKWARD, *NUMBERS])
@settings(max_examples=25)
def test_a_written_value_is_the_same_to_yq(items: list[Any]) -> None:
    data, text = every_value_on_its_own_line(items)
    assert as_json(by_yq(text)) == as_json(data)


@cache
def a_run() -> Run:
    configuration = configure(Configurator(Repository(ROOT)), ROOT / "experiments/ling3-flash/lr3e4-fineweb.yml", [])
    assert configuration
    return specify(configuration)


@given(st.lists(values.filter(omegaconf_takes), min_size=1, max_size=8), texts)
@settings(max_examples=40)
def test_run_yml_with_any_values_is_the_same_to_all(items: list[Any], run_name: str) -> None:
    maxtext = {f"key_{index}": item for index, item in enumerate(items)}
    run = replace(a_run(), maxtext=maxtext, origins=dict.fromkeys(maxtext, "experiments/any.yml"))
    name = run_name if omegaconf_takes(run_name) else "name"
    expected = {"base_config": "base.yml", "model_name": "ling3-flash", "run_name": name, **maxtext}
    check_all(expected, run_yml(run, name).decode())


@given(st.lists(texts, min_size=12, max_size=12))
@example(AWKWARD[:12])
@example(AWKWARD[-12:])
@settings(max_examples=25)
def test_manifests_with_any_text_are_the_same_to_all(words: list[str]) -> None:
    run = replace(
        a_run(),
        namespace=words[0],
        image=words[1],
        owner=words[2] or "owner",
        env={"NAME": words[3], words[4]: words[5]},
        libtpu_init_args=words[6],
        volumes={words[7]: words[8]},
        github_token_secret=words[9] or "secret",
        bootstrap_arguments=tuple(words[:3]),
        watcher=Watcher(words[10], words[11], words[0], 300),
    )
    names = outputs._names(run, "name", "0" * 64)
    for data in (jobset_yml(run, names), watcher_yml(run, names)):
        read = {name: exact(READERS[name](data.decode())) for name in KUBERNETES_READERS}
        assert len(set(read.values())) == 1, read
    check_pod(run, yaml.safe_load(jobset_yml(run, names)))


def check_pod(run: Run, jobset: Any) -> None:
    """Every text arrives where it belongs, unchanged."""
    assert jobset["metadata"]["namespace"] == run.namespace
    assert jobset["metadata"]["labels"]["renderer/owner"] == run.owner
    pod = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    container = pod["containers"][0]
    assert container["image"] == run.image
    assert container["args"] == list(run.bootstrap_arguments)
    env = [(entry["name"], entry.get("value")) for entry in container["env"]]
    assert ("LIBTPU_INIT_ARGS", run.libtpu_init_args) in env
    assert env[-len(run.env) :] == list(run.env.items())
    ((mount, claim),) = run.volumes.items()
    assert container["volumeMounts"][-1]["mountPath"] == mount
    assert pod["volumes"][-1]["persistentVolumeClaim"]["claimName"] == claim
