#!/usr/bin/env bash
# Benchmarks: bench/*.cpp with Google Benchmark, then every bench/bench_*.py (ratios to other libraries, made of pairs
# in one run), bench/report.py (files and streams beside other libraries, on the same tensors: a report in
# build/benchmarks/report; QUICK=1 takes small tensors), then bench/test_*.py with pytest-benchmark, whose times are
# compared with those of the last run here (build/benchmarks): what lost more than 10 % is named. FRAMEWORKS=1 adds
# PyTorch and JAX. Arguments are names of parts: cpp, scripts, report, calls.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/python.sh
source tools/python.sh

parts=" ${*:-cpp scripts report calls} "
wanted() { [[ $parts == *" $1 "* ]]; }

tools/setup.sh cpp python
check_python
if wanted cpp; then
  cmake --preset bench >/dev/null
  cmake --build --preset bench
  [[ ! -x build/bench/bench/hurray_bench ]] || build/bench/bench/hurray_bench
fi
wanted scripts || wanted report || wanted calls || exit 0

tools/wheel.sh --local
requirements=(-r python/requirements-test.txt -r python/requirements-bench.txt)
[[ -z ${CI:-}${FRAMEWORKS:-} ]] || requirements+=(-r python/requirements-frameworks.txt)
venv=$PWD/build/venv-bench
kept_venv "$venv" "${requirements[*]} $(cat python/requirements-*.txt)" pip_install "$venv" "${requirements[@]}"
pip_install "$venv" --force-reinstall --no-deps build/dist-local/hurray_cpp-*.whl
export PATH=$venv/bin:$PATH
if wanted scripts; then
  for script in bench/bench_*.py; do
    [[ -e $script ]] || continue
    echo "== $script"
    python "$script"
  done
fi
if wanted report; then
  echo "== bench/report.py"
  python bench/report.py ${QUICK:+--quick}
fi
if wanted calls; then
  echo "== bench/test_*.py"
  python -m pytest -c bench/pytest.ini --rootdir bench bench --benchmark-storage="file://$PWD/build/benchmarks" \
    --benchmark-autosave --benchmark-columns=min,mean,stddev,median,ops --benchmark-sort=fullname \
    --benchmark-disable-gc --benchmark-compare
fi
