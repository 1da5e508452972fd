"""The recorder: what it keeps, that it keeps it twice the same, and how it ends for scripts that it cannot record."""

import json
import shlex
import shutil
from pathlib import Path
from typing import Any

import pytest
from content import run
from legacy_content import ROOT, TODAY, Shipped

from renderer.legacy import ours, recording, sources
from renderer.legacy.check import compare
from renderer.legacy.examine import examine
from renderer.legacy.record import Options, _once, record
from renderer.legacy.sandbox import interpreter
from renderer.legacy.sources import Recorded
from renderer.legacy.waivers import KINDS
from renderer.problem import RefusedError
from renderer.schema import load

RECONSTRUCTION = ROOT / "tests/legacy/reconstruction"
TRAINER = "python3 -m maxtext.trainers.pre_train.train base.yml model_name=llama3.1-70b"


def script(folder: Path, text: str, name: str = "launch.sh") -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, **options: Any) -> str:
    with pytest.raises(RefusedError) as caught:
        record(path, Options(path.parent, **{"seconds": 10, **options}))
    return str(caught.value)


def xpk(command: str = TRAINER, more: str = "") -> str:
    options = f"--workload=w --device-type=tpu7x-4x4x4 --num-slices=1 {more}"
    return f"xpk workload create {options} --command={shlex.quote(command)}"


# ---- what is kept ----


def test_the_committed_recording_is_what_the_launcher_does() -> None:
    path = RECONSTRUCTION / "scripts/submit_ling3_flash_64chips_job.sh"
    made = record(path, Options(RECONSTRUCTION, maxtext_version="0.2.5"))  # records twice, and compares
    committed = RECONSTRUCTION / "recordings/submit_ling3_flash_64chips_job.json"
    assert recording.dump(made.data) == committed.read_text(encoding="utf-8")


def test_d4_and_d5_of_the_reconstruction_are_ours(shipped: Shipped) -> None:
    pair = shipped.pairs["ling3-flash/align-smoke-64"]
    path = RECONSTRUCTION / "scripts/submit_ling3_flash_64chips_job.sh"
    variables = {"LOAD_FULL_STATE_PATH": "gs://data_ant/state/0", "COMPILED_TRAINSTEP_FILE": "/models/step.pickle"}
    made = _once(path, Options(RECONSTRUCTION, variables=variables, maxtext_version="0.2.5"))
    arguments = [f"{name.lower()}={text}" for name, text in variables.items()]
    experiment = shipped.configurator.read(ROOT / f"experiments/{pair.experiment}.yml", [])
    configuration = shipped.configurator.configure(experiment, [], arguments=arguments)
    assert configuration is not None
    resolved = recording.resolve(made.data, "again", None, configuration.snapshot)
    outcome = compare(pair, Recorded(resolved, recording.reads(made.data)), ours.resolve(configuration), TODAY)
    assert outcome.differences == ()
    assert resolved.maxtext["eval_interval"] == 0
    assert resolved.maxtext["enable_checkpointing"] is True
    assert "load_parameters_path" not in resolved.maxtext


def test_words_arrive_exactly(tmp_path: Path) -> None:
    awkward = ["a b", "it's", 'say "x"', "two\nlines", "", "$HOME", "*", "ünï"]
    words = " ".join(map(shlex.quote, awkward))
    command = f"{TRAINER} {shlex.quote('prompt=a b $x')}"
    path = script(tmp_path, f"#!/usr/bin/env bash\nkubectl annotate {words}\n{xpk(command)}\n")
    made = record(path, Options(tmp_path))
    assert made.data["commands"][0] == ["kubectl", "annotate", *awkward]
    assert made.data["pod"]["trainer"][-1] == "prompt=a b $x"


