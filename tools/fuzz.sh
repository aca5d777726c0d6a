#!/usr/bin/env bash
# fuzz.sh [SECONDS]   Runs every executable of the preset fuzz for that long (10).
# Seeds: fuzz/corpus/NAME, and for the target KIND_fuzz the vectors of that kind in conformance/ (of
# stream_decoder those of streams); what a run finds stays in build/fuzz-corpus/NAME, input that
# fails in build/fuzz-failures.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

seconds=${1:-10}
failures=build/fuzz-failures
mkdir -p "$failures"
export ASAN_OPTIONS=allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1

rm -rf build/conformance
python3 conformance/to_bytes.py build/conformance

count=0
for source in fuzz/*.cpp; do
  [[ -e $source ]] || continue
  name=$(basename "$source" .cpp)
  corpus=build/fuzz-corpus/$name
  mkdir -p "$corpus"
  seeds=()
  kind=${name%_fuzz}
  for folder in "fuzz/corpus/$name" build/conformance/*/"${kind%_decoder}"; do
    [[ -d $folder ]] && seeds+=("$folder")
  done
  echo "fuzz_$name: $seconds seconds"
  if ! "build/fuzz/fuzz/fuzz_$name" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=2048 \
    -artifact_prefix="$failures/$name-" -print_final_stats=1 -verbosity=0 \
    "$corpus" "${seeds[@]}" >"$failures/$name.log" 2>&1; then
    tail -n 60 "$failures/$name.log"
    echo "fuzz_$name failed; the input is in $failures/"
    exit 1
  fi
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$failures/$name.log")
  echo "fuzz_$name: ${runs:-?} runs in $seconds seconds"
  count=$((count + 1))
done
echo "$count fuzz targets ran"
