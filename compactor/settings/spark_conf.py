"""The Spark properties that the compactor sets. Properties of `[spark] conf` come last."""

from collections.abc import Mapping

from compactor.core.errors import SettingsError

S3A_PACKAGES = (
    "org.apache.hadoop:hadoop-aws:3.4.2",
    "software.amazon.awssdk:s3:2.29.52",
    "software.amazon.awssdk:s3-transfer-manager:2.29.52",
    "software.amazon.awssdk:sts:2.29.52",
    "software.amazon.awssdk:apache-client:2.29.52",
)
"""Packages that S3A needs with PyPI's pyspark 4.1.1, whose Hadoop is 3.4.2. Glue has its own."""

S3A_EXCLUDES = ("software.amazon.awssdk:bundle",)
"""560 MB for all AWS services; S3A needs only the packages above."""

_PROMISES = {
    # Keys that differ only in case are different columns.
    "spark.sql.caseSensitive": "true",
    "spark.sql.adaptive.enabled": "true",
    # Values of non-string tokens keep their bytes.
    "spark.sql.json.enableExactStringParsing": "true",
    "spark.sql.files.ignoreCorruptFiles": "false",
    "spark.sql.files.ignoreMissingFiles": "false",
    "spark.sql.session.timeZone": "UTC",
    # Engines read INT96, the default, differently.
    "spark.sql.parquet.outputTimestampType": "TIMESTAMP_MICROS",
    # Fair scheduling lets a small manifest overtake a large one.
    "spark.scheduler.mode": "FAIR",
}

_SPEED = {
    # Columns with many distinct values build a large dictionary and then discard it.
    "spark.hadoop.parquet.dictionary.page.size": "65536",
    # Small splits of equal size coalesce into files of equal size.
    "spark.sql.files.maxPartitionBytes": str(16 * 1024 * 1024),
    "spark.sql.files.openCostInBytes": str(64 * 1024),
    # Staging is private to an attempt and verified from its footers, so the committer may skip its second rename.
    "spark.hadoop.mapreduce.fileoutputcommitter.algorithm.version": "2",
    "spark.hadoop.mapreduce.fileoutputcommitter.marksuccessfuljobs": "false",
    "spark.ui.showConsoleProgress": "false",
}

_LISTING = {
    # Spark stats every path of a manifest. On a disk this takes microseconds, but a Spark job with one task per path
    # takes seconds. On S3 a few tasks share the round trips.
    False: {"spark.sql.sources.parallelPartitionDiscovery.threshold": "1000000"},
    True: {"spark.sql.sources.parallelPartitionDiscovery.parallelism": "32"},
}

_LOCAL = {
    "spark.ui.enabled": "false",
    "spark.driver.memory": "4g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.shuffle.partitions": "8",
}
"""Properties of a local master, which spark-submit or Glue would otherwise set."""

_JAVA_OPTIONS = "-XX:+UseParallelGC -Dlog4j2.level=ERROR"
"""The collector has a higher throughput than G1; pauses do not matter here."""

_JAVA_OPTIONS_OF_SCHEDULER = f"{_JAVA_OPTIONS} -XX:TieredStopAtLevel=1"
"""For a JVM that only schedules tasks: its second compiler would take more processor time than its code saves."""


def is_submitted(env: Mapping[str, str]) -> bool:
    """Whether spark-submit or Glue started this process from its JVM.

    Spark itself checks this variable: `pyspark.java_gateway.launch_gateway` joins that JVM, or starts its own.
    """
    return "PYSPARK_GATEWAY_PORT" in env


def master_is_given(env: Mapping[str, str]) -> bool:
    """Whether spark-submit, Glue or a variable already chose a master."""
    return is_submitted(env) or "SPARK_MASTER" in env


def check_cluster(found: str, wanted: str) -> None:
    """Check that Spark does not run only on this machine, unless the settings want that.

    Args:
        found: The master of the running session.
        wanted: The master of the settings; may be empty.

    Raises:
        SettingsError: It does.
    """
    if found.startswith("local") and not wanted.startswith("local"):
        raise SettingsError(
            [f"spark.conf: Spark runs only on this machine ({found}) -> expected a cluster, as Glue has"]
        )


def spark_properties(
    *,
    conf: Mapping[str, str],
    region: str,
    endpoint_url: str,
    uses_s3: bool,
    timeout_seconds: float = 60,
    is_master_given: bool = False,
    converts_rows: bool = True,
) -> dict[str, str]:
    """All properties of a session.

    Without `spark.master` in `conf`, spark-submit or Glue decides, else it is `local[*]`. An empty region comes from
    the environment, and an empty endpoint is AWS. If the native engine converts the rows, Spark only schedules tasks.
    """
    properties = {**_PROMISES, **_SPEED, **_LISTING[uses_s3]}
    chosen = conf.get("spark.master", "")
    # On a cluster these would bind the driver to an address that executors cannot reach.
    if chosen.startswith("local") or not (chosen or is_master_given):
        properties |= _LOCAL
        properties["spark.driver.extraJavaOptions"] = _JAVA_OPTIONS if converts_rows else _JAVA_OPTIONS_OF_SCHEDULER
    if uses_s3:
        properties |= _s3a(region, endpoint_url, timeout_seconds)
    return {**properties, **conf}


def _s3a(region: str, endpoint_url: str, timeout_seconds: float) -> dict[str, str]:
    properties = {
        # As on Glue, s3:// is S3A.
        "spark.hadoop.fs.s3.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem",
        "spark.hadoop.fs.AbstractFileSystem.s3.impl": "org.apache.hadoop.fs.s3a.S3A",
        "spark.hadoop.fs.s3a.connection.maximum": "96",
        "spark.hadoop.fs.s3a.threads.max": "64",
        "spark.hadoop.fs.s3a.connection.timeout": f"{round(timeout_seconds * 1000)}ms",
        # Parquet is written sequentially, so buffering in memory avoids local disk.
        "spark.hadoop.fs.s3a.fast.upload.buffer": "bytebuffer",
    }
    if region:
        properties["spark.hadoop.fs.s3a.endpoint.region"] = region
    if endpoint_url:
        properties |= {
            "spark.hadoop.fs.s3a.endpoint": endpoint_url,
            "spark.hadoop.fs.s3a.endpoint.region": region or "us-east-1",
            "spark.hadoop.fs.s3a.path.style.access": "true",
            "spark.hadoop.fs.s3a.connection.ssl.enabled": str(endpoint_url.startswith("https")).lower(),
        }
    return properties
