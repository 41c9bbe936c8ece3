"""Checks of the machine: Java, Spark and its S3A, the native engine, disks. Decisions, no I/O."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from compactor.core.extras import install_command
from compactor.ops.doctor.findings import Finding, fault, ok, skipped, warning
from compactor.ops.doctor.java import Java

SPARK = "4.1"  # what the package is built and tested for, as in Glue 6.0

_GIB = 1024**3


@dataclass(frozen=True, slots=True)
class Disk:
    """The disk that a path is on."""

    name: str  # distinguishes disks
    free_bytes: int  # bytes that this user may still write
    has_free_files: bool = True  # whether more files can be created


@dataclass(frozen=True, slots=True)
class SparkFound:
    """Spark, as this Python would start it."""

    version: str  # such as `4.1.1`
    # Whether the jars of S3A come with Spark, were downloaded before, or are downloaded at each start
    s3a: Literal["shipped", "fetched", "at start"]


def java(found: Java, *, is_needed: bool = True) -> Finding:
    """Whether Spark can run on the Java that it would start; only a note if Spark is not needed."""
    if found.fault is not None and not is_needed:
        said = "not found" if found.major is None else f"{found.major} ({found.program})"
        return skipped(f"{said}; the native engine needs none, Spark needs 17 or 21")
    if found.fault is not None:
        return fault(found.fault, "install Java 17 (a JRE is enough), or point JAVA_HOME at an installed one")
    return ok(f"{found.major} ({found.program})")


def spark(found: SparkFound | None, *, is_needed: bool = True) -> Finding:
    """Whether a tested version of Spark is installed; only a note if Spark is not needed."""
    if found is None and not is_needed:
        return skipped("not installed; the native engine does without it")
    if found is None:
        return fault("pyspark is not installed in this Python", f"install it: {install_command('spark')}")
    if not found.version.startswith(f"{SPARK}."):
        return warning(f"{found.version}; the tests use {SPARK}", f'pip install "pyspark=={SPARK}.*"')
    return ok(found.version)


def s3a(found: SparkFound | None) -> Finding:
    """Whether Spark can reach S3 without a download from Maven Central first."""
    if found is None or found.s3a == "at start":
        return warning(
            "the S3A jars are not installed: each start of Spark downloads them from Maven Central",
            "download them once: python -m compactor.adapters.spark.s3a_jars",
        )
    return ok("its jars come with Spark" if found.s3a == "shipped" else "its jars are downloaded")


def aws(*, is_installed: bool) -> Finding:
    """Whether places on S3 can be used."""
    if is_installed:
        return ok("boto3 is installed, for places on S3")
    return skipped("boto3 is not installed; only places on S3 need it", install_command("aws"))


def native(choice: str, *, why_not: str) -> Finding:
    """Whether the engine chosen by `convert.engine` can be used; `why_not` is empty if native can."""
    if not why_not:
        return ok(f'installed (convert.engine is "{choice}")')
    if choice == "native":
        return fault(
            f'{why_not}, and convert.engine is "native"', 'install a wheel that has it, or set convert.engine = "auto"'
        )
    return ok(f"{why_not}: Spark converts")


def disks(folders: Sequence[tuple[str, str]], needed_bytes: int, disk_of: Callable[[str], Disk]) -> list[Finding]:
    """Whether each disk has room for everything that may be in flight at once.

    Each folder comes with its purpose. `needed_bytes` is the input of all manifests in flight: staged or spilled data
    is no larger.
    """
    of_disk: dict[str, tuple[Disk, list[str]]] = {}
    for path, what in folders:
        found = disk_of(path)
        of_disk.setdefault(found.name, (found, []))[1].append(f"{path} ({what})")
    return [_disk(found, ", ".join(places), needed_bytes) for found, places in of_disk.values()]


def _disk(found: Disk, places: str, needed_bytes: int) -> Finding:
    room = f"{_size(found.free_bytes)} free, {_size(needed_bytes)} needed: {places}"
    rule = "needed = stream.manifests_in_flight x builder.target_manifest_bytes"
    if not found.has_free_files:
        return fault(f"no free inodes: {places}", "delete files there, or use folders on another disk")
    if found.free_bytes < needed_bytes:
        return fault(room, f"free space, use folders on another disk, or lower what is needed ({rule})")
    if found.free_bytes < 2 * needed_bytes:
        return warning(room, f"free space: files of failed attempts stay for a day ({rule})")
    return ok(room)


def _size(length_bytes: int) -> str:
    return f"{length_bytes / _GIB:,.1f} GiB"
