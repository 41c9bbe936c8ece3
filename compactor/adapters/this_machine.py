"""The doctor's view of this machine: Spark, scratch folders and disks."""

import os
import shutil
import tempfile
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compactor.core.errors import AccessError
from compactor.ops.doctor.machine_checks import Disk, SparkFound


def find_spark() -> SparkFound | None:
    """This Python's Spark; None if pyspark is not installed."""
    try:
        found = version("pyspark")
        from compactor.adapters.spark.session import s3a_jar_properties  # noqa: PLC0415 - Spark is slow to load
    except (PackageNotFoundError, ImportError):
        return None
    properties = s3a_jar_properties()
    if not properties:
        return SparkFound(found, "shipped")
    return SparkFound(found, "fetched" if "spark.jars" in properties else "at start")


def scratch_folders(env: Mapping[str, str]) -> tuple[str, ...]:
    """The default scratch folders of Spark and Python."""
    named = env.get("SPARK_LOCAL_DIRS") or env.get("LOCAL_DIRS") or ""
    return tuple(filter(None, named.split(","))) or (tempfile.gettempdir(),)


def disk_of(path: str) -> Disk:
    """The disk of a path, or of its nearest existing parent; `AccessError` if its free space is unknown."""
    there = next(each for each in (Path(path), *Path(path).parents, Path("/")) if each.exists())
    try:
        status = os.statvfs(there)
        # Some file systems create inodes as needed, and count none.
        has_free_files = status.f_files == 0 or status.f_favail > 0
        return Disk(str(there.stat().st_dev), shutil.disk_usage(there).free, has_free_files)
    except OSError as exc:
        raise AccessError(f"{there}: its disk does not report its free space ({exc.strerror})") from exc
