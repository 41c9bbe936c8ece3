"""Opens the Spark session with all its properties, and closes it."""

import locale
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pyspark
from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from compactor.core.errors import EngineLost, SettingsError
from compactor.settings.spark_conf import S3A_EXCLUDES, S3A_PACKAGES, is_submitted

JVM_END_SECONDS = 30.0
"""The longest wait for the shutdown hooks of a JVM, which take about one second."""


def s3a_jars_folder() -> Path:
    """This Python environment's folder for the jars downloaded by `compactor.adapters.spark.s3a_jars`."""
    return Path(sys.prefix) / "share" / "compactor" / "s3a-jars"


def s3a_jar_properties() -> dict[str, str]:
    """The properties that add S3A to Spark: none if Spark includes it, else downloaded jars, else Maven packages."""
    shipped = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    if any(shipped.glob("hadoop-aws-*.jar")):
        return {}
    jars = sorted(s3a_jars_folder().glob("*.jar"))
    if jars:
        return {"spark.jars": ",".join(map(str, jars))}
    return {"spark.jars.packages": ",".join(S3A_PACKAGES), "spark.jars.excludes": ",".join(S3A_EXCLUDES)}


def open_session(properties: Mapping[str, str], *, uses_s3: bool) -> SparkSession:
    """Start Spark, or join the session started by spark-submit or Glue.

    Without a master, the environment decides, else `local[*]`. S3A is provided if the job `uses_s3`.
    """
    # Workers must run the driver's Python, whatever `python3` is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _use_utf8()
    quiet = Path(__file__).with_name("log4j2.properties")
    if not is_submitted(os.environ) and quiet.exists():  # it is missing if the package is shipped as an archive
        # The JVM reads this file as it starts, before it has any property. It silences Spark's startup messages.
        os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(quiet))
    builder = SparkSession.builder.appName("compactor")
    if "spark.master" not in properties and "SPARK_MASTER" not in os.environ and not is_submitted(os.environ):
        builder = builder.master("local[*]")
    jars = s3a_jar_properties() if uses_s3 else {}
    for key, value in {**jars, **properties}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def running_session() -> SparkSession | None:
    """This process's session; None if there is none."""
    if _context() is None:
        return None
    # A separate thread has no active session; without properties, the builder returns the process's session unchanged.
    return SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()


def shared_session(session: SparkSession, properties: Mapping[str, str]) -> SparkSession:
    """A session on the same Spark, with its own properties as far as sessions can differ.

    Raises:
        SettingsError: The session belongs to a different process.
    """
    if not isinstance(session, SparkSession):
        kind = f"{type(session).__module__}.{type(session).__name__}"
        raise SettingsError(
            [f"spark: {kind} -> expected a pyspark.sql.SparkSession from this process, not from Connect"]
        )
    own = session.newSession()
    for key, value in properties.items():
        if key.startswith("spark.hadoop."):
            own.conf.set(key.removeprefix("spark.hadoop."), value)  # a session's additions to Hadoop's configuration
        elif key.startswith("spark.sql.") and own.conf.isModifiable(key):
            own.conf.set(key, value)
    return own


def _use_utf8() -> None:
    """Set a UTF-8 locale for the JVM: Java takes the encoding of file names from it."""
    if locale.getpreferredencoding(do_setlocale=False).upper() not in {"UTF-8", "UTF8"} or _locale_is_plain():
        os.environ["LC_ALL"] = "C.UTF-8"


def _locale_is_plain() -> bool:
    # Python uses UTF-8 in the plain C locale; Java does not.
    named = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "C")
    return named in {"C", "POSIX"}


@contextmanager
def loss_reported() -> Iterator[None]:
    """Convert a Spark error to `EngineLost` if the JVM died; other errors pass through."""
    try:
        yield
    except (Py4JError, PySparkException, OSError, EOFError) as exc:
        if not _jvm_is_gone():
            raise
        raise EngineLost("Spark's JVM died: it was killed or ran out of memory; the next run resumes") from exc


def _context() -> SparkContext | None:
    # pyspark has no public way to ask. If it moves, each call that may join a session fails at once.
    return SparkContext._active_spark_context  # noqa: SLF001


def _gateway() -> Any:
    # pyspark has no public way to get its JVM. If it moves, each run with Spark fails as it closes its session.
    return SparkContext._gateway  # noqa: SLF001


def _jvm_is_gone() -> bool:
    gateway = _gateway()
    if gateway is None:
        return False
    try:
        return gateway.jvm.System.nanoTime() is None
    except Exception:  # noqa: BLE001 - a JVM that cannot tell the time is gone
        return True


def close_session() -> None:
    """Stop Spark and wait for its JVM to end, unless the JVM was started by spark-submit or Glue."""
    gateway = _gateway()
    if gateway is None:
        return
    session = None if _jvm_is_gone() else SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    if session is None and (context := _context()) is not None:
        for _ in range(2):  # the first call fails at the JVM; the second makes pyspark drop the context
            with suppress(Exception):
                context.stop()
    with suppress(Py4JError, OSError):  # raised if the JVM died
        gateway.shutdown()
    # So that the next session starts a new JVM. If this is kept elsewhere, a process's second session fails.
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001
    with suppress(OSError):
        process.stdin.close()  # the JVM exits at the end of its input
    try:
        process.wait(JVM_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
