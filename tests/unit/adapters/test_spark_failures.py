"""Spark's errors of the storage become the compactor's own; their text about the data does not get through."""

import pytest
from pyspark.errors import PySparkException

from compactor.adapters.spark.failures import translated
from compactor.core.errors import AccessError, EngineFailed, StoreUnavailable

CASES = {
    "java.nio.file.AccessDeniedException: s3://raw/a: getFileStatus": AccessError,
    "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3://raw/': Bucket does not exist": AccessError,
    "software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. SlowDown": StoreUnavailable,
    "org.apache.hadoop.fs.s3a.AWSStatus500Exception: open s3://raw/a": StoreUnavailable,
    "java.net.SocketException: Connection reset": StoreUnavailable,
    "java.io.UncheckedIOException: org.apache.http.ConnectionClosedException: Premature end": StoreUnavailable,
    "java.io.IOException: No space left on device": StoreUnavailable,
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)": EngineFailed,
    "java.lang.OutOfMemoryError: Java heap space": EngineFailed,
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: text[:40])
def test_trouble_of_the_storage_is_not_held_against_a_manifest(text: str) -> None:
    """Each kind of trouble ends in the error that says what has to happen next, with the manifest's id."""
    with pytest.raises(CASES[text]) as caught, translated("m-1"):
        raise PySparkException(f"Job aborted due to stage failure: {text}\n\tat java.base/x")
    assert type(caught.value) is CASES[text]
    if CASES[text] is not EngineFailed:
        assert "m-1" in str(caught.value)


QUOTING = {
    "[MALFORMED_RECORD_IN_PARSING.WITHOUT_SUGGESTION] Malformed records: [SECRET, null]. Parse Mode: FAILFAST": "",
    'java.lang.NumberFormatException: For input string: "SECRET"': "java.lang.NumberFormatException",
    "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT] Error while reading s3://raw/SECRET": (
        "org.apache.spark.SparkException: [FAILED_READ_FILE.NO_HINT]"
    ),
    'x: org.apache.spark.api.python.PythonException: Traceback:\nValueError: "SECRET"': "PythonException",
    "Traceback:\ncompactor.adapters.spark.failures.TaskFailed: ValueError in f, line 3\nSECRET": "in f, line 3",
    "ExecutorLostFailure (executor 1 exited: SECRET)": "ExecutorLostFailure",
}
"""Messages of Spark, with the part of each that is reported."""


@pytest.mark.parametrize("text", QUOTING, ids=lambda text: text[:40])
def test_what_spark_quotes_is_not_told(text: str) -> None:
    """An error that quotes the data is reported by its class."""
    with pytest.raises(EngineFailed) as caught, translated("m-1"):
        raise PySparkException(text)
    assert QUOTING[text] in str(caught.value)
    assert "SECRET" not in str(caught.value)


def test_other_errors_pass() -> None:
    """A bug stays a bug."""
    with pytest.raises(ZeroDivisionError), translated("m-1"):
        _ = 1 / 0
