#!/usr/bin/env bash
# coverage.sh BUILD_FOLDER [LEAST]   Which lines of core and io the tests of a build with
# HURRAY_COVERAGE ran, file by file; fails below LEAST percent (95). The tests were run with
# LLVM_PROFILE_FILE=BUILD_FOLDER/coverage/%4m.profraw.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
clang=${CLANG:-19}
build=$1
least=${2:-95}

"llvm-profdata-$clang" merge -sparse -o "$build/coverage/all.profdata" "$build"/coverage/*.profraw
objects=()
for program in "$build"/{core,io}/hurray_*_tests "$build"/cli/hurray; do
  [[ -x $program ]] && objects+=(-object "$program")
done
"llvm-cov-$clang" report -instr-profile "$build/coverage/all.profdata" "${objects[@]:1}" \
  -show-region-summary=false -show-branch-summary=false \
  "$root"/core/{include,src} "$root"/io/{include,src} >"$build/coverage/report.txt"
sed "s|$root/||" "$build/coverage/report.txt"
awk -v least="$least" '/^TOTAL/ { lines = $NF + 0 }
  END { printf "%.2f%% of the lines of core and io run in tests (at least %s%%)\n", lines, least
        exit lines < least }' "$build/coverage/report.txt"
