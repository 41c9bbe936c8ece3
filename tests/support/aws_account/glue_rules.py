"""What Glue says to a definition of a job: what it refuses, and what it takes and does not do."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MINUTES_OF_SEVEN_DAYS = 10_080

WORKER_TYPES = {"G.1X", "G.2X", "G.4X", "G.8X", "G.025X", "G.12X", "G.16X", "R.1X", "R.2X", "R.4X", "R.8X"}
ONLY_STREAMING = {"G.025X"}

RESERVED = {"--conf", "--debug", "--mode", "--JOB_NAME", "--endpoint"}

ARGUMENTS = {
    "--additional-python-modules",
    "--auto-scale-within-microbatch",
    "--custom-logGroup-prefix",
    "--custom-logStream-prefix",
    "--enable-auto-scaling",
    "--enable-job-insights",
    "--enable-metrics",
    "--enable-observability-metrics",
    "--enable-spark-ui",
    "--executor-cores",
    "--extra-files",
    "--extra-jars",
    "--extra-py-files",
    "--job-language",
    "--python-modules-installer-option",
    "--python-virtual-env",
    "--python-virtual-env-storage-prefix",
    "--spark-event-logs-path",
    "--TempDir",
    "--user-jars-first",
}
"""Arguments that Glue reads itself, of those that a streaming job may have."""

SINCE = {"--python-virtual-env": "5.0", "--python-virtual-env-storage-prefix": "6.0"}

GLIBC = (2, 34)  # of Amazon Linux 2023
PYTHON = {"5.1": "cp311", "6.0": "cp313"}
_WHEEL = re.compile(r"-(?P<python>[a-z]+\d+)-(?P<abi>[a-z0-9]+)-(?P<platform>[a-z0-9_.]+)\.whl$")
_GLIBC = re.compile(r"manylinux_(\d+)_(\d+)_x86_64")


def refused(job: Mapping[str, Any], versions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The rules that CreateJob and UpdateJob refuse a definition by, each with the message."""
    name = job["Command"]["Name"]
    timeout = int(job.get("Timeout", 0))
    if timeout >= MINUTES_OF_SEVEN_DAYS:
        yield "timeout", f"Timeout {timeout} is not less than 7 days or {MINUTES_OF_SEVEN_DAYS} minutes"
    if job.get("GlueVersion") not in versions:
        yield "Glue version", f"Glue version {job.get('GlueVersion')} is not supported"
    worker = job.get("WorkerType")
    if worker not in WORKER_TYPES or (worker in ONLY_STREAMING and name != "gluestreaming"):
        yield "worker type", f"Worker type {worker} is not supported"
    if "MaxCapacity" in job and worker:
        yield "capacity", "Please set only Worker Type and Number Of Workers"
    for argument in sorted(RESERVED & job.get("DefaultArguments", {}).keys()):
        yield "reserved argument", f"{argument} is internal to Glue"


def ignored(job: Mapping[str, Any], script: str) -> Iterator[tuple[str, str]]:
    """The rules by which something of a definition is taken and has no effect, each with what it is.

    `script` is the code of the script, which reads its own arguments.
    """
    arguments = job.get("DefaultArguments", {})
    if "MaintenanceWindow" in job and int(job.get("Timeout", 0)):
        yield "window beside a timeout", f"a run ends after {job['Timeout']} minutes, and Glue restarts none"
    for argument in arguments:
        is_read = f'"{argument}"' in script or f'"{argument.removeprefix("--")}"' in script
        if argument not in ARGUMENTS | RESERVED and not is_read:
            yield "unknown argument", f"neither Glue nor the script reads {argument}"
    version = job.get("GlueVersion", "")
    for argument in sorted(SINCE.keys() & arguments.keys()):
        if tuple(version.split(".")) < tuple(SINCE[argument].split(".")):
            yield "argument of another version", f"Glue {version} does not read {argument}"


def not_installed(job: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The wheels that a run of a job could not install, by their tags."""
    version = job["GlueVersion"]
    for module in job["DefaultArguments"].get("--additional-python-modules", "").split(","):
        found = _WHEEL.search(module)
        if found is None:
            continue
        python, abi, platform = found["python"], found["abi"], found["platform"]
        fits_python = python in {"py3", PYTHON[version]} or (abi == "abi3" and python <= PYTHON[version])
        needed = min(((int(a), int(b)) for a, b in _GLIBC.findall(platform)), default=(0, 0))
        if not fits_python:
            yield "environment", f"{module} is for {python}, and Glue {version} has {PYTHON[version]}"
        if platform != "any" and (needed > GLIBC or needed == (0, 0)) and "manylinux2014" not in platform:
            yield "environment", f"{module} needs glibc {needed[0]}.{needed[1]}, and Glue has 2.34"


def ends(job: Mapping[str, Any]) -> str:
    """How a run that goes on and on ends: `timeout`, `window` or `seven days`. Glue restarts it after the last two."""
    if int(job.get("Timeout", 0)):
        return "timeout"
    return "window" if "MaintenanceWindow" in job else "seven days"
