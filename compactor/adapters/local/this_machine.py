"""The machine this runs on, as the doctor asks for it."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from compactor.adapters.local.native_kernel import is_installed
from compactor.core.errors import AccessError
from compactor.ops.doctor.java import Java, look_for_java
from compactor.ops.doctor.ports import Disk, SparkFound

_JAVA_SECONDS = 10.0


class ThisMachine:
    """This machine, with the environment of this process.

    Args:
        env: Environment variables.
    """

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def python_version(self) -> tuple[int, ...]:
        return sys.version_info[:3]

    def java(self) -> Java:
        return look_for_java(self._env, _JAVA_SECONDS)

    def spark(self) -> SparkFound | None:
        try:
            found = version("pyspark")
            from compactor.adapters.spark.session import s3a_jar_properties  # noqa: PLC0415 - Spark is slow to load
        except (PackageNotFoundError, ImportError):
            return None
        properties = s3a_jar_properties()
        if not properties:
            return SparkFound(found, "shipped")
        return SparkFound(found, "fetched" if "spark.jars" in properties else "at start")

    def has_native(self) -> bool:
        return is_installed()

    def scratch_folders(self) -> tuple[str, ...]:
        named = self._env.get("SPARK_LOCAL_DIRS") or self._env.get("LOCAL_DIRS") or ""
        return tuple(filter(None, named.split(","))) or (tempfile.gettempdir(),)

    def disk(self, path: str) -> Disk:
        there = next(each for each in (Path(path), *Path(path).parents, Path("/")) if each.exists())
        try:
            status = os.statvfs(there)
            # Some file systems make room for files as they come, and count none.
            has_free_files = status.f_files == 0 or status.f_favail > 0
            return Disk(str(there.stat().st_dev), shutil.disk_usage(there).free, has_free_files)
        except OSError as exc:
            raise AccessError(f"{there}: its disk cannot be asked for free space ({exc.strerror})") from exc

    @contextmanager
    def tidied(self, path: str) -> Iterator[None]:
        made = [each for each in (Path(path), *Path(path).parents) if not each.exists()]
        try:
            yield
        finally:
            with suppress(OSError):  # it is not empty any more, so somebody else uses it by now
                for each in made:
                    each.rmdir()
