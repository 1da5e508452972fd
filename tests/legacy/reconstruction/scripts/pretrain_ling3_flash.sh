#!/usr/bin/env bash
# Reconstruction (see README.md): defaults, the rules D1 to D5, and the trainer with about 60 arguments.
set -euo pipefail

MODEL_NAME=${MODEL_NAME:-ling3-flash}
STEPS=${STEPS:-20}
EVAL_INTERVAL=${EVAL_INTERVAL:--1}
EVAL_STEPS=${EVAL_STEPS:--1}
LOG_PERIOD=${LOG_PERIOD:-100}
PER_DEVICE_BATCH_SIZE=${PER_DEVICE_BATCH_SIZE:-2}
MAX_SEQ_LEN=${MAX_SEQ_LEN:-8192}
GRADIENT_ACCUMULATION_STEPS=${GRADIENT_ACCUMULATION_STEPS:-1}

# parallelism
ICI_FSDP_PARALLELISM=${ICI_FSDP_PARALLELISM:-128}
ICI_DATA_PARALLELISM=${ICI_DATA_PARALLELISM:-1}
ICI_CONTEXT_PARALLELISM=${ICI_CONTEXT_PARALLELISM:-1}
ICI_EXPERT_PARALLELISM=${ICI_EXPERT_PARALLELISM:-1}
ICI_TENSOR_PARALLELISM=${ICI_TENSOR_PARALLELISM:-1}
ICI_PIPELINE_PARALLELISM=${ICI_PIPELINE_PARALLELISM:-1}
ICI_FSDP_TRANSPOSE_PARALLELISM=${ICI_FSDP_TRANSPOSE_PARALLELISM:-1}
ICI_SEQUENCE_PARALLELISM=${ICI_SEQUENCE_PARALLELISM:-1}
SHARD_EXP_ON_FSDP=${SHARD_EXP_ON_FSDP:-false}

# optimizer
OPT_TYPE=${OPT_TYPE:-muon}
MUON_BETA=${MUON_BETA:-0.95}
MUON_WEIGHT_DECAY=${MUON_WEIGHT_DECAY:-0.0}
LEARNING_RATE=${LEARNING_RATE:-3e-5}
LEARNING_RATE_FINAL_FRACTION=${LEARNING_RATE_FINAL_FRACTION:-0.1}
ADAM_B1=${ADAM_B1:-0.9}
ADAM_B2=${ADAM_B2:-0.95}
GRADIENT_CLIPPING_THRESHOLD=${GRADIENT_CLIPPING_THRESHOLD:-1.0}
WARMUP_ITERS=${WARMUP_ITERS:-2000}
LEARNING_RATE_SCHEDULE_STEPS=${LEARNING_RATE_SCHEDULE_STEPS:--1}

# memory and precision
REMAT_POLICY=${REMAT_POLICY:-custom}
SCAN_LAYERS=${SCAN_LAYERS:-true}
DTYPE=${DTYPE:-bfloat16}
WEIGHT_DTYPE=${WEIGHT_DTYPE:-float32}

# data
DATASET_TYPE=${DATASET_TYPE:-lazy}
LAZY_TRAIN_FILES=${LAZY_TRAIN_FILES:?which data?}
EOD_MASK_LOSS=${EOD_MASK_LOSS:-false}
PACKING=${PACKING:-true}
DATA_SHUFFLE_SEED=${DATA_SHUFFLE_SEED:-0}
INIT_WEIGHTS_SEED=${INIT_WEIGHTS_SEED:-0}

# checkpoints and monitoring
ENABLE_CHECKPOINTING=${ENABLE_CHECKPOINTING:-false}
ASYNC_CHECKPOINTING=${ASYNC_CHECKPOINTING:-false}
CHECKPOINT_PERIOD=${CHECKPOINT_PERIOD:-10000}
LOAD_PARAMETERS_PATH=${LOAD_PARAMETERS_PATH:-/models_prod/checkpoints/ling3-flash/scanned/items}
LOAD_PARAMETERS_PATH_UNSCANNED=${LOAD_PARAMETERS_PATH_UNSCANNED:-/models_prod/checkpoints/ling3-flash/unscanned/items}
LOAD_FULL_STATE_PATH=${LOAD_FULL_STATE_PATH:-}
COMPILED_TRAINSTEP_FILE=${COMPILED_TRAINSTEP_FILE:-}
ENABLE_GOODPUT=${ENABLE_GOODPUT:-false}
MONITOR_GOODPUT=${MONITOR_GOODPUT:-false}
ENABLE_CLOUD_MONITORING=${ENABLE_CLOUD_MONITORING:-false}
USE_VERTEX_TENSORBOARD=${USE_VERTEX_TENSORBOARD:-false}
ENABLE_TENSORBOARD=${ENABLE_TENSORBOARD:-true}
PROFILER=${PROFILER:-}
PROFILER_STEPS=${PROFILER_STEPS:-5}
SKIP_FIRST_N_STEPS_FOR_PROFILER=${SKIP_FIRST_N_STEPS_FOR_PROFILER:-1}

DERIVED=()

# D1: a small batch has the memory to keep these activations
if [[ "$REMAT_POLICY" == custom ]] && awk "BEGIN { exit !($PER_DEVICE_BATCH_SIZE <= 2) }"; then
  DERIVED+=(mlpwi_0=device mlpwi_1=device moe_topk_indices=device)
