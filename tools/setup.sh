#!/usr/bin/env bash
# setup.sh SET...   Sets: cpp, clang, python, all.
# Sees to the Debian or Ubuntu packages of those sets: installs what is missing when root, else
# prints the line that does and stops.
set -euo pipefail

clang=${CLANG:-19}
packages=()
for set in "$@"; do
  case $set in
    cpp | all) packages+=(g++ cmake ninja-build ccache pkg-config libgtest-dev libbenchmark-dev
      libcli11-dev libfmt-dev nlohmann-json3-dev gcc abigail-tools) ;;&
    clang | all) packages+=("clang-$clang" "llvm-$clang" "libclang-rt-$clang-dev" "clang-format-$clang"
      "clang-tidy-$clang") ;;&
    python | all) packages+=(g++ cmake ninja-build python3 python3-dev python3-venv
      libcli11-dev libfmt-dev nlohmann-json3-dev) ;;&
    cpp | clang | python | all) ;;
    *) echo "setup.sh: no set $set" >&2; exit 2 ;;
  esac
done

if ! command -v dpkg-query >/dev/null; then
  echo "Not a Debian or Ubuntu system: install what corresponds to: ${packages[*]}" >&2
  exit 0
fi

missing=()
for package in "${packages[@]}"; do
  status=$(dpkg-query -W -f '${Status}' "$package" 2>/dev/null || true)
  [[ $status == "install ok installed" ]] || missing+=("$package")
done
if ((${#missing[@]} == 0)); then
  exit 0
fi
mapfile -t missing < <(printf '%s\n' "${missing[@]}" | sort -u)

if ((EUID != 0)); then
  echo "Packages are missing. Install them, then repeat the command:" >&2
  echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
  exit 1
fi
echo "Installing ${missing[*]}"
export DEBIAN_FRONTEND=noninteractive
apt-get -o DPkg::Lock::Timeout=300 -qq update
apt-get -o DPkg::Lock::Timeout=300 -qq -y --no-install-recommends install "${missing[@]}" >/dev/null
