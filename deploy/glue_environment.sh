#!/usr/bin/env bash
# Makes dist/glue-environment.tar.gz, the virtual environment that a job on Glue 6.0 runs in: the package with everything
# it needs but Spark, which Glue brings, and the native engine where `make package` built it. Run that first.
#
# It has to be made on Linux for x86_64 with Python 3.13 and a glibc no newer than Glue's, as on Amazon Linux 2023: the
# archive holds compiled modules and points to the interpreter at its place there.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3.13}
BIN=.venv/bin
VENV_PACK=venv-pack==0.2.0

fail() { echo "$1" >&2; exit 2; }
[[ $(uname -sm) == "Linux x86_64" ]] || fail "this is $(uname -sm): expected Linux x86_64, as Glue is"
[[ $("$PYTHON" -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null) == "3 13" ]] \
	|| fail "$PYTHON: expected Python 3.13, as Glue 6.0 has; set PYTHON"
[[ -x $BIN/python ]] || fail ".venv: not there; run make install"
wheels=(dist/compactor-*.whl)
[[ -f ${wheels[0]} ]] || fail "dist/compactor-*.whl: not there; run make package"
shopt -s nullglob
native=(dist/compactor_native-*.whl)
((${#native[@]})) || echo "dist/compactor_native-*.whl: not there; the job uses the Spark engine"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$BIN/python" -m deploy.pins > "$work/pins.txt"
"$PYTHON" -m venv --copies "$work/environment"
"$work/environment/bin/pip" install --quiet --disable-pip-version-check --no-deps -r "$work/pins.txt" "${wheels[0]}" \
	"${native[@]}"
# Glue's own library for Python; the job does without it where it is not to be had.
if [[ -n ${AWSGLUE:-} ]]; then "$work/environment/bin/pip" install --quiet --no-deps "$AWSGLUE"; fi
"$PYTHON" -m venv "$work/tool"
"$work/tool/bin/pip" install --quiet --disable-pip-version-check "$VENV_PACK" setuptools==80.9.0
rm -f dist/glue-environment.tar.gz
"$work/tool/bin/venv-pack" --quiet --prefix "$work/environment" --output dist/glue-environment.tar.gz
ls -l dist/glue-environment.tar.gz
