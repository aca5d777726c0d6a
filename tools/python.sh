# Sourced by the other scripts: virtual environments and wheels.

python=${PYTHON:-python3}

# check_python: whether the interpreter is new enough.
check_python() {
  "$python" -c 'import sys; sys.exit(sys.version_info < (3, 10))' && return
  echo "Python 3.10 or newer is needed; set PYTHON to one." >&2
  return 1
}

# make_venv FOLDER [OPTION...]: a fresh virtual environment.
make_venv() {
  local folder=$1
  shift
  rm -rf "$folder"
  "$python" -m venv "$@" "$folder"
  "$folder/bin/pip" install --quiet --disable-pip-version-check --upgrade pip
}

# kept_venv FOLDER KEY COMMAND...: the environment FOLDER, made anew and filled by COMMAND unless
# it was filled for the same KEY before.
kept_venv() {
  local folder=$1 key
  key=$("$python" -VV; echo "$2")
  shift 2
  if [[ -f $folder/key && $(<"$folder/key") == "$key" ]]; then
    return 0
  fi
  make_venv "$folder"
  "$@"
  echo "$key" >"$folder/key"
}

pip_install() {  # pip_install VENV ARGUMENT...
  local venv=$1
  shift
  "$venv/bin/pip" install --quiet --disable-pip-version-check --no-input "$@"
}

# build_requires: what pyproject.toml needs for a build, one requirement a line.
build_requires() {
  "$python" - <<'PY'
import re
text = open("pyproject.toml", encoding="utf-8").read()
print("\n".join(re.findall(r'"([^"]+)"', re.search(r"^requires = \[(.*?)\]", text, re.M | re.S)[1])))
PY
}

# build_venv: build/venv-build, holding the build requirements (for builds without isolation).
build_venv() {
  local requires
  requires=$(build_requires)
  # shellcheck disable=SC2086 # one requirement a word
  kept_venv build/venv-build "$requires" pip_install build/venv-build build $requires
}
