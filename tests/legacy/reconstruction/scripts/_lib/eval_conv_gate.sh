# shellcheck shell=bash disable=SC2016
# Reconstruction (see README.md). Sourced: the conversion to Hugging Face form that runs beside a production job.

hf_validate_env() {
  if [[ "${ENABLE_HF_CONVERSION}" == true && -z "${HF_WATCHER_IMAGE}" ]]; then
    echo "HF_WATCHER_IMAGE is needed with ENABLE_HF_CONVERSION=true" >&2
    exit 1
  fi
}

hf_apply_watcher() {
  [[ "${ENABLE_HF_CONVERSION}" == true ]] || return 0
  envsubst <.github/ci/hf-watcher.yaml '${JOB_NAME} ${K8S_NAMESPACE} ${HF_WATCHER_IMAGE} ${HF_OUTPUT_DIRECTORY}' |
    kubectl apply -f -
}
