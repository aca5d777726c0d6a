#!/usr/bin/env bash
# The Python package, built incrementally in build/develop and installed with the test requirements
# into build/venv-develop.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=tools/python.sh
source tools/python.sh

fill() {
  # shellcheck disable=SC2046 # one requirement a word
  pip_install build/venv-develop -r python/requirements-test.txt $(build_requires)
}
kept_venv build/venv-develop "$(build_requires; cat python/requirements-test.txt)" fill
pip_install build/venv-develop --no-build-isolation --no-deps --force-reinstall \
  -C build-dir="$PWD/build/develop" .
echo "Installed into build/venv-develop. Test with:"
echo "  build/venv-develop/bin/python -m pytest python/tests"
