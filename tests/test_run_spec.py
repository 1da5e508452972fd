"""A run as it is specified: DESIGN's table of slices, both modes, images, and what the pod is told."""

from __future__ import annotations

import re

import pytest
from content import Content, container, manifest, pod_spec

from renderer.accelerators import find_slice
from renderer.manifest_yaml import load
from renderer.mesh import global_batch, mesh
from renderer.run_spec import specify

# chips, TPU_TOPOLOGY, COMPLETIONS, ici_fsdp, ici_data, ici_context, gradient_accumulation_steps, global batch
SLICES = [
    (64, "4x4x4", 16, 128, 1, 1, 1, 256),
    (256, "4x8x8", 64, 128, 4, 1, 8, 8192),
    (512, "8x8x8", 128, 128, 8, 1, 4, 8192),
    (1024, "8x8x16", 256, 128, 16, 1, 2, 8192),
    (2048, "16x8x16", 512, 128, 32, 1, 1, 8192),
]
# namespace, bucket, restarts, whether checkpoints and monitoring are on, image
ENVIRONMENTS = {
    "prod": ("ling3-prod", "ant-data-prod", 10, True),
    "test": ("default", "data_ant", 3, False),
}


@pytest.mark.parametrize("environment", ENVIRONMENTS)
@pytest.mark.parametrize("row", SLICES, ids=lambda row: f"{row[0]}chips")
def test_ling3_slice(row: tuple[int | str, ...], environment: str, content: Content) -> None:
    chips, topology, hosts, fsdp, data, context, accumulation, batch = row
    namespace, bucket, restarts, switched_on = ENVIRONMENTS[environment]
    image = {"image": "main-abc1234-20260609", "branch": None} if environment == "prod" else {}
    path = content.experiment(launch={"chips": chips, "environment": environment, **image})
    rendered = content.render(path)

    jobset = manifest(rendered)
    assert jobset["metadata"]["namespace"] == namespace
    assert jobset["spec"]["failurePolicy"]["maxRestarts"] == restarts
    job = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (hosts, hosts, 0)
    assert pod_spec(rendered)["nodeSelector"] == {
        "cloud.google.com/gke-tpu-accelerator": "tpu7x",
        "cloud.google.com/gke-tpu-topology": topology,
    }
    trainer = container(rendered)
    assert trainer["resources"] == {"requests": {"google.com/tpu": 4}, "limits": {"google.com/tpu": 4}}
    repository = "registry.example.com/ling3/maxtext-tpu-pretrain"
    assert trainer["image"] == (f"{repository}:main-abc1234-20260609" if environment == "prod" else "python:3.12")
    env = {entry["name"]: entry.get("value") for entry in trainer["env"]}
    assert env == {
        "GCS_BUCKET": bucket,
        "RUN_NAME": rendered.names.run,
        "LIBTPU_INIT_ARGS": "",
        "GITHUB_TOKEN": None,
    }

    run = load(rendered.files["run.yml"].decode())
    assert run["base_config"] == "base.yml"
    assert run["model_name"] == "ling3-flash"
    assert run["run_name"] == rendered.names.run == rendered.names.object
    assert (run["ici_fsdp_parallelism"], run["ici_data_parallelism"], run["ici_context_parallelism"]) == (
        fsdp,
        data,
        context,
    )
    assert (run["ici_expert_parallelism"], run["ici_tensor_parallelism"]) == (1, 1)
    assert (run["gradient_accumulation_steps"], run["per_device_batch_size"]) == (accumulation, 2)
    assert run["base_output_directory"].startswith(f"gs://{bucket}/")
    assert [
        run[key]
        for key in ("enable_checkpointing", "async_checkpointing", "enable_goodput_recording", "use_vertex_tensorboard")
    ] == [switched_on] * 4
    assert ("watcher.yml" in rendered.files) is switched_on

    configuration, problems = content.configure(path)
    assert configuration is not None
    assert problems == []
    found = find_slice("tpu7x", str(topology))
    assert found is not None
    assert (found.devices, found.hosts) == (int(chips) * 2, hosts)
    assert global_batch(configuration, found.devices) == batch
    assert str(mesh(configuration, found.devices)) == (f"fsdp={fsdp}" if data == 1 else f"data={data} fsdp={fsdp}")


@pytest.mark.parametrize(
    ("image", "full"),
    [
        ("main-abc1234", "registry.example.com/ling3/maxtext-tpu-pretrain:main-abc1234"),
        (f"sha256:{'0' * 64}", f"registry.example.com/ling3/maxtext-tpu-pretrain@sha256:{'0' * 64}"),
        ("registry.example.com/a/b:v1", "registry.example.com/a/b:v1"),
        (f"registry.example.com/a/b@sha256:{'1' * 64}", f"registry.example.com/a/b@sha256:{'1' * 64}"),
    ],
)
def test_image_is_a_tag_a_digest_or_a_full_reference(image: str, full: str, content: Content) -> None:
    trainer = container(content.render(content.experiment(launch={"image": image, "branch": None})))
    assert trainer["image"] == full
    assert trainer["args"] == ["--mode", "image"]