def test_manifests_by_file_by_pipe_and_through_envsubst(tmp_path: Path) -> None:
    container = {
        "command": ["bash", "-c", f"source /etc/more/extra.sh; {TRAINER} steps=$STEPS"],
        "env": [{"name": "STEPS", "value": "7"}],
        "volumeMounts": [{"name": "more", "mountPath": "/etc/more"}],
    }
    pod = {"containers": [container], "volumes": [{"name": "more", "configMap": {"name": "more"}}]}
    jobs = [{"template": {"spec": {"template": {"spec": pod}}}}]
    job_set = {"kind": "JobSet", "metadata": {"name": "${NAME}"}, "spec": {"replicatedJobs": jobs}}
    script(tmp_path, json.dumps(job_set), "job.yml")
    script(tmp_path, "kind: Namespace\nmetadata: {name: n}\n", "namespace.yml")
    lines = [
        "#!/usr/bin/env bash",
        "set -euo pipefail",
        "export NAME=run-$(date +%Y%m%d)",
        "kubectl apply -f namespace.yml",
        "kubectl create configmap more --from-literal=extra.sh='export SEEN=1' --dry-run=client -o yaml |",
        "  kubectl apply -f -",
        "envsubst '$NAME' <job.yml | kubectl apply -f -",
    ]
    made = record(script(tmp_path, "\n".join(lines) + "\n"), Options(tmp_path))
    kinds = [item["kind"] for item in made.data["objects"]]
    assert kinds == ["Namespace", "ConfigMap", "JobSet"]
    assert made.data["objects"][2]["metadata"]["name"] == "run-20260101"
    assert made.data["pod"]["trainer"][-1] == "steps=7"
    assert made.data["pod"]["environment"] == {"SEEN": "1", "STEPS": "7"}


def test_knobs_are_found_with_their_place(tmp_path: Path) -> None:
    script(tmp_path, "STEPS=${STEPS:-20}\n", "lib/defaults.sh")
    lines = ["#!/usr/bin/env bash", "source lib/defaults.sh", 'if [[ -n "${HIDDEN_KNOB:-}" ]]; then STEPS=1; fi', xpk()]
    made = record(script(tmp_path, "\n".join(lines)), Options(tmp_path))
    assert made.data["variables_read"]["launcher"] == {"HIDDEN_KNOB": "launch.sh:3", "STEPS": "lib/defaults.sh:1"}


def test_the_world_is_frozen(tmp_path: Path) -> None:
    questions = (
        "$(date +%F)",
        "$(whoami)",
        "$USER",
        "$(hostname)",
        "$(git rev-parse --abbrev-ref HEAD)",
        "$(mktemp -u)",
    )
    path = script(tmp_path, f"#!/usr/bin/env bash\nkubectl annotate {' '.join(questions)}\n{xpk()}\n")
    command = record(path, Options(tmp_path)).data["commands"]
    answers = next(words for words in command if words[0] == "kubectl")
    assert answers[2:] == ["2026-01-01", "user", "user", "host", "main", "<tmp>/tmp.000001"]


def test_a_recipe_script_records_as_its_recipe(tmp_path: Path) -> None:
    """A run_recipe.sh in the recipes' style, made from a recorded recipe, comes to the same values."""
    recipe = json.loads((ROOT / "tests/legacy/recipes/llama3.1-70b--8k-bf16-tpu7x-4x4x4.json").read_bytes())
    flags = " ".join(f"--{name}={value}" for name, value in recipe["libtpu_init_args"].items())
    arguments = " ".join(f"{key}={value}" for key, value in recipe["maxtext_arguments"].items() if key != "run_name")
    options = " ".join(
        f"{name}={text}" if text else name for name, text in recipe["launcher_options"].items() if name != "--workload"
    )
    exports = " && ".join(f"export {name}='{text}'" for name, text in recipe["environment"].items())
    lines = [
        "#!/usr/bin/env bash",
        "set -e",
        'WORKLOAD_NAME="$(printf "%.26s" "${USER//_/-}-llama3-1-70b-8192-4x4x4")-$(date +%Y%m%d-%H%M)"',
        f'XLA_FLAGS="{flags}"',
        f'MAXTEXT_ARGS="{arguments} run_name=${{WORKLOAD_NAME}}"',
        "xpk workload create --cluster=$CLUSTER_NAME --project=$PROJECT_ID --zone=$ZONE \\",
        f'  {options} --workload="${{WORKLOAD_NAME}}" \\',
        f"  --command=\"set -e && {exports} && export LIBTPU_INIT_ARGS='${{XLA_FLAGS}}' && \\",
        '  python3 -m MaxText.train MaxText/configs/base.yml ${MAXTEXT_ARGS}"',
    ]
    path = script(tmp_path, "\n".join(lines).replace("<", "\\<") + "\n", "run_recipe.sh")
    variables = {"CLUSTER_NAME": "c", "PROJECT_ID": "p", "ZONE": "z"}
    made = record(path, Options(tmp_path, variables=variables, maxtext_version="maxtext-tutorial-v1.5.0"))
    found = recording.resolve(made.data, "script").values(frozenset())
    wanted = sources.from_data(recipe, "recipe").resolved.values(frozenset())
    name = {"maxtext.run_name": "user-llama3-1-70b-8192-4x4-20260101-0000"}
    assert found == wanted | name
    assert examine(made, load("v1.5.0")) == []


