#!/bin/sh
# abi.sh LIBRARY SYMBOLS ABI HEADERS [update]
# The exported symbols are those of the list SYMBOLS, and functions and types are those of the
# description ABI, which abidw made of an earlier build. `update` writes both anew.
set -eu
library=$1 symbols=$2 abi=$3 headers=$4
exported() {
  nm -D --defined-only "$library" | awk '$2 != "A" {sub(/@.*/, "", $3); print $3}' | LC_ALL=C sort
}
describe() {
  abidw --headers-dir "$headers" --drop-private-types --drop-undefined-syms \
    --exported-interfaces-only --no-comp-dir-path --no-corpus-path --no-show-locs --no-elf-needed \
    "$library"
}
if [ "${5:-}" = update ]; then
  exported >"$symbols"
  describe >"$abi"
  exit
fi
exported | diff "$symbols" - || {
  echo "The exported symbols are not those of $symbols. A removed one breaks programs; an added" \
    "one is taken over by the build target update_abi."
  exit 1
}
now=$(mktemp)
trap 'rm -f "$now"' EXIT
describe >"$now"
abidiff "$abi" "$now" || {
  echo "The ABI is not that of $abi. What breaks programs needs a new SOVERSION; what is added is" \
    "taken over by the build target update_abi."
  exit 1
}
