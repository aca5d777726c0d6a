#!/usr/bin/env bash
# demo.sh [MODEL]   Prepares and runs examples/demo.py on a safetensors file.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/python.sh
source tools/python.sh

tools/setup.sh python
check_python

echo "Building (a minute or two the first time)"
mkdir -p build/log
tools/wheel.sh --local >build/log/demo-wheel.log 2>&1 || { tail -n 60 build/log/demo-wheel.log; exit 1; }

# PyTorch takes part where it is there already, or is asked for: it is gigabytes large.
site=()
"$python" -c 'import torch' 2>/dev/null && site=(--system-site-packages)
requirements=$(grep '^numpy' python/requirements-test.txt)
[[ -n ${FRAMEWORKS:-} ]] && requirements+=$'\n'$(grep '^torch' python/requirements-frameworks.txt)
fill() {
  printf '%s\n' "$requirements" >build/venv-demo/requirements.txt
  [[ ${#site[@]} == 0 ]] || sed -i 's/include-system-site-packages = false/include-system-site-packages = true/' build/venv-demo/pyvenv.cfg
  pip_install build/venv-demo -r build/venv-demo/requirements.txt
}
kept_venv build/venv-demo "$requirements ${site[*]-}" fill
pip_install build/venv-demo --force-reinstall --no-deps build/dist-local/hurray_cpp-*.whl

model=${1:-}
[[ -n $model ]] || model=$("$python" tools/fetch_model.py build/cache)
exec build/venv-demo/bin/python examples/demo.py --model "$model" --hurray build/venv-demo/bin/hurray
