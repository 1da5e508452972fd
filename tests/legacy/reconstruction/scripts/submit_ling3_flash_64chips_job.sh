#!/usr/bin/env bash
# Reconstruction (see README.md).
# shellcheck disable=SC1091,SC2016
set -euo pipefail

export BRANCH=${BRANCH:-$(git rev-parse --abbrev-ref HEAD)}
JOB_NAME=ling3-fl-64-$(echo "$BRANCH" | tr '/_[:upper:]' '--[:lower:]')-$(date +%m%d%H%M%S)
export JOB_NAME
export K8S_NAMESPACE=${K8S_NAMESPACE:-default}
export K8S_MAX_RESTARTS=${K8S_MAX_RESTARTS:-3}
export IMAGE=python:3.12
export TPU_TOPOLOGY=4x4x4
export COMPLETIONS=16
export GCS_BUCKET=${GCS_BUCKET:-data_ant}

export STEPS=${STEPS:-20}
export EVAL_INTERVAL=${EVAL_INTERVAL:--1}
export ENABLE_CHECKPOINTING=false
export ASYNC_CHECKPOINTING=false
export ENABLE_GOODPUT=false
export ENABLE_CLOUD_MONITORING=false
export USE_VERTEX_TENSORBOARD=false
export ICI_FSDP_PARALLELISM=128
export ICI_DATA_PARALLELISM=1
export ICI_CONTEXT_PARALLELISM=1
export GRADIENT_ACCUMULATION_STEPS=1
export PER_DEVICE_BATCH_SIZE=${PER_DEVICE_BATCH_SIZE:-2}
export MAX_SEQ_LEN=8192
export DATASET_TYPE=lazy
export LAZY_TRAIN_FILES="1.0 /models_prod/datasets/align_smoke"
export LOAD_FULL_STATE_PATH=${LOAD_FULL_STATE_PATH:-}
export COMPILED_TRAINSTEP_FILE=${COMPILED_TRAINSTEP_FILE:-}

# what the template may use, kept by hand
SUBST_VARS='${JOB_NAME} ${K8S_NAMESPACE} ${K8S_MAX_RESTARTS} ${IMAGE} ${COMPLETIONS} ${TPU_TOPOLOGY}
${GCS_BUCKET} ${BRANCH} ${STEPS} ${EVAL_INTERVAL} ${ENABLE_CHECKPOINTING} ${ASYNC_CHECKPOINTING}
${ENABLE_GOODPUT} ${ENABLE_CLOUD_MONITORING} ${USE_VERTEX_TENSORBOARD} ${ICI_FSDP_PARALLELISM}
${ICI_DATA_PARALLELISM} ${ICI_CONTEXT_PARALLELISM} ${GRADIENT_ACCUMULATION_STEPS} ${PER_DEVICE_BATCH_SIZE}
${MAX_SEQ_LEN} ${DATASET_TYPE} ${LAZY_TRAIN_FILES} ${LOAD_FULL_STATE_PATH} ${COMPILED_TRAINSTEP_FILE}'

envsubst "$SUBST_VARS" <.github/ci/tpu-1x64chips-ling3-flash-job.yaml | kubectl apply -f -

echo "monitor: kubectl get jobset $JOB_NAME -n $K8S_NAMESPACE"
echo "cleanup: kubectl delete jobset $JOB_NAME -n $K8S_NAMESPACE"
