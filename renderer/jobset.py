"""jobset.yml and watcher.yml from the templates in pod/. The only module that knows jinja2."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import jinja2

import pod
from renderer.names import REPLICATED_JOB
from renderer.run_spec import Run, labels
from renderer.scalars import quote

FOLDER = Path(pod.__file__).parent


@dataclass(frozen=True, slots=True)
class Names:
    """The names and digests a run's objects carry: derived from its content, so the content digest leaves them out."""

    object: str
    run: str
    pod_config_map: str
    content_digest: str
    experiment_digest: str
    base_output_directory: str

    @property
    def run_config_map(self) -> str:
        """The immutable ConfigMap of run.yml and derive.json."""
        return f"run-{self.object}"

    @property
    def watcher(self) -> str:
        """The Deployment that converts checkpoints."""
        return f"{self.object}-hf"

    @property
    def checkpoint_directory(self) -> str:
        """Where MaxText writes this run's checkpoints: <base_output_directory>/<run_name>/checkpoints."""
        return f"{self.base_output_directory.rstrip('/')}/{self.run}/checkpoints"


def jobset_yml(run: Run, names: Names) -> bytes:
    """Return jobset.yml; its files digest is still blank (see names.seal)."""
    claims = {claim: f"volume-{index}" for index, claim in enumerate(sorted(set(run.volumes.values())))}
    text = _template("jobset.yml.j2").render(
        run=run,
        names=names,
        source=run.file,
        labels=labels(run, queued=True),
        replicated_job=REPLICATED_JOB,
        mounts=[(mount, claims[claim]) for mount, claim in run.volumes.items()],
        claims=[(volume, claim) for claim, volume in claims.items()],
    )
    return text.encode()


def watcher_yml(run: Run, names: Names) -> bytes:
    """Return watcher.yml, for a run that has a watcher."""
    text = _template("watcher.yml.j2").render(run=run, names=names, source=run.file, labels=labels(run, queued=False))
    return text.encode()


@cache
def _template(name: str) -> jinja2.Template:
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(FOLDER),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        autoescape=False,  # noqa: S701  YAML, not HTML: every value goes through `q`
    )
    environment.filters["q"] = quote
    return environment.get_template(name)


def pod_scripts() -> Mapping[str, bytes]:
    """Return the scripts that travel in the ConfigMap pod-<digest>, by file name."""
    return {name: (FOLDER / name).read_bytes() for name in SCRIPTS}


SCRIPTS = ("bootstrap.sh", "derivations.py", "run_pretrain.py", "start_trainer.py")
