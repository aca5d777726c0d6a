#!/bin/sh
# pkg_config.sh PKG_CONFIG PREFIX OUTPUT_FOLDER COMPILER [FLAG...]
# Compiles and runs decode_scalar.cpp with what the installed .pc files say, and nothing else.
set -eu
pkg_config=$1 prefix=$2 output=$3
shift 3

pc=$(find "$prefix" -name hurray-io.pc)
PKG_CONFIG_PATH=$(dirname "$pc")
export PKG_CONFIG_PATH
libdir=$("$pkg_config" --variable=libdir hurray-io)
# shellcheck disable=SC2046 # the flags are words
"$@" $("$pkg_config" --cflags hurray-io) "$(dirname "$0")/decode_scalar.cpp" \
  -o "$output/decode_scalar_pc" $("$pkg_config" --libs hurray-io)
LD_LIBRARY_PATH=$libdir "$output/decode_scalar_pc"
