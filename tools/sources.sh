#!/bin/sh
# Every C++ source and header of the project, one a line.
cd "$(dirname "$0")/.." || exit 1
find core io formats cli python fuzz bench examples tests conformance -name '*.[ch]pp' | sort
