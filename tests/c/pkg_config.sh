#!/bin/sh
# pkg_config.sh PKG_CONFIG PREFIX OUTPUT_FOLDER EXAMPLES PYTHON COMPILER [FLAG...]
# Compiles the examples with the C compiler and what the installed .pc file says, and nothing else,
# and runs them. PYTHON runs the one that needs no compiler; "" leaves it out.
set -eu
pkg_config=$1 prefix=$2 output=$3 examples=$4 python=$5
shift 5

mkdir -p "$output"
pc=$(find "$prefix" -name hurray-c.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
LD_LIBRARY_PATH=$("$pkg_config" --variable=libdir hurray-c)
export LD_LIBRARY_PATH
for name in write_file map_file stream_pipe own_memory; do
  # shellcheck disable=SC2046 # the flags are words
  "$@" $("$pkg_config" --cflags hurray-c) "$examples/$name.c" -o "$output/$name" \
    $("$pkg_config" --libs hurray-c)
done

expect() {  # expect NAME TEXT: what was printed
  printf '%s\n' "$2" | diff - "$output/$1.txt"
}
rm -f "$output/t.hrry"
"$output/write_file" "$output/t.hrry"
"$output/map_file" "$output/t.hrry" >"$output/map.txt"
expect map "weight [3, 4]: 0 0.5 1 1.5 2 2.5 3 3.5 4 4.5 5 5.5
bias [5]: 8 8.5 9 9.5 10
framework: plain C"
"$output/stream_pipe" write "$output/t.hrry" | "$output/stream_pipe" read >"$output/stream.txt"
expect stream "2 tensors, 68 bytes"
"$output/own_memory" | sed 's/address 0x[0-9A-F]*/ADDRESS/' >"$output/own.txt"
expect own "refused: declared 4096, but ADDRESS measures 32; declare what hurray_measure_alignment says, or copy with hurray_buffer_copy
sum 172032, given back: yes"
if [ -n "$python" ]; then
  "$python" "$examples/read_file.py" "$LD_LIBRARY_PATH/libhurray_c.so" "$output/t.hrry" \
    >"$output/ctypes.txt"
  expect ctypes "weight [3, 4] [0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]
bias [5] [8.0, 8.5, 9.0, 9.5, 10.0]"
fi
