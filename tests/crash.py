"""Kills a commit of rendered files before every step it takes, one child process per step; prints what was left.

Run as `python crash.py ROOT CHANGES.json [plain]` from the tests: a process of its own, because forking needs one
thread. `plain` takes away the kernel's swap of two folders, as on a file system without it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import signal
import sys
from pathlib import Path

from renderer import exchange, rendered_tree
from renderer.rendered_tree import Changes

STEPS = {
    "open",
    "os.mkdir",
    "os.rename",
    "os.link",
    "os.remove",
    "os.rmdir",
    "tempfile.mkdtemp",
    "shutil.rmtree",
    "shutil.copyfile",
}


def state(root: Path) -> dict[str, str]:
    """Return what lies under rendered/, empty folders included."""
    return {
        path.relative_to(root).as_posix(): base64.b64encode(path.read_bytes()).decode() if path.is_file() else ""
        for path in sorted((root / "rendered").rglob("*"))
    }


def killed_at(step: int, root: Path, changes: Changes) -> bool:
    """Commit in a child that is killed before its `step`-th step; return whether it came that far."""
    child = os.fork()
    if not child:
        count = 0

        def before(event: str, arguments: tuple[object, ...]) -> None:
            nonlocal count
            if event in STEPS or (event == "ctypes.dlsym" and "rename" in str(arguments)):
                count += 1
                if count == step:
                    os.kill(os.getpid(), signal.SIGKILL)

        sys.addaudithook(before)
        rendered_tree.commit(root, changes)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL


def main() -> None:
    source, spec = Path(sys.argv[1]), json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    changes = Changes({path: base64.b64decode(data) for path, data in spec["write"].items()}, tuple(spec["delete"]))
    if "plain" in sys.argv:
        exchange._swap = lambda *_: False  # type: ignore[assignment]
    left, step, alive = [], 0, True
    while alive:
        step += 1
        root = source.with_name(f"{source.name}-{step}")
        shutil.copytree(source, root)
        alive = killed_at(step, root, changes)
        after = state(root)
        rendered_tree.commit(root, Changes({}, ()))
        litter = [path.name for path in root.glob(".renderer*")]
        left.append({"killed": alive, "after": after, "recovered": state(root), "litter": litter})
        shutil.rmtree(root)
    json.dump(left, sys.stdout)


if __name__ == "__main__":
    main()
