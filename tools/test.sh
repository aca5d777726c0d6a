#!/usr/bin/env bash
# test.sh [STAGE...]   Builds and tests; prints the minutes of each stage and one closing line.
#
#   setup       packages
#   asan        C++ with AddressSanitizer, UBSan and leak detection
#   clang       C++ with clang, warnings are errors; public headers compile alone; coverage of core
#               and io
#   wheel       sdist -> wheel (g++, optimized, warnings are errors) -> a fresh virtual environment
#               outside this folder -> pytest, with type checkers and auditwheel at hand; then what
#               touches NumPy once more with the oldest NumPy
#   python-asan pytest under AddressSanitizer
#   fuzz        SECONDS_PER_TARGET (10) of each fuzz target
#   shared      shared libraries (not in `all`)
#   free-threaded  pytest in a Python without the lock (not in `all`); FREE_THREADED_PYTHON is one
#
# Environment: CI or FRAMEWORKS install PyTorch and JAX for the stage wheel, CLANG is clang's version
# (19), HURRAY_TEST_LONG runs the tests marked long, VERBOSE shows what the stages print.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.." || exit 1
# shellcheck source=tools/python.sh
source tools/python.sh

clang=${CLANG:-19}
results=build/results
started=$SECONDS

# cmake_stage PRESET [CONFIGURE_OPTION...] [-- CTEST_OPTION...]
cmake_stage() {
  local preset=$1 configure=()
  shift
  while (($#)) && [[ $1 != -- ]]; do
    configure+=("$1")
    shift
  done
  shift || true
  cmake --preset "$preset" "${configure[@]}" &&
    cmake --build --preset "$preset" &&
    ctest --preset "$preset" --output-junit "$PWD/$results/ctest-$preset.xml" "$@"
}

# Options that add the extension to a plain CMake build.
with_extension() {
  echo -DHURRAY_BUILD_PYTHON=ON "-DPython_EXECUTABLE=$PWD/build/venv-build/bin/python"
}

stage_setup() { tools/setup.sh all && check_python; }

stage_asan() { build_venv && cmake_stage asan $(with_extension); }

stage_clang() {
  rm -rf build/clang/coverage
  LLVM_PROFILE_FILE="$PWD/build/clang/coverage/%4m.profraw" \
    cmake_stage clang "-DCMAKE_CXX_COMPILER=clang++-$clang" -DHURRAY_BUILD_BENCH=ON \
    -- --exclude-regex '^package\.' &&
    tools/coverage.sh build/clang &&
    cmake --build --preset clang --target all_verify_interface_header_sets
}

stage_shared() { cmake_stage shared; }

# run_pytest VENV RESULT [NAME=VALUE...] [-- ARGUMENT...]: the tests (those of ARGUMENT...) against what
# VENV holds, from an empty folder.
run_pytest() {
  local venv=$1 result=$2 root=$PWD work status=0 variables=() options=()
  shift 2
  while (($#)) && [[ $1 != -- ]]; do
    variables+=("$1")
    shift
  done
  shift || true
  (($#)) || set -- "$root/python/tests"
  work=$(mktemp -d)
  [[ -n ${HURRAY_TEST_LONG:-} ]] || options+=(-m "not long")
  (cd "$work" && env "${variables[@]}" "$venv/bin/python" -m pytest -c "$root/pyproject.toml" \
    -o "cache_dir=$root/build/pytest-cache" --junitxml "$root/$results/$result.xml" -q \
    "${options[@]}" "$@") || status=$?
  rm -rf "$work"
  return $status
}

# links_only_system_libraries PROGRAM: whether it needs no shared library beyond libc and libstdc++
# (with what the latter brings along).
links_only_system_libraries() {
  local others
  others=$(objdump -p "$1" | awk '$1 == "NEEDED" {print $2}' |
    grep -vE '^(libc|libm|libstdc\+\+|libgcc_s|ld-linux[^.]*)\.so')
  [[ -z $others ]] || { echo "$1 needs $others"; return 1; }
}

# What touches NumPy, with the oldest one that runs on this Python.
numpy_oldest() {
  local venv=$PWD/build/venv-numpy-oldest requirements=python/requirements-numpy-oldest.txt
  kept_venv "$venv" "$(<$requirements)" pip_install "$venv" -r $requirements &&
    pip_install "$venv" --no-deps --force-reinstall build/dist/hurray_cpp-*.whl &&
    run_pytest "$venv" pytest-numpy-oldest "PATH=$venv/bin:$PATH" -- \
      "$PWD"/python/tests/test_{numpy,aligned_allocator,create,dlpack,tensor,threads}.py
}

stage_wheel() {
  local venv status=0 requirements=(-r python/requirements-test.txt)
  local programs=$PWD/build/venv-tools wheel
  if [[ -n ${CI:-}${FRAMEWORKS:-} ]]; then
    requirements+=(-r python/requirements-frameworks.txt)
  fi
  tools/wheel.sh &&
    kept_venv "$programs" "$(<python/requirements-tools.txt)" \
      pip_install "$programs" -r python/requirements-tools.txt || return
  wheel=$(echo "$PWD"/build/dist/hurray_cpp-*.whl)
  venv=$(mktemp -d)
  make_venv "$venv" && pip_install "$venv" "${requirements[@]}" "$wheel" &&
    links_only_system_libraries "$venv/bin/hurray" &&
    (cd / && "$venv/bin/hurray" --version && "$venv/bin/python" -c 'import hurray') &&
    run_pytest "$venv" pytest "PATH=$venv/bin:$programs/bin:$PATH" "HURRAY_WHEEL=$wheel" -- \
      -n 2 --dist worksteal "$PWD/python/tests" &&
    numpy_oldest || status=$?
  rm -rf "$venv"
  return $status
}

# A Python that was built with --disable-gil: its package is built and tested apart.
stage_free_threaded() {
  local interpreter=${FREE_THREADED_PYTHON:-$(command -v python3.14t || command -v python3.13t)} venv
  if [[ -z $interpreter ]]; then
    echo "No free-threaded Python is on the path; docs/building.md says how to get one." >&2
    return 1
  fi
  venv=$PWD/build/venv-free-threaded
  # shellcheck disable=SC2046 # one requirement a word
  python=$interpreter kept_venv "$venv" "$(build_requires; cat python/requirements-free-threaded.txt)" \
    pip_install "$venv" -r python/requirements-free-threaded.txt $(build_requires) &&
    pip_install "$venv" --no-build-isolation --no-deps --force-reinstall \
      -C build-dir="$PWD/build/free-threaded" . &&
    run_pytest "$venv" pytest-free-threaded "PATH=$venv/bin:$PATH" PYTHON_GIL=0
}

# The package as it is in the build of the stage asan.
stage_python_asan() {
  local venv=$PWD/build/venv-asan site
  build_venv && cmake --preset asan $(with_extension) &&
    cmake --build --preset asan --target _hurray hurray hurray_c_twin &&
    kept_venv "$venv" "$(<python/requirements-test.txt)" \
      pip_install "$venv" -r python/requirements-test.txt &&
    site=$("$venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))') &&
    rm -rf "$site/hurray" && cp -r python/hurray "$site/" &&
    cmake --install build/asan --component python --prefix "$site" &&
    install build/asan/cli/hurray "$venv/bin/" || return
  # Without libstdc++ in the preload, the sanitizer cannot find the real __cxa_throw.
  run_pytest "$venv" pytest-asan \
    "LD_PRELOAD=$(realpath "$(g++ -print-file-name=libasan.so)") $(realpath "$(g++ -print-file-name=libstdc++.so)")" \
    ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1 \
    PYTHONMALLOC=malloc HURRAY_TEST_ASAN=1 "HURRAY_TEST_C_TWIN=$PWD/build/asan/c/libhurray_c_twin.so" \
    "PATH=$venv/bin:$PATH" -- -n 2 --dist worksteal "$PWD/python/tests"
}

stage_fuzz() {
  cmake --preset fuzz "-DCMAKE_CXX_COMPILER=clang++-$clang" &&
    cmake --build --preset fuzz && tools/fuzz.sh "${SECONDS_PER_TARGET:-10}"
}

minutes() { printf '%d:%02d' $(($1 / 60)) $(($1 % 60)); }

# run_stage NAME: runs stage_NAME, its output in build/log/NAME.log.
run_stage() {
  local name=$1 log=build/log/$1.log begin=$SECONDS status
  printf '== %s\n' "$name"
  if [[ -n ${VERBOSE:-} ]]; then
    "stage_${name//-/_}" 2>&1 </dev/null | tee "$log"
  else
    "stage_${name//-/_}" >"$log" 2>&1 </dev/null
  fi
  status=$?
  if [[ -z ${VERBOSE:-} ]]; then
    if ((status)); then tail -n 150 "$log"; else grep -E '^[0-9]+% tests|passed|runs in|of the lines' "$log" | tail -n 8; fi
  fi
  summary+=("$(printf '%-12s %6s  %s' "$name" "$(minutes $((SECONDS - begin)))" \
    "$( ((status)) && echo failed || echo ok)")")
  return $status
}

stages=()
for stage in "${@:-all}"; do
  if [[ $stage == all ]]; then
    stages+=(setup asan clang wheel python-asan fuzz)
  else
    stages+=("$stage")
  fi
done
for stage in "${stages[@]}"; do
  declare -F "stage_${stage//-/_}" >/dev/null || { echo "test.sh: no stage $stage" >&2; exit 2; }
done

mkdir -p build/log
rm -rf "$results"
mkdir -p "$results"
summary=()
failed=0
for stage in "${stages[@]}"; do
  run_stage "$stage" || { failed=1; break; }
done

printf '\n%-12s %6s\n' stage min:s
printf '%s\n' "${summary[@]}"
printf '%-12s %6s\n\n' total "$(minutes $((SECONDS - started)))"
((failed)) && echo "Stage $stage failed; its whole output: build/log/$stage.log"
"$python" tools/count_tests.py --failed-stages "$failed" "$results"/*.xml || failed=1
exit $failed
