#!/usr/bin/env bash
# What the training container runs: prepares MaxText, starts the trainer on run.yml, passes signals and the exit
# code on, and keeps the log.
#
# Usage: bootstrap.sh --mode image [-- RUN_YML [KEY=VALUE ...]]
#        bootstrap.sh --mode source --repository HOST/OWNER/NAME.git --branch BRANCH [--commit COMMIT]
#                     [--deps-command NAME] [-- RUN_YML [KEY=VALUE ...]]
#
# RUN_YML is the pod's /etc/maxtext/run.yml unless given. POD_ROOT is put before every absolute path.
# Exit code: the trainer's own, where 2 means a configuration error; 75 if the trainer was never started;
# 143 if a signal ended the run, even where the trainer then stopped in good order: the training is not finished.

set -euo pipefail

readonly BOOTSTRAP_FAILED=75 ENDED_BY_SIGNAL=143
readonly UV_VERSION=0.13.9
readonly ROOT="${POD_ROOT:-}"
readonly SCRIPTS="$ROOT/etc/maxtext-pod"
readonly CHECKOUT="$ROOT/root/maxtext"
readonly INDEX="${JOB_COMPLETION_INDEX:-0}"
readonly SYNC_SECONDS=300
LOG_FILE="${LOG_FILE:-$ROOT/var/log/maxtext/${RUN_NAME:-run}-$INDEX.log}"
readonly LOG_FILE

mode='' repository='' branch='' commit='' deps_command=''
trainer_arguments=("$ROOT/etc/maxtext/run.yml")
step='reading its arguments'
trainer_started='' # set once the exit code is the trainer's
child=''           # the command that runs now; signals go to it
terminated=''      # set once a signal has come
tee_pid='' sync_pid=''

main() {
  read_arguments "$@"
  start_log
  trap finish EXIT
  trap on_signal TERM INT
  case "$mode" in
    image) use_image ;;
    source) use_source ;;
    *) fail "--mode must be image or source, not '$mode'" ;;
  esac
  # from here on nothing needs it, and the checkout's scripts may print their environment
  unset GITHUB_TOKEN "${!GIT_CONFIG_@}"
  source_checkout_scripts
  start_log_sync
  train
}

fail() {
  echo "bootstrap: $*" >&2
  exit "$BOOTSTRAP_FAILED"
}

say() { echo "bootstrap: $*"; }

read_arguments() {
  while [ $# -gt 0 ]; do
    [ "$1" = -- ] || [ $# -ge 2 ] || fail "$1 needs a value"
    case "$1" in
      --mode) mode=$2 ;;
      --repository) repository=$2 ;;
      --branch) branch=$2 ;;
      --commit) commit=$2 ;;
      --deps-command) deps_command=$2 ;;
      --)
        shift
        [ $# -eq 0 ] || trainer_arguments=("$@")
        return
        ;;
      *) fail "unknown argument $1" ;;
    esac
    shift 2
  done
}

# ---- the log: both streams go to stdout and to LOG_FILE, and index 0's is uploaded ----

start_log() {
  exec 3>&1 4>&2
  if ! mkdir -p "$(dirname "$LOG_FILE")" || ! : >>"$LOG_FILE"; then
    say "$LOG_FILE cannot be written, so the log goes to stdout only"
    return
  fi
  # tee outlives signals to the whole process group, so that the last words are kept
  exec > >(trap '' TERM INT; exec tee -a "$LOG_FILE") 2>&1
  tee_pid=$!
}

start_log_sync() {
  [ "$INDEX" = 0 ] && [ -n "${GCS_BUCKET:-}" ] || return 0
  (
    trap 'kill "$!" 2>/dev/null; exit 0' TERM
    while :; do
      sleep "$SYNC_SECONDS" &
      wait "$!"
      upload_log
    done
  ) >/dev/null 2>&1 3>&- 4>&- &
  sync_pid=$!
}

