"""Translates trouble of the storage under Spark, once: Spark reports it as the text of nested Java exceptions."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import PySparkException

from compactor.adapters.spark.session import loss_told
from compactor.errors import AccessError, StoreUnavailable

_DENIED = re.compile(
    r"java\.nio\.file\.AccessDeniedException|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken"
    r"|NoAuthWithAWSException|UnknownStoreException|NoSuchBucket|AccessControlException"
)
"""What S3A and Hadoop say where a person must act."""

_PASSING = re.compile(
    r"SlowDown|AWSServiceThrottledException|AWSStatus500Exception|AWSServiceIOException|ApiCallTimeoutException"
    r"|AWSApiCallTimeoutException|Unable to execute HTTP request|ConnectTimeoutException|SocketTimeoutException"
    r"|Connection reset|Connection refused|NoHttpResponseException|RequestTimeout|No space left on device"
)
"""What they say where waiting helps. A lost executor is not among it: the data it worked on may be what killed it."""

_MESSAGE_MAX_CHARACTERS = 600  # the rest is stack traces


@contextmanager
def translated(manifest_id: str) -> Iterator[None]:
    """Raise the compactor's own errors for trouble of the storage; all else stays as it is.

    Args:
        manifest_id: What was being worked on.

    Raises:
        EngineLost: The JVM is gone.
        AccessError: Permission denied, credentials wrong, or a bucket that does not exist.
        StoreUnavailable: The store throttled, timed out or answered 5xx, or a disk was full.
    """
    try:
        with loss_told():
            yield
    except (PySparkException, Py4JError) as exc:
        text = str(exc)
        for pattern, error in ((_DENIED, AccessError), (_PASSING, StoreUnavailable)):
            if found := pattern.search(text):
                message = f"manifest {manifest_id}: Spark met {found[0]}: {text[:_MESSAGE_MAX_CHARACTERS]}"
                raise error(message) from exc
        raise
