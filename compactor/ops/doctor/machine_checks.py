"""Looks at the machine: Python, Java, Spark and its S3A, the native engine, disks."""

from collections.abc import Sequence

from compactor.ops.doctor.findings import Finding, fault, ok, warning
from compactor.ops.doctor.ports import Disk, Machine

PYTHON = (3, 11)
"""The oldest that the package takes: `requires-python` of `pyproject.toml`."""

SPARK = "4.1"
"""What the package is built and tested for, as Glue 6.0 has it."""

_GIB = 1024**3


def python(machine: Machine) -> Finding:
    """Whether this Python is new enough."""
    version = machine.python_version()
    text = ".".join(map(str, version))
    if version[:2] < PYTHON:
        return fault("python", f"{text}, expected 3.11 or newer", "install a newer Python, and the package into it")
    return ok("python", text)


def java(machine: Machine) -> Finding:
    """Whether there is a Java that Spark runs on."""
    found = machine.java()
    if found.fault is not None:
        return fault("java", found.fault, "install Java 17 (a JRE will do), or point JAVA_HOME at one that is there")
    return ok("java", f"{found.major} ({found.program})")


def spark(machine: Machine) -> Finding:
    """Whether there is Spark, of the version that everything is tested with."""
    found = machine.spark()
    if found is None:
        return fault("spark", "pyspark is not installed in this Python", 'install it: pip install "pyspark==4.1.*"')
    if not found.version.startswith(f"{SPARK}."):
        return warning("spark", f"{found.version}; all is tested with {SPARK}", f'pip install "pyspark=={SPARK}.*"')
    return ok("spark", found.version)


def s3a(machine: Machine) -> Finding:
    """Whether Spark can reach S3 without asking Maven first."""
    found = machine.spark()
    if found is None:
        return fault("s3a", "without Spark there is none", "install Spark first")
    if found.s3a == "at start":
        return warning(
            "s3a",
            "no jars of S3A are at hand: each start of Spark asks Maven Central for them",
            "fetch them once: python -m compactor.adapters.spark.s3a_jars",
        )
    return ok("s3a", "its jars come with Spark" if found.s3a == "shipped" else "its jars were fetched")


def native(machine: Machine, choice: str) -> Finding:
    """Whether the engine that the settings choose is there.

    Args:
        machine: This machine.
        choice: What `convert.engine` says.
    """
    if machine.has_native():
        return ok("native", f'installed (convert.engine is "{choice}")')
    if choice == "native":
        return fault(
            "native",
            'not installed, and convert.engine is "native"',
            'install its wheel, or set convert.engine = "auto"',
        )
    return ok("native", "not installed: Spark converts")


def disks(machine: Machine, folders: Sequence[tuple[str, str]], needed_bytes: int) -> list[Finding]:
    """Whether each disk has room for all that may be in flight at once.

    Args:
        machine: This machine.
        folders: Folders that are written to, each with what is put there.
        needed_bytes: The input of all manifests in flight: what is staged or spilled of it is no larger.
    """
    of_disk: dict[str, tuple[Disk, list[str]]] = {}
    for path, what in folders:
        found = machine.disk(path)
        of_disk.setdefault(found.name, (found, []))[1].append(f"{path} ({what})")
    return [_disk(found, ", ".join(places), needed_bytes) for found, places in of_disk.values()]


def _disk(found: Disk, places: str, needed_bytes: int) -> Finding:
    where = f"{_size(found.free_bytes)} free, {_size(needed_bytes)} needed: {places}"
    rule = "needed is what may be in flight: stream.manifests_in_flight x builder.target_manifest_bytes"
    if not found.has_free_files:
        return fault("disk", f"no free inodes: {places}", "remove files there, or name folders on another disk")
    if found.free_bytes < needed_bytes:
        return fault("disk", where, f"free space, name folders on another disk, or lower what is needed ({rule})")
    if found.free_bytes < 2 * needed_bytes:
        return warning("disk", where, f"free space: what failed attempts leave stays for a day ({rule})")
    return ok("disk", where)


def _size(length_bytes: int) -> str:
    return f"{length_bytes / _GIB:,.1f} GiB"
