"""What Spark says of the storage becomes the compactor's own error; what it says of the data does not."""

import pytest
from pyspark.errors import PySparkException

from compactor.adapters.spark.failures import translated
from compactor.errors import AccessError, StoreUnavailable

CASES = {
    "java.nio.file.AccessDeniedException: s3://raw/a: getFileStatus": AccessError,
    "org.apache.hadoop.fs.s3a.UnknownStoreException: `s3://raw/': Bucket does not exist": AccessError,
    "software.amazon.awssdk.services.s3.model.S3Exception: Please reduce your request rate. SlowDown": StoreUnavailable,
    "org.apache.hadoop.fs.s3a.AWSStatus500Exception: open s3://raw/a": StoreUnavailable,
    "java.net.SocketException: Connection reset": StoreUnavailable,
    "java.io.IOException: No space left on device": StoreUnavailable,
    "ExecutorLostFailure (executor 1 exited caused by one of the running tasks)": PySparkException,
    "java.lang.OutOfMemoryError: Java heap space": PySparkException,
}


@pytest.mark.parametrize("text", CASES, ids=lambda text: text[:40])
def test_trouble_of_the_storage_is_not_held_against_a_manifest(text: str) -> None:
    """Each kind of trouble ends in the error that says what has to happen next, with the manifest's id."""
    with pytest.raises(CASES[text]) as caught, translated("m-1"):
        raise PySparkException(f"Job aborted due to stage failure: {text}\n\tat java.base/x")
    assert type(caught.value) is CASES[text]
    if CASES[text] is not PySparkException:
        assert "m-1" in str(caught.value)


def test_other_errors_pass() -> None:
    """A bug stays a bug."""
    with pytest.raises(ZeroDivisionError), translated("m-1"):
        _ = 1 / 0