upload_log() {
  [ "$INDEX" = 0 ] && [ -n "${GCS_BUCKET:-}" ] && [ -s "$LOG_FILE" ] || return 0
  local copy target
  target="gs://$GCS_BUCKET/logs/${RUN_NAME:-run}/${HOSTNAME:-pod}.log"
  if command -v gcloud >/dev/null; then
    copy=(gcloud storage cp --quiet)
  elif command -v gsutil >/dev/null; then
    copy=(gsutil -q cp)
  else
    echo "bootstrap: neither gcloud nor gsutil is here, so the log is not uploaded"
    return 0
  fi
  if timeout 60 "${copy[@]}" "$LOG_FILE" "$target" >/dev/null 2>&1; then
    echo "bootstrap: the log is in $target"
  else
    echo "bootstrap: the log could not be uploaded to $target"
  fi
}

# ---- signals, and the way out ----

# Bash handles a signal only between foreground commands, so everything slow runs in the background.
run() {
  [ -z "$terminated" ] || return "$ENDED_BY_SIGNAL"
  "$@" 3>&- 4>&- &
  child=$!
  [ -z "$terminated" ] || kill -s TERM "$child" 2>/dev/null || true
  local code signals_seen=
  while :; do
    code=0
    wait "$child" || code=$?
    [ "$signals_seen" != "$terminated" ] || break # else a signal may have ended the wait, not the command
    signals_seen=$terminated
  done
  child=''
  return "$code"
}

# Background commands of a shell ignore SIGINT, so the child gets SIGTERM for either.
on_signal() {
  terminated="${terminated}x"
  [ -z "$child" ] || kill -s TERM "$child" 2>/dev/null || true
}

finish() {
  local code=$?
  trap - EXIT
  trap : TERM INT # not ignored: that the upload would inherit, and never end
  set +e
  if [ -n "$terminated" ] && { [ -z "$trainer_started" ] || [ "$code" -eq 0 ]; }; then
    say "ended by a signal (exit code $code): the run is not finished"
    code=$ENDED_BY_SIGNAL
  elif [ -z "$trainer_started" ]; then
    say "failed while $step (exit code $code); the trainer was not started"
    code=$BOOTSTRAP_FAILED
  else
    say "the trainer ended with exit code $code"
  fi
  [ -z "$sync_pid" ] || kill "$sync_pid" 2>/dev/null
  close_log
  upload_log
  exit "$code"
}

# Give tee the end of its input and a moment to write it; a process that outlived the trainer may hold it open.
close_log() {
  exec >&3 2>&4
  local tries=0
  while [ -n "$tee_pid" ] && kill -0 "$tee_pid" 2>/dev/null && [ "$tries" -lt 50 ]; do
    sleep 0.1
    tries=$((tries + 1))
  done
}

# ---- MaxText: from the image, or from source ----

use_image() {
  step='activating the image'\''s environment'
  if [ -f "$ROOT/opt/maxtext_venv/bin/activate" ]; then
    activate "$ROOT/opt/maxtext_venv/bin/activate"
  fi
  [ ! -d "$CHECKOUT" ] || cd "$CHECKOUT"
}

use_source() {
  local wanted="$repository $branch $commit"
  [ -n "$repository" ] && [ -n "$branch" ] || fail 'source mode needs --repository and --branch'
  if [ "$(cat "$CHECKOUT.ready" 2>/dev/null)" != "$wanted" ]; then
    [ ! -e "$CHECKOUT" ] || fail "$CHECKOUT is there, and not a finished checkout of $wanted: remove it first"
    give_git_the_token
    clone
    install
    printf '%s\n' "$wanted" >"$CHECKOUT.ready"
  fi
  cd "$CHECKOUT"
  activate maxtext_venv/bin/activate
  say "MaxText is at commit $(git rev-parse HEAD)"
}