# ---- how it ends ----


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("while true; do :; done", "did not end within 1 s: it called no command that is noted (an endless loop?)"),
        ("until kubectl get pod x; do sleep 5; done", "did not end within 1 s: its last noted command, number"),
        (
            "read -r -p 'Sure? ' answer; echo $answer",
            "reads standard input: give it everything by arguments and variables",
        ),
        ("cat | kubectl apply -f -", "reads standard input"),
        (
            "terraform output || true",
            "needs terraform, which the sandbox does not have\n    a real one that reaches nothing: --tool",
        ),
        ("echo hello", "launches nothing: one JobSet given to kubectl, or one xpk workload create, is expected"),
        ("set -e; cd /nowhere", "it ended with code 1\n    launch.sh: line 2: cd: /nowhere: No such file or directory"),
        (f"{xpk()}; {xpk()}", "launches 2 times: one JobSet given to kubectl"),
        (xpk(f"{TRAINER}; {TRAINER}"), "the pod starts 2 training programs"),
        (xpk("echo nothing"), "the pod starts 0 training programs (nothing): one is expected"),
        (xpk("exit 3"), "launch.sh, in the pod: its shell text ended with code 3"),
        (f"{xpk()} --more=$RANDOM", "two recordings differ in commands: something is not frozen"),
    ],
)
def test_it_ends_and_says_why(tmp_path: Path, text: str, message: str) -> None:
    endless = "did not end" in message
    assert message in refused(script(tmp_path, f"#!/usr/bin/env bash\n{text}\n"), seconds=1 if endless else 20)


def test_bash_in_a_script_for_sh(tmp_path: Path) -> None:
    path = script(tmp_path, f"#!/bin/sh\nARGS=(a b)\n{xpk()}\n")
    message = refused(path)
    assert message.startswith("launch.sh:2:1: asks for sh in its first line, and sh failed: an array is bash's\n")
    assert interpreter("#!/usr/bin/env bash") == "bash"
    assert interpreter("#!/bin/sh -e") == "sh"


def test_a_background_loop_does_not_keep_it(tmp_path: Path) -> None:
    command = f"(while true; do gsutil cp log gs://b/log; sleep 60; done) & {TRAINER}"
    path = script(tmp_path, f"#!/usr/bin/env bash\n{xpk(command)}\n")
    made = record(path, Options(tmp_path))
    assert made.data["pod"]["background_commands"] == [["gsutil", "cp", "log", "gs://b/log"]]


def test_the_launcher_is_left_as_it_is(tmp_path: Path) -> None:
    path = script(tmp_path, f"#!/usr/bin/env bash\necho x >made.txt\nrm launch.sh\n{xpk()}\n")
    record(path, Options(tmp_path))
    assert [item.name for item in tmp_path.iterdir()] == ["launch.sh"]


# ---- the command ----


