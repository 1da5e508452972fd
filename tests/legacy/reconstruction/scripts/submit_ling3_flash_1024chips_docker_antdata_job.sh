#!/usr/bin/env bash
# Reconstruction (see README.md).
# shellcheck disable=SC1091,SC2016
set -euo pipefail

source scripts/_lib/eval_conv_gate.sh

IMAGE_TAG=${IMAGE_TAG:?production runs a released image: set IMAGE_TAG}
export IMAGE=registry.example.com/ling3/maxtext-tpu-pretrain:$IMAGE_TAG
JOB_NAME=ling3-fl-1024-$(date +%m%d%H%M%S)
export JOB_NAME
export K8S_NAMESPACE=ling3-prod
export K8S_MAX_RESTARTS=10
export TPU_TOPOLOGY=8x8x16
export COMPLETIONS=256
export GCS_BUCKET=ant-data-prod

export STEPS=${STEPS:-50000}
export EVAL_INTERVAL=${EVAL_INTERVAL:-1000}
export LEARNING_RATE=${LEARNING_RATE:-3.0e-4}
export ENABLE_CHECKPOINTING=true
export ASYNC_CHECKPOINTING=true
export ENABLE_GOODPUT=true
export ENABLE_CLOUD_MONITORING=true
export USE_VERTEX_TENSORBOARD=true
export ICI_FSDP_PARALLELISM=128
export ICI_DATA_PARALLELISM=16
export ICI_CONTEXT_PARALLELISM=1
export GRADIENT_ACCUMULATION_STEPS=2
export PER_DEVICE_BATCH_SIZE=2
export MAX_SEQ_LEN=8192
export DATASET_TYPE=lazy
export LAZY_TRAIN_FILES="0.66 /models_prod/datasets/web 0.20 /models_prod/datasets/fin_news 0.14 /models_prod/datasets/fin_reports"
export EOD_MASK_LOSS=true
export LOAD_FULL_STATE_PATH=${LOAD_FULL_STATE_PATH:-}
export COMPILED_TRAINSTEP_FILE=${COMPILED_TRAINSTEP_FILE:-}

export ENABLE_HF_CONVERSION=${ENABLE_HF_CONVERSION:-true}
export HF_WATCHER_IMAGE=registry.example.com/ling3/hf-watcher:2026-06-09
export HF_OUTPUT_DIRECTORY=gs://ant-data-prod/ling3-flash-hf

# what the template may use, kept by hand
SUBST_VARS='${JOB_NAME} ${K8S_NAMESPACE} ${K8S_MAX_RESTARTS} ${IMAGE} ${COMPLETIONS} ${TPU_TOPOLOGY}
${GCS_BUCKET} ${STEPS} ${EVAL_INTERVAL} ${ENABLE_CHECKPOINTING} ${ASYNC_CHECKPOINTING} ${ENABLE_GOODPUT}
${ENABLE_CLOUD_MONITORING} ${USE_VERTEX_TENSORBOARD} ${ICI_FSDP_PARALLELISM} ${ICI_DATA_PARALLELISM}
${ICI_CONTEXT_PARALLELISM} ${GRADIENT_ACCUMULATION_STEPS} ${PER_DEVICE_BATCH_SIZE} ${MAX_SEQ_LEN}
${DATASET_TYPE} ${LAZY_TRAIN_FILES} ${LOAD_FULL_STATE_PATH} ${COMPILED_TRAINSTEP_FILE} ${LEARNING_RATE}
${EOD_MASK_LOSS}'

hf_validate_env
hf_apply_watcher
envsubst "$SUBST_VARS" <.github/ci/tpu-1x1024chips-ling3-flash-docker-job.yaml | kubectl apply -f -

echo "monitor: kubectl get jobset $JOB_NAME -n $K8S_NAMESPACE"
echo "cleanup: kubectl delete jobset $JOB_NAME -n $K8S_NAMESPACE"