def test_source_mode_tells_the_pod_what_to_clone(content: Content) -> None:
    commit = "0123456789abcdef" * 2 + "01234567"
    rendered = content.render(content.experiment(launch={"branch": "feature/x", "commit": commit}))
    assert container(rendered)["args"] == [
        "--mode",
        "source",
        "--repository",
        "github.com/primatrix/maxtext.git",
        "--branch",
        "feature/x",
        "--commit",
        commit,
        "--deps-command",
        "install_tpu_pre_train_extra_deps",
    ]
    assert manifest(rendered)["metadata"]["labels"] == {
        "renderer/branch": "feature-x",
        "renderer/chips": "64",
        "renderer/environment": "test",
        "renderer/experiment": "run",
        "renderer/model": "ling3-flash",
        "renderer/owner": "team",
    }


def test_an_image_beats_a_branch_and_says_so(content: Content) -> None:
    path = content.experiment(launch={"image": "v1"})
    warning = (
        "experiments/ling3-flash/run.yml:7:13: launch.branch: warning: is ignored: the image v1 holds its own code"
    )
    assert content.problems(path) == [warning]
    rendered = content.render(path)
    assert container(rendered)["args"] == ["--mode", "image"]
    assert "renderer/branch" not in manifest(rendered)["metadata"]["labels"]


def test_two_paths_of_one_claim_share_its_volume(content: Content) -> None:
    volumes = {"/a": "one", "/b": "one", "/c": "two"}
    path = content.experiment(model="qwen3-0.6b", launch={"image": "v1", "branch": None}, deploy={"VOLUMES": volumes})
    spec = pod_spec(content.render(path))
    claims = {
        v["name"]: v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"] if "persistentVolumeClaim" in v
    }
    assert sorted(claims.values()) == ["one", "two"]
    mounts = {m["mountPath"]: claims.get(m["name"]) for m in spec["containers"][0]["volumeMounts"]}
    assert mounts == {"/etc/maxtext": None, "/etc/maxtext-pod": None, "/dev/shm": None, **volumes}


def test_derive_json_holds_what_the_pod_needs(content: Content) -> None:
    rules = [["activation_batch", ["data"]]]
    path = content.experiment(maxtext={"logical_axis_rules": rules, "run_name": "mine", "steps": 30})
    configuration, _ = content.configure(path)
    assert configuration is not None
    run = specify(configuration)
    assert run.derive == {
        "model": "ling3-flash",
        "maxtext_version": "0.2.5",
        "maxtext_mismatch": "warn",
        "trainer": "maxtext.trainers.pre_train.train",
        "derivations": ["D1", "D2", "D3", "D4", "D5"],
        "warmup_iters": 2000,
        "load_parameters_path": {
            "scanned": "/models_prod/checkpoints/ling3-flash/scanned/items",
            "unscanned": "/models_prod/checkpoints/ling3-flash/unscanned/items",
        },
        "set_by_person": [
            "async_checkpointing",
            "base_output_directory",
            "dataset_type",
            "enable_checkpointing",
            "enable_cloud_monitoring",
            "enable_goodput_recording",
            "eval_interval",
            "lazy_train_files",
            "logical_axis_rules",
            "run_name",
            "steps",
            "use_vertex_tensorboard",
        ],
        "run_name_explicit": True,
        "logical_axis_rules": rules,
    }
    assert "logical_axis_rules" not in run.maxtext
    assert run.run_name == "mine"


@pytest.mark.parametrize(
    ("model", "version", "strict", "trainer"),
    [
        ("qwen3-0.6b", "0.2.5", "error", "maxtext.trainers.pre_train.train"),
        ("llama3.1-70b", "a0fceb5", "warn", "maxtext.trainers.pre_train.train"),
        ("llama3.1-70b", "maxtext-tutorial-v1.5.0", "warn", "MaxText.train"),
    ],
)
def test_mismatch_is_an_error_for_releases_only(
    model: str, version: str, strict: str, trainer: str, content: Content
) -> None:
    path = content.experiment(
        model=model, launch={"image": "a.example.com/b:v1", "branch": None}, deploy={"MAXTEXT_VERSION": version}
    )
    configuration, _ = content.configure(path)
    assert configuration is not None
    derive = specify(configuration).derive
    assert (derive["maxtext_mismatch"], derive["trainer"]) == (strict, trainer)


def test_names_in_comments_cannot_add_lines(content: Content) -> None:
    """A file's name may hold a line break; the comment that names it stays one line."""
    content.write("datasets/a\nsteps: 1.yml", "dataset_type: synthetic\n")
    rendered = content.render(content.experiment(deploy={"DATASETS_YAML": "datasets/a\nsteps: 1.yml"}))
    assert b"# datasets/a\\nsteps: 1.yml\n" in rendered.files["run.yml"]
    assert not re.search(rb"^steps: 1\.yml", rendered.files["run.yml"], re.MULTILINE)
