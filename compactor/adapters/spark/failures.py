"""Translates Spark errors, which arrive as the text of nested Java exceptions and may quote the data."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from compactor.adapters.spark.session import loss_reported
from compactor.core.errors import AccessError, EngineFailed, StoreUnavailable


class TaskFailed(Exception):
    """A task failed unexpectedly. Spark logs the message, so it contains none of the data."""


_DENIED = re.compile(
    r"java\.nio\.file\.AccessDeniedException|AccessDenied|InvalidAccessKeyId|SignatureDoesNotMatch|ExpiredToken"
    r"|NoAuthWithAWSException|UnknownStoreException|NoSuchBucket|AccessControlException"
)
"""S3A and Hadoop errors that need an operator."""

_PASSING = re.compile(
    r"SlowDown|AWSServiceThrottledException|AWSStatus500Exception|AWSServiceIOException|ApiCallTimeoutException"
    r"|AWSApiCallTimeoutException|Unable to execute HTTP request|ConnectTimeoutException|SocketTimeoutException"
    r"|Connection reset|Connection refused|NoHttpResponseException|ConnectionClosedException|RequestTimeout"
    r"|No space left on device"
)
"""Transient errors. A lost executor is not included: its data may have killed it."""

_STORAGE_MESSAGES = re.compile(
    r"(?:^|: )((?:java\.(?:nio\.file|net|io)|org\.apache\.hadoop|software\.amazon\.awssdk)\.[\w.$]+: [^\n]*)",
    re.MULTILINE,
)
"""The storage's own message: the object and the response."""

_CLASSES = re.compile(
    r"(?:^|: )((?:java|scala|py4j|org\.apache|software\.amazon|com\.amazonaws|com\.fasterxml)[\w.$]*\."
    r"\w*(?:Exception|Error)(?:: \[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\])?)(?=[:\s]|$)",
    re.MULTILINE,
)
"""Class names of Java exceptions, with Spark's error condition if there is one."""

_TASK_MESSAGES = re.compile(rf"^{re.escape(TaskFailed.__module__)}\.{TaskFailed.__name__}: ([^\n]*)", re.MULTILINE)
_DEATHS = re.compile(r"ExecutorLostFailure|Python worker exited unexpectedly|Container killed|exit code \d+")

_MESSAGE_MAX_CHARACTERS = 400


@contextmanager
def translated(manifest_id: str) -> Iterator[None]:
    """Translate errors of Spark and its storage into the compactor's own, without quoting any data.

    Raises:
        EngineLost: The JVM died.
        AccessError: Permission denied, wrong credentials, or a bucket that does not exist.
        StoreUnavailable: The store throttled, timed out or answered 5xx, or a disk was full.
        EngineFailed: Any other error of Spark.
    """
    with summarised():
        try:
            with loss_reported():
                yield
        except (PySparkException, Py4JError) as exc:
            text = str(exc)
            for pattern, error in ((_DENIED, AccessError), (_PASSING, StoreUnavailable)):
                if found := pattern.search(text):
                    raise error(
                        f"manifest {manifest_id}: Spark got {found[0]}{_storage_message(text, pattern)}"
                    ) from exc
            raise


@contextmanager
def summarised() -> Iterator[None]:
    """Translate Spark errors to `EngineFailed`, without quoting any data."""
    try:
        yield
    except (PySparkException, Py4JError) as exc:
        raise EngineFailed(summary(exc)) from exc


def summary(error: Exception) -> str:
    """Summarise a Spark error: exception classes, conditions, and messages from the compactor's own tasks."""
    text = str(error)
    if type(error) is AnalysisException:  # raised before any data is read
        return f"AnalysisException: {text.partition(chr(10))[0]}"[:_MESSAGE_MAX_CHARACTERS]
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    found = [condition, *_CLASSES.findall(text), *_DEATHS.findall(text), *_TASK_MESSAGES.findall(text)]
    kinds = ", ".join(dict.fromkeys(filter(None, found)))
    return f"{type(error).__name__}: {kinds}".removesuffix(": ")[:_MESSAGE_MAX_CHARACTERS]


def _storage_message(text: str, pattern: re.Pattern[str]) -> str:
    said = next((line for line in _STORAGE_MESSAGES.findall(text) if pattern.search(line)), "")
    return f": {said}"[:_MESSAGE_MAX_CHARACTERS] if said else ""
