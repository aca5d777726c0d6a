#!/usr/bin/env bash
# Benchmarks: bench/*.cpp with Google Benchmark, then every bench/bench_*.py against the wheel.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/python.sh
source tools/python.sh

tools/setup.sh cpp python
check_python
cmake --preset bench >/dev/null
cmake --build --preset bench
[[ ! -x build/bench/bench/hurray_bench ]] || build/bench/bench/hurray_bench

tools/wheel.sh --local
requirements=python/requirements-test.txt
kept_venv build/venv-bench "$(<$requirements)" pip_install build/venv-bench -r $requirements
pip_install build/venv-bench --force-reinstall --no-deps build/dist-local/hurray_cpp-*.whl
for script in bench/bench_*.py; do
  [[ -e $script ]] || continue
  echo "== $script"
  PATH=$PWD/build/venv-bench/bin:$PATH build/venv-bench/bin/python "$script"
done
