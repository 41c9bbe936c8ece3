"""The REST catalog of Iceberg's own tests, in Java. `python -m tests.support.rest_catalog` downloads it.

It keeps tables in SQLite, and their metadata in a folder. Each jar has the SHA-256 that is on record.
The server listens on all addresses of the machine, on a free port, as long as its tests run.
"""

import shutil
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self
from urllib.error import URLError

from tests.support.server_process import ServerProcess, free_ports

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".tools" / "rest-catalog"
FOR_SPARK = ROOT / ".tools" / "iceberg-spark"

SPARK_OF_CATALOG = """
import json, sys
from pyspark.sql import SparkSession
jars, uri, name, *paths = sys.argv[1:]
spark = (
    SparkSession.builder.master("local[1]")
    .config("spark.jars", jars)
    .config("spark.ui.enabled", "false")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.catalog.lake", "org.apache.iceberg.spark.SparkCatalog")
    .config("spark.sql.catalog.lake.type", "rest")
    .config("spark.sql.catalog.lake.uri", uri)
    .getOrCreate()
)
"""
"""The beginning of a program that reads a table by Spark: it gets `FOR_SPARK`, the address, and a name."""

_OF_SPARK = ("hadoop-client-api-*.jar", "hadoop-client-runtime-*.jar", "commons-logging-*.jar", "log4j-*.jar")
_SHORT = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx512m")
_ARCHIVE = FOLDER / "classes.jsa"


def checksums(folder: Path) -> dict[str, str]:
    """The SHA-256 of each jar that belongs into a folder by its name."""
    lines = Path(__file__).with_name(f"{folder.name}.sha256").read_text().splitlines()
    return {name: digest for digest, name in (line.split() for line in lines)}


def is_fetched(folder: Path = FOLDER) -> bool:
    """Whether the server can be started, or Spark can read its tables."""
    return shutil.which("java") is not None and {each.name for each in folder.glob("*.jar")} == checksums(folder).keys()


def fetch(folder: Path) -> None:
    """Download the jars that belong into a folder, unless they are there. Spark has Ivy, which finds them."""
    from compactor.adapters.spark.s3a_jars import jar_faults  # noqa: PLC0415 - Spark is slow to import

    expected = checksums(folder)
    if not list(jar_faults(folder, expected)):
        return
    with tempfile.TemporaryDirectory() as work:
        packages = Path(__file__).with_name(f"{folder.name}.ivy.xml")
        ivy = next(_spark_jars("ivy-*.jar"))
        found = Path(work) / "found"
        target = f"{found}/[organisation]_[artifact]-[revision](-[classifier]).[ext]"
        java = ["java", f"-Divy.default.ivy.user.dir={work}", "-jar", str(ivy), "-ivy", str(packages)]
        ended = subprocess.run(
            [*java, "-retrieve", target, "-types", "jar", "bundle"], capture_output=True, text=True, check=False
        )
        if ended.returncode or not found.is_dir():
            sys.stderr.write(ended.stdout[-4000:] + ended.stderr[-4000:])
            raise SystemExit(f"cannot download what {packages.name} names from Maven Central")
        if faults := list(jar_faults(found, expected)):
            raise SystemExit("\n".join([f"the jars of {packages.name} are not those that were tested", *faults]))
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(exist_ok=True)
        shutil.copytree(found, folder)


class RestCatalogServer:
    """A process with the catalog. Use it as a context manager.

    Args:
        folder: For its database, its tables and what it prints.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        [self._port] = free_ports(1)
        self._process = ServerProcess("the REST catalog", folder / "server.log", self._answers)

    @property
    def url(self) -> str:
        """Its address, which stays the same when it is started again."""
        return f"http://127.0.0.1:{self._port}/"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        jars = [str(FOLDER / "*"), *(str(path) for each in _OF_SPARK for path in _spark_jars(each))]
        archive = ["-XX:SharedArchiveFile=" + str(_ARCHIVE)] if _ARCHIVE.exists() else []
        environment = {
            "CATALOG_WAREHOUSE": (self._folder / "warehouse").as_uri(),
            "CATALOG_URI": f"jdbc:sqlite:{self._folder / 'catalog.db'}",
            "CATALOG_REST_PORT": str(self._port),
            "PATH": "/usr/bin:/bin",
        }
        java = [shutil.which("java") or "java", *_SHORT, *archive, f"-Djava.io.tmpdir={self._folder}"]
        command = [*java, "-cp", ":".join(jars), "org.apache.iceberg.rest.RESTCatalogServer"]
        self._process.start(command, environment)

    def kill(self) -> None:
        """End it at once, whatever it is doing."""
        self._process.kill()

    def _answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}v1/config", timeout=10) as answer:  # noqa: S310 - of this machine
                return bool(answer.status == 200)
        except (URLError, OSError):
            return False


def _spark_jars(pattern: str) -> Iterator[Path]:
    """Jars that come with Spark."""
    found = find_spec("pyspark")
    if found is None or found.origin is None:
        raise RuntimeError("Spark is not installed: make dev")
    return (Path(found.origin).parent / "jars").glob(pattern)


if __name__ == "__main__":
    for each in (FOLDER, FOR_SPARK):
        fetch(each)
