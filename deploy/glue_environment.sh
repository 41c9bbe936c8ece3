#!/usr/bin/env bash
# Builds dist/glue-environment.tar.gz, the virtual environment of the job on Glue 6.0. It contains the wheel that
# `make package` built and the packages of locks/job.txt, without Spark, which is part of Glue.
#
# The archive contains compiled modules and the path of the interpreter on Glue. Build it on Linux for x86_64 with
# Python 3.13 and a glibc no newer than Glue's, for example on Amazon Linux 2023.
set -euo pipefail
cd "$(dirname "$0")/.."
PYTHON=${PYTHON:-python3.13}
VENV_PACK=venv-pack==0.2.0

fail() { echo "$1" >&2; exit 2; }
[[ $(uname -sm) == "Linux x86_64" ]] || fail "this is $(uname -sm): expected Linux x86_64, like Glue"
[[ $("$PYTHON" -c 'import sys; print(*sys.version_info[:2])' 2>/dev/null) == "3 13" ]] \
	|| fail "$PYTHON: expected Python 3.13, like Glue 6.0; set PYTHON"
wheels=(dist/ndjson_compactor-*.whl)
[[ -f ${wheels[0]} ]] || fail "dist/ndjson_compactor-*.whl does not exist: run make package"
[[ ${wheels[0]} != *-none-any.whl ]] || echo "${wheels[0]} has no native engine: the job uses the Spark engine"

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$PYTHON" -m venv --copies "$work/environment"
"$work/environment/bin/pip" install --quiet --disable-pip-version-check --no-deps --require-hashes -r locks/job.txt
"$work/environment/bin/pip" install --quiet --disable-pip-version-check --no-deps "${wheels[0]}"
# Glue's Python library is optional.
if [[ -n ${AWSGLUE:-} ]]; then "$work/environment/bin/pip" install --quiet --no-deps "$AWSGLUE"; fi
"$PYTHON" -m venv "$work/tool"
"$work/tool/bin/pip" install --quiet --disable-pip-version-check "$VENV_PACK" setuptools==80.9.0
rm -f dist/glue-environment.tar.gz
"$work/tool/bin/venv-pack" --quiet --prefix "$work/environment" --output dist/glue-environment.tar.gz
ls -l dist/glue-environment.tar.gz
