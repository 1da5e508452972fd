#!/usr/bin/env bash
# RFC-0030's launch.sh up to kubectl apply, without its checks: yq merges the layers, splits them, envsubst fills the template.
# bench/rfc_pipeline.sh YQ CONTENT TEMPLATE OUT < "model chips context environment name" a line
# shellcheck disable=SC2016,SC2034 # yq and envsubst take the dollar signs, and the variables, that bash leaves alone
set -euo pipefail
yq=$1 content=$2 template=$3 out=$4
scratch=$out/.scratch
mkdir -p "$scratch"

render() { # model chips context environment name
  local presets=$content/presets/$1
  local layers=("$presets/model.yml" "$presets/topology/$2chips/$3.yml" "$presets/environment/$4.yml"
    "$content/experiments/$1/$5.yml")
  local dataset folder=$out/$4/$1/$5
  mkdir -p "$folder"

  # The dataset is known once the other layers are merged; its flat keys go under maxtext, before the environment.
  dataset=$("$yq" ea '. as $item ireduce ({}; . * $item) | .deploy.DATASETS_YAML // ""' "${layers[@]}")
  if [ -n "$dataset" ]; then
    "$yq" ea 'select(fi == 0) * select(fi == 1) * {"maxtext": select(fi == 2)} * select(fi == 3) * select(fi == 4)' \
      "${layers[0]}" "${layers[1]}" "$content/datasets/$dataset.yml" "${layers[2]}" "${layers[3]}" > "$scratch/merged.yml"
  else
    "$yq" ea '. as $item ireduce ({}; . * $item)' "${layers[@]}" > "$scratch/merged.yml"
  fi

  { echo "base_config: base.yml"; "$yq" ".maxtext * {\"model_name\": \"$1\"}" "$scratch/merged.yml"; } > "$folder/run.yml"
  (
    set -a
    eval "$("$yq" -o shell '.deploy' "$scratch/merged.yml")"
    JOB_NAME=$5 IMAGE=python:3.12
    RUN_CONFIG_CONFIGMAP_NAME=run-$(sha256sum "$folder/run.yml" | cut -c1-8)
    envsubst '${JOB_NAME} ${K8S_NAMESPACE} ${K8S_MAX_RESTARTS} ${IMAGE} ${COMPLETIONS} ${TPU_TOPOLOGY}
      ${RUN_CONFIG_CONFIGMAP_NAME} ${GCS_BUCKET}' < "$template" > "$folder/jobset.yml"
  )
}

while read -r model chips context environment name; do
  render "$model" "$chips" "$context" "$environment" "$name"
done
