"""Makes the Spark session, with every property set before it exists."""

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

from compactor.core.errors import EngineLost
from compactor.settings.spark_conf import S3A_EXCLUDES, S3A_PACKAGES, is_submitted

JVM_END_SECONDS = 30.0
"""Time for a JVM whose session was stopped to run its shutdown hooks; it takes about one."""


def s3a_jars_folder() -> Path:
    """Where `python -m compactor.adapters.spark.s3a_jars` puts the jars of S3A: beside this Python environment."""
    return Path(sys.prefix) / "share" / "compactor" / "s3a-jars"


def s3a_jar_properties() -> dict[str, str]:
    """How a session finds S3A: nothing to do where Spark brings it, else the jars at hand, else Maven coordinates."""
    shipped = Path(os.environ.get("SPARK_HOME") or Path(pyspark.__file__).parent) / "jars"
    if any(shipped.glob("hadoop-aws-*.jar")):
        return {}
    jars = sorted(s3a_jars_folder().glob("*.jar"))
    if jars:
        return {"spark.jars": ",".join(map(str, jars))}
    return {"spark.jars.packages": ",".join(S3A_PACKAGES), "spark.jars.excludes": ",".join(S3A_EXCLUDES)}


def open_session(master: str, properties: Mapping[str, str], *, uses_s3: bool) -> SparkSession:
    """Start Spark, or join the session that spark-submit or Glue has started.

    Args:
        master: The Spark master; empty for that of the environment, or `local[*]` where there is none.
        properties: All properties, as `compactor.settings.spark_conf.spark_properties` gives them.
        uses_s3: Whether S3A has to be at hand.
    """
    # Workers run the very Python of the driver, whatever `python3` is on the path.
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    _speak_utf8()
    quiet = Path(__file__).with_name("log4j2.properties")
    if not is_submitted(os.environ) and quiet.exists():  # it does not where the package is shipped as an archive
        # Read as the JVM starts, before any property could say so: it keeps Spark's greetings off the screen.
        os.environ.setdefault("LOG4J_CONFIGURATION_FILE", str(quiet))
    builder = SparkSession.builder.appName("compactor")
    if master:
        builder = builder.master(master)
    elif "spark.master" not in properties and "SPARK_MASTER" not in os.environ and not is_submitted(os.environ):
        builder = builder.master("local[*]")
    jars = s3a_jar_properties() if uses_s3 else {}
    for key, value in {**jars, **properties}.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def _speak_utf8() -> None:
    """Let the JVM find files whose names are not ASCII, whatever the locale: Java takes their encoding from it."""
    if locale.getpreferredencoding(do_setlocale=False).upper() not in {"UTF-8", "UTF8"} or _locale_is_plain():
        os.environ["LC_ALL"] = "C.UTF-8"


def _locale_is_plain() -> bool:
    # Python itself takes the plain locale for UTF-8, and Java does not.
    named = next((os.environ[name] for name in ("LC_ALL", "LC_CTYPE", "LANG") if os.environ.get(name)), "C")
    return named in {"C", "POSIX"}


@contextmanager
def loss_told() -> Iterator[None]:
    """Tell trouble of a JVM that is gone from any other trouble with Spark.

    Raises:
        EngineLost: The JVM is gone, whatever it was that came of it here.
    """
    try:
        yield
    except (Py4JError, PySparkException, OSError, EOFError) as exc:
        if not _jvm_is_gone():
            raise
        raise EngineLost("Spark's JVM is gone: it was killed or ran out of memory; the next run goes on") from exc


def _jvm_is_gone() -> bool:
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - pyspark has no public way to ask for its JVM
    if gateway is None:
        return False
    try:
        return gateway.jvm.System.nanoTime() is None
    except Exception:  # noqa: BLE001 - whatever keeps it from telling the time
        return True


def close_session() -> None:
    """Stop Spark, and wait for the JVM that it was started in; a JVM that others started is left to them."""
    gateway: Any = SparkContext._gateway  # noqa: SLF001 - pyspark has no public way to end its JVM
    if gateway is None:
        return
    session = None if _jvm_is_gone() else SparkSession.getActiveSession()
    if session is not None:
        session.stop()
    process = getattr(gateway, "proc", None)
    if process is None:
        return
    with suppress(Py4JError, OSError):  # from a JVM that is gone
        gateway.shutdown()
    SparkContext._gateway = SparkContext._jvm = None  # noqa: SLF001 - so that a next session starts its own
    with suppress(OSError):
        process.stdin.close()  # which the JVM takes for its end
    try:
        process.wait(JVM_END_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