fi

# D2: the warm-up is a fraction of the schedule
SCHEDULE=$STEPS
if [[ "$LEARNING_RATE_SCHEDULE_STEPS" -gt 0 ]]; then
  SCHEDULE=$LEARNING_RATE_SCHEDULE_STEPS
  DERIVED+=("learning_rate_schedule_steps=$SCHEDULE")
fi
if [[ "$SCHEDULE" -le "$WARMUP_ITERS" ]]; then
  SCHEDULE=$((2 * WARMUP_ITERS))
  DERIVED+=("learning_rate_schedule_steps=$SCHEDULE")
fi
WARMUP_STEPS_FRACTION=$(python3 -c "print($WARMUP_ITERS / $SCHEDULE)")

# D3: the checkpoint fits scanned or unscanned layers
if [[ "$SCAN_LAYERS" != true ]]; then
  LOAD_PARAMETERS_PATH=$LOAD_PARAMETERS_PATH_UNSCANNED
fi

# D4: a full state holds the parameters too
if [[ -n "$LOAD_FULL_STATE_PATH" ]]; then
  LOAD_PARAMETERS_PATH=
  ENABLE_CHECKPOINTING=true
  DERIVED+=("load_full_state_path=$LOAD_FULL_STATE_PATH")
fi
if [[ -n "$LOAD_PARAMETERS_PATH" ]]; then
  DERIVED+=("load_parameters_path=$LOAD_PARAMETERS_PATH")
fi

# D5: a train step compiled ahead of time has no evaluation step
if [[ -n "$COMPILED_TRAINSTEP_FILE" ]]; then
  EVAL_INTERVAL=0
  DERIVED+=("compiled_trainstep_file=$COMPILED_TRAINSTEP_FILE")
fi

python3 -m maxtext.trainers.pre_train.train src/maxtext/configs/base.yml \
  "model_name=$MODEL_NAME" \
  "run_name=$RUN_NAME" \
  "base_output_directory=gs://$GCS_BUCKET/ling3-flash" \
  "steps=$STEPS" \
  "eval_interval=$EVAL_INTERVAL" \
  "eval_steps=$EVAL_STEPS" \
  "log_period=$LOG_PERIOD" \
  "per_device_batch_size=$PER_DEVICE_BATCH_SIZE" \
  "max_target_length=$MAX_SEQ_LEN" \
  "gradient_accumulation_steps=$GRADIENT_ACCUMULATION_STEPS" \
  "ici_fsdp_parallelism=$ICI_FSDP_PARALLELISM" \
  "ici_data_parallelism=$ICI_DATA_PARALLELISM" \
  "ici_context_parallelism=$ICI_CONTEXT_PARALLELISM" \
  "ici_expert_parallelism=$ICI_EXPERT_PARALLELISM" \
  "ici_tensor_parallelism=$ICI_TENSOR_PARALLELISM" \
  "ici_pipeline_parallelism=$ICI_PIPELINE_PARALLELISM" \
  "ici_fsdp_transpose_parallelism=$ICI_FSDP_TRANSPOSE_PARALLELISM" \
  "ici_sequence_parallelism=$ICI_SEQUENCE_PARALLELISM" \
  "shard_exp_on_fsdp=$SHARD_EXP_ON_FSDP" \
  "opt_type=$OPT_TYPE" \
  "muon_beta=$MUON_BETA" \
  "muon_weight_decay=$MUON_WEIGHT_DECAY" \
  "learning_rate=$LEARNING_RATE" \
  "learning_rate_final_fraction=$LEARNING_RATE_FINAL_FRACTION" \
  "warmup_steps_fraction=$WARMUP_STEPS_FRACTION" \
  "adam_b1=$ADAM_B1" \
  "adam_b2=$ADAM_B2" \
  "gradient_clipping_threshold=$GRADIENT_CLIPPING_THRESHOLD" \
  "remat_policy=$REMAT_POLICY" \
  "scan_layers=$SCAN_LAYERS" \
  "dtype=$DTYPE" \
  "weight_dtype=$WEIGHT_DTYPE" \
  "dataset_type=$DATASET_TYPE" \
  "lazy_train_files=$LAZY_TRAIN_FILES" \
  "eod_mask_loss=$EOD_MASK_LOSS" \
  "packing=$PACKING" \
  "data_shuffle_seed=$DATA_SHUFFLE_SEED" \
  "init_weights_seed=$INIT_WEIGHTS_SEED" \
  "enable_checkpointing=$ENABLE_CHECKPOINTING" \
  "async_checkpointing=$ASYNC_CHECKPOINTING" \
  "checkpoint_period=$CHECKPOINT_PERIOD" \
  "enable_goodput_recording=$ENABLE_GOODPUT" \
  "monitor_goodput=$MONITOR_GOODPUT" \
  "enable_cloud_monitoring=$ENABLE_CLOUD_MONITORING" \
  "use_vertex_tensorboard=$USE_VERTEX_TENSORBOARD" \
  "enable_tensorboard=$ENABLE_TENSORBOARD" \
  "profiler='$PROFILER'" \
  "profiler_steps=$PROFILER_STEPS" \
  "skip_first_n_steps_for_profiler=$SKIP_FIRST_N_STEPS_FOR_PROFILER" \
  "${DERIVED[@]}" "$@"
