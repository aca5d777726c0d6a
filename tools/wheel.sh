#!/usr/bin/env bash
# wheel.sh           sdist, and from it, as pip does, the wheel; both in build/dist
# wheel.sh --local   the wheel from this folder, built incrementally, in build/dist-local
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/python.sh
source tools/python.sh

build_venv
pip=build/venv-build/bin/pip
if [[ ${1:-} == --local ]]; then
  rm -rf build/dist-local
  "$pip" wheel --quiet --disable-pip-version-check --no-deps --no-build-isolation \
    -w build/dist-local -C build-dir="$PWD/build/wheel-local" .
  exit
fi

rm -rf build/dist build/sdist
mkdir -p build/sdist
build/venv-build/bin/python -m build --sdist --no-isolation --outdir build/dist .
tar -xzf build/dist/hurray_cpp-*.tar.gz -C build/sdist --strip-components=1
# The optimized g++ build of everything that is installed: its warnings are errors here.
"$pip" wheel --disable-pip-version-check --no-deps -w build/dist -C cmake.define.HURRAY_WARNINGS=ON \
  -C cmake.define.CMAKE_COMPILE_WARNING_AS_ERROR=ON ./build/sdist