def test_a_folder_must_hold_what_is_expected(tmp_path: Path) -> None:
    script(tmp_path, f"#!/usr/bin/env bash\n{xpk()}\n", "submit_a_job.sh")
    code, _, err = run(ROOT, "legacy", "record", str(tmp_path), "--match", "submit_*_job.sh", "--expect", "9")
    assert code == 1
    assert err == f"{tmp_path}: 1 launcher matches submit_*_job.sh; expected are at least 9\n"


def test_what_is_found_keeps_the_recording_away_unless_accepted(tmp_path: Path) -> None:
    path = script(tmp_path, f"#!/usr/bin/env bash\nUNUSED=1\n{xpk(TRAINER + ' output_dir=gs://b/c')}\n")
    to = tmp_path / "out"
    arguments = ("legacy", "record", str(path), "--to", str(to), "--maxtext-version", "a0fceb5")
    code, _, err = run(ROOT, *arguments)
    assert (code, to.exists()) == (1, False)
    assert err == (
        "launch.sh:2:1: UNUSED is set and never read\n"
        "launch.sh: output_dir: MaxText a0fceb5 has no such key\n"
        "    did you mean output_dim_for_audio or base_output_directory?\n"
        f"{path}: is not accepted\n"
        "    fix the launcher first and record it again; "
        "to keep one of them, --accept unread-variable --accept unknown-key\n"
    )
    code, out, err = run(ROOT, *arguments, "--accept", "unread-variable", "--accept", "unknown-key")
    assert (code, err) == (0, "")
    assert out == f"{to}/launch.json: 1 command, 0 objects, 6 words of the trainer\n"
    assert recording.load((to / "launch.json").read_text(encoding="utf-8"))["accepted"] == [
        "unknown-key",
        "unread-variable",
    ]


def test_one_command_replaces_a_reconstruction(tmp_path: Path) -> None:
    """What the owner of the original launchers does: the pair is then compared with the new recording."""
    root = tmp_path / "content"
    for folder in ("presets", "datasets", "experiments", "tests/legacy"):
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("*.py", "__pycache__"))
    theirs = tmp_path / "theirs"
    shutil.copytree(RECONSTRUCTION, theirs)
    pretrain = theirs / "scripts/pretrain_ling3_flash.sh"
    pretrain.write_text(
        pretrain.read_text(encoding="utf-8").replace("MUON_BETA:-0.95", "MUON_BETA:-0.9"), encoding="utf-8"
    )
    launcher, pair = theirs / "scripts/submit_ling3_flash_64chips_job.sh", "ling3-flash/align-smoke-64"
    arguments = ("--checkout", str(theirs), "--maxtext-version", "0.2.5", "--pair", pair)
    assert run(root, "legacy", "record", str(launcher), *arguments).code == 0
    code, out, _ = run(root, "legacy", "check", pair)
    assert code == 1
    assert out.splitlines() == [
        f"{pair}: NOT EQUAL to recordings/submit_ling3_flash_64chips_job.json (100 values compared, 49 waived)",
        "    maxtext.muon_beta: recorded 0.9, ours (absent) (no layer sets it)",
        "experiments equal to their recordings: 0 of 1",
    ]


def test_what_cannot_be_paired_is_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    launcher = RECONSTRUCTION / "scripts/submit_ling3_flash_64chips_job.sh"
    to = tmp_path / "elsewhere"
    words = ("--checkout", str(RECONSTRUCTION), "--pair", "ling3-flash/align-smoke-64", "--to", str(to))
    code, out, err = run(tmp_path, "legacy", "record", str(launcher), *words)
    assert (code, out) == (2, "")
    assert "Error: --pair needs the snapshot in tests/legacy/: leave --to out" in err
    assert not to.exists()


def test_the_guide_names_every_kind_of_waiver() -> None:
    guide = (ROOT / "docs/legacy.md").read_text(encoding="utf-8")
    assert [kind for kind in KINDS if f"| `{kind}` |" not in guide] == []