# Git, and pip and uv through it, read the token from the environment when that host asks for it: it is in no
# argument and in no file. The empty helper comes first, so that none of the image's own stores it.
give_git_the_token() {
  export GIT_TERMINAL_PROMPT=0
  [ -n "${GITHUB_TOKEN:-}" ] || return 0
  export GITHUB_TOKEN
  export GIT_CONFIG_COUNT=2
  export GIT_CONFIG_KEY_0=credential.helper GIT_CONFIG_VALUE_0=
  export GIT_CONFIG_KEY_1="credential.https://${repository%%/*}.helper"
  # shellcheck disable=SC2016  # expanded by the helper's shell, never here
  export GIT_CONFIG_VALUE_1='!f() { test "$1" = get && printf "username=x-access-token\npassword=%s\n" "$GITHUB_TOKEN"; }; f'
}

clone() {
  step="cloning https://$repository, branch $branch"
  mkdir -p "$(dirname "$CHECKOUT")"
  run git clone --quiet --depth=1 --branch="$branch" "https://$repository" "$CHECKOUT"
  cd "$CHECKOUT"
  [ -n "$commit" ] || return 0
  step="fetching commit $commit"
  run git fetch --quiet --depth=1 origin "$commit"
  run git checkout --quiet --detach "$commit"
}

install() {
  step='installing uv'
  run pip install --quiet "uv==$UV_VERSION"
  step='making the environment'
  run uv venv --quiet --python 3.12 --seed maxtext_venv
  activate maxtext_venv/bin/activate
  step='installing MaxText'
  run uv pip install -e '.[tpu]' --resolution=lowest
  if [ -n "$deps_command" ]; then
    step="running $deps_command"
    run "$deps_command"
  fi
  step='installing optax from source' # Muon needs it
  run uv pip install --reinstall-package optax 'optax @ git+https://github.com/google-deepmind/optax'
}

activate() {
  set +u
  # shellcheck disable=SC1090  # known only in the pod
  source "$1"
  set -u
}

# ---- the checkout's own settings, and the trainer ----

# They set LIBTPU_INIT_ARGS among others; the manifest's flags win by name, whatever theirs say.
source_checkout_scripts() {
  local name manifest_flags="${LIBTPU_INIT_ARGS:-}"
  unset LIBTPU_INIT_ARGS
  for name in env_check xla_flags_common libtpu_diag_common; do
    [ -f "$CHECKOUT/scripts/comm/$name.sh" ] || continue
    step="sourcing scripts/comm/$name.sh"
    set +eu +o pipefail
    # shellcheck disable=SC1090  # known only in the pod
    source "$CHECKOUT/scripts/comm/$name.sh" || say "$name.sh returned $?"
    set -eu -o pipefail
  done
  merge_flags "${LIBTPU_INIT_ARGS:-}" "$manifest_flags"
}

# merge_flags THEIRS OURS: LIBTPU_INIT_ARGS becomes THEIRS without the flags OURS names, then OURS.
merge_flags() {
  local flag merged='' ours=' '
  set -f # a flag's value may hold a *
  for flag in $2; do ours="$ours${flag%%=*} "; done
  for flag in $1; do
    case "$ours" in
      *" ${flag%%=*} "*) ;;
      *) merged="$merged $flag" ;;
    esac
  done
  for flag in $2; do merged="$merged $flag"; done
  set +f
  export LIBTPU_INIT_ARGS="${merged# }"
  [ -z "$LIBTPU_INIT_ARGS" ] || say "LIBTPU_INIT_ARGS=$LIBTPU_INIT_ARGS"
}

train() {
  step='starting the trainer'
  local script
  # python exits with 2 for a script it cannot open
  for script in run_pretrain.py derivations.py start_trainer.py; do
    [ -r "$SCRIPTS/$script" ] || fail "$SCRIPTS/$script is missing"
  done
  command -v python3 >/dev/null || fail 'no python3'
  export PYTHONUNBUFFERED=1
  trainer_started=x
  run python3 "$SCRIPTS/run_pretrain.py" "${trainer_arguments[@]}"
}

main "$@"
