#!/usr/bin/env bash
# Searches for inputs that break the compiler: builds the fuzz targets (clang, libFuzzer, ASan +
# UBSan) and runs each for a while, one after the other.
#
#   tests/fuzz/run_fuzz.sh [--seconds N] [TARGET...]
#
#   --seconds N   for each target (default 600: the ten minutes that a release asks for)
#   TARGET        default: graphdef_fuzz (the GraphDef reader), passes_fuzz (the graph passes),
#                 codec_fuzz (encoder and disassembler round trip), torch_archive_fuzz and
#                 torch_code_fuzz (TorchScript), tflite_fuzz, onnx_fuzz, caffe_fuzz, darknet_fuzz,
#                 paddle_fuzz, mxnet_fuzz, layer_template_fuzz (the quantizer's template),
#                 npy_fuzz (NumPy files),
#                 compass_ir_fuzz and compass_import_fuzz (Compass's IR, and as a model);
#                 "all": every one that there is
#
# Starts from tests/fuzz/corpus/TARGET and changes nothing there: what it finds, inputs of new paths
# and crashes alike, goes to build/fuzz/found/TARGET. Exit 0: no finding; 1: an input broke
# something (its path is printed; put it into the corpus together with the fix); 2: wrong usage or
# no build.
set -uo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
cd "$root" || exit 2
seconds=600
targets=()
while [[ $# -gt 0 ]]; do
  case "$1" in
    --seconds)
      if ! [[ "${2:-}" =~ ^[1-9][0-9]*$ ]]; then
        echo "run_fuzz.sh: --seconds takes a number" >&2
        exit 2
      fi
      seconds=$2
      shift
      ;;
    all)
      for folder in tests/fuzz/corpus/*/; do targets+=("$(basename "$folder")"); done
      ;;
    -h|--help) sed -n '2,20s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *)
      [[ -d "tests/fuzz/corpus/$1" ]] || { echo "run_fuzz.sh: no corpus for '$1'" >&2; exit 2; }
      targets+=("$1")
      ;;
  esac
  shift
done
[[ ${#targets[@]} -gt 0 ]] || \
  targets=(graphdef_fuzz passes_fuzz codec_fuzz torch_archive_fuzz torch_code_fuzz tflite_fuzz
           onnx_fuzz caffe_fuzz darknet_fuzz paddle_fuzz mxnet_fuzz layer_template_fuzz npy_fuzz
           compass_ir_fuzz compass_import_fuzz)

export CCACHE_BASEDIR="$root" CCACHE_NOHASHDIR=1
cmake --preset fuzz >/dev/null && cmake --build build/fuzz -j "$(nproc)" --target "${targets[@]}" \
  || exit 2
findings=0
for target in "${targets[@]}"; do
  found="build/fuzz/found/$target"
  mkdir -p "$found/corpus"
  # -rss_limit_mb and -timeout make an input that eats memory or time a finding, too.
  if "build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=20 -rss_limit_mb=2048 \
      -artifact_prefix="$found/" -print_final_stats=1 "$found/corpus" "tests/fuzz/corpus/$target" \
      >"$found/log" 2>&1; then
    echo "$target: no finding in $seconds s, $(sed -n 's/^stat::number_of_executed_units: *//p' \
      "$found/log") inputs"
  else
    echo "$target: FINDING; see $found"
    tail -n 40 "$found/log"
    findings=$((findings + 1))
  fi
done
[[ $findings -eq 0 ]]
