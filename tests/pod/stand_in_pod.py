"""A pod on this machine: the real scripts under a root folder, and stand-ins for all that they call."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).parents[2] / "pod"
TOKEN = "ghp_never4to9be2seen7anywhere1"

TRAINER = """\
import os, pathlib, signal, sys, time
print("trainer on stdout", *sys.argv[1:], flush=True)
print("trainer on stderr", file=sys.stderr, flush=True)
pathlib.Path(os.environ["SEEN"], "trainer").write_text(
    "\\n".join([sys.executable, os.getcwd(), *sys.argv[1:], *(f"{k}={v}" for k, v in sorted(os.environ.items()))])
)
what = os.environ.get("TRAINER", "0")
if what == "checkpoints":
    def save(*_):
        time.sleep(0.3)
        print("checkpoint saved", flush=True)
        sys.exit(int(os.environ.get("AFTER", "0")))
    signal.signal(signal.SIGTERM, save)
if what in {"checkpoints", "waits"}:
    print("training", flush=True)
    time.sleep(60)
sys.exit(int(what))
"""
STUB = """\
#!/bin/sh
printf '%s\\n' "$(basename "$0") $*" >>"$SEEN/calls"
tr '\\0' ' ' </proc/$$/cmdline >>"$SEEN/cmdlines"
"""
UV = (
    STUB
    + """\
[ -z "$UV_SLEEPS" ] || exec sleep 60
[ "$2" != "$UV_FAILS" ] || exit 2
case "$1" in
  venv)
    mkdir -p maxtext_venv/bin
    printf 'export VIRTUAL_ENV=%s\\nexport UNSET=$PS1x\\n' "$PWD/maxtext_venv" >maxtext_venv/bin/activate
    ;;
  pip)
    printf 'host=%s\\nprotocol=https\\n\\n' "${ASK_HOST:-github.com}" |
      git credential fill >"$SEEN/credential" 2>&1 || exit 0
    [ -z "$GIT_APPROVES" ] || git credential approve <"$SEEN/credential"
    ;;
esac
"""
)
GCLOUD = STUB + 'cp "$4" "$SEEN/uploaded"\nexit "${UPLOAD_EXIT:-0}"\n'


@dataclass
class Ended:
    code: int
    out: str
    log: str
    calls: list[str]


@dataclass
class Pod:
    """One container's root folder and environment; run() is its command."""

    root: Path
    environment: dict[str, str]
    seen_in_argv: list[str] = field(default_factory=list)

    @property
    def seen(self) -> Path:
        return self.root / "seen"

    def put(self, path: str, text: str, mode: int = 0o644) -> Path:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
        target.chmod(mode)
        return target

    def start(self, *words: str, **environment: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            ["bash", str(self.root / "etc/maxtext-pod/bootstrap.sh"), *words],
            env=self.environment | environment,
            cwd=self.root,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )

    def run(self, *words: str, **environment: str) -> Ended:
        process = self.start(*words, **environment)
        watch = threading.Thread(target=self._watch_argv, args=(process,))
        watch.start()
        ended = self.end(process)
        watch.join()
        return ended

    def end(self, process: subprocess.Popen[str]) -> Ended:
        out, _ = process.communicate(timeout=30)
        logs = sorted(self.root.glob("var/log/maxtext/*.log"))
        calls = self.seen / "calls"
        return Ended(
            process.returncode,
            out,
            "".join(log.read_text() for log in logs),
            calls.read_text().splitlines() if calls.exists() else [],
        )

    def terminate(self, process: subprocess.Popen[str], once: Path, text: str = "", *, group: bool = False) -> Ended:
        """Send SIGTERM to the container's first process, or to all, once the file `once` holds `text`."""
        for _ in range(200):
            if once.exists() and text in once.read_text():
                break
            time.sleep(0.05)
        if group:
            os.killpg(process.pid, signal.SIGTERM)
        else:
            process.send_signal(signal.SIGTERM)
        return self.end(process)

    def files_with(self, text: str) -> list[Path]:
        files = (path for path in self.root.rglob("*") if path.is_file() and not path.is_symlink())
        return [path for path in files if text.encode() in path.read_bytes()]

    def _watch_argv(self, process: subprocess.Popen[str]) -> None:
        while process.poll() is None:
            for path in Path("/proc").glob("[0-9]*/cmdline"):
                try:
                    argv = path.read_text(errors="replace")
                except OSError:
                    continue
                if TOKEN in argv:
                    self.seen_in_argv.append(argv)
            time.sleep(0.005)


def make_pod(tmp_path: Path) -> Pod:
    """Return a pod whose python3 is this interpreter and whose trainer is a stand-in; git is real."""
    root = tmp_path / "root"
    pod = Pod(root, {})
    for name in ("bootstrap.sh", "derivations.py", "start_trainer.py"):
        pod.put(f"etc/maxtext-pod/{name}", (SCRIPTS / name).read_text())
    pod.put("etc/maxtext-pod/run_pretrain.py", TRAINER)
    for name, text in {"pip": STUB, "uv": UV, "gcloud": GCLOUD, "install_extra_deps": STUB}.items():
        pod.put(f"stubs/{name}", text, 0o755)
    (root / "stubs/python3").symlink_to(sys.executable)
    pod.seen.mkdir()
    repository = make_repository(tmp_path / "served/owner/maxtext.git")
    config = pod.put("home/.gitconfig", f'[url "file://{repository.parents[1]}/"]\n\tinsteadOf = https://github.com/\n')
    pod.environment.update(
        PATH=f"{root}/stubs:{os.environ['PATH']}",
        HOME=str(root / "home"),
        GIT_CONFIG_GLOBAL=str(config),
        GIT_CONFIG_NOSYSTEM="1",
        POD_ROOT=str(root),
        SEEN=str(pod.seen),
        RUN_NAME="demo-64c-0a1b2c3d",
        HOSTNAME="demo-slice-job-0-0-abcde",
        JOB_COMPLETION_INDEX="0",
        GITHUB_TOKEN=TOKEN,
    )
    return pod


def make_repository(path: Path) -> Path:
    """A repository with two commits on branch feature/x, the second one at its tip."""
    path.mkdir(parents=True)
    identity = ["-c", "user.name=a", "-c", "user.email=a@b"]
    git = ["git", "-C", str(path), *identity]
    subprocess.run([*git, "init", "-q", "-b", "feature/x"], check=True)
    for text in ("first", "second"):
        (path / "content").write_text(text)
        subprocess.run([*git, "add", "."], check=True)
        subprocess.run([*git, "commit", "-q", "-m", text], check=True)
    subprocess.run([*git, "config", "uploadpack.allowReachableSHA1InWant", "true"], check=True)
    return path
