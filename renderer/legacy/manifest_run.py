"""Finds out what a JobSet manifest would start, by running its shell text in the sandbox."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

from renderer.legacy import manifest
from renderer.legacy.record import Options, record
from renderer.location import Location
from renderer.problem import RefusedError, refuse

_SUBMIT = "#!/usr/bin/env bash\nkubectl apply -f manifest.json\n"


def record_job_set(objects: list[dict[str, Any]], source: str) -> dict[str, Any]:
    """Return the recording of a launcher that only applies `objects`. Raises RefusedError as `record` does."""
    if len(manifest.job_sets(objects)) != 1:
        refuse("legacy-manifest", Location(source), f"{len(manifest.job_sets(objects))} JobSets: one is expected")
    with tempfile.TemporaryDirectory(prefix="manifest-") as folder:
        checkout = Path(folder)
        (checkout / "submit.sh").write_text(_SUBMIT, encoding="utf-8")
        stream = "\n---\n".join(manifest.dump(item) for item in objects)
        (checkout / "manifest.json").write_text(stream, encoding="utf-8")
        try:
            return record(checkout / "submit.sh", Options(checkout, pod_files=("/opt/maxtext_venv/bin/activate",))).data
        except RefusedError as error:  # it names the launcher made here, which nobody has
            raise RefusedError(replace(problem, location=Location(source)) for problem in error.problems) from error
