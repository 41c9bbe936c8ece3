"""Translates trouble of Spark, once: it comes as the text of nested Java exceptions, which may quote the data."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

from py4j.protocol import Py4JError
from pyspark.errors import AnalysisException, PySparkException

from compactor.adapters.spark.executor_tasks import TaskFailed
from compactor.adapters.spark.session import loss_told
from compactor.core.errors import AccessError, EngineFailed, StoreUnavailable

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

_OF_STORAGE = re.compile(
    r"(?:^|: )((?:java\.(?:nio\.file|net|io)|org\.apache\.hadoop|software\.amazon\.awssdk)\.[\w.$]+: [^\n]*)",
    re.MULTILINE,
)
"""What the storage says itself: which object, and what the answer was."""

_KINDS = re.compile(
    r"(?:^|: )((?:java|scala|py4j|org\.apache|software\.amazon|com\.amazonaws|com\.fasterxml)[\w.$]*\."
    r"\w*(?:Exception|Error)(?:: \[[A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*\])?)(?=[:\s]|$)",
    re.MULTILINE,
)
"""Kinds of Java's exceptions, with Spark's condition where it names one."""

_TOLD = re.compile(rf"^{re.escape(TaskFailed.__module__)}\.{TaskFailed.__name__}: ([^\n]*)", re.MULTILINE)
_DEATHS = re.compile(r"ExecutorLostFailure|Python worker exited unexpectedly|Container killed|exit code \d+")

_MESSAGE_MAX_CHARACTERS = 400


@contextmanager
def translated(manifest_id: str) -> Iterator[None]:
    """Raise the compactor's own errors for trouble of the storage, and what else Spark says without its data.

    Args:
        manifest_id: What was being worked on.

    Raises:
        EngineLost: The JVM is gone.
        AccessError: Permission denied, credentials wrong, or a bucket that does not exist.
        StoreUnavailable: The store throttled, timed out or answered 5xx, or a disk was full.
        EngineFailed: Anything else that Spark raised.
    """
    with summarised():
        try:
            with loss_told():
                yield
        except (PySparkException, Py4JError) as exc:
            text = str(exc)
            for pattern, error in ((_DENIED, AccessError), (_PASSING, StoreUnavailable)):
                if found := pattern.search(text):
                    raise error(f"manifest {manifest_id}: Spark met {found[0]}{_said(text, pattern)}") from exc
            raise


@contextmanager
def summarised() -> Iterator[None]:
    """Raise `EngineFailed` for what Spark raises, in words that hold nothing of the data."""
    try:
        yield
    except (PySparkException, Py4JError) as exc:
        raise EngineFailed(summary(exc)) from exc


def summary(error: Exception) -> str:
    """What an error of Spark is about: its kinds and conditions, and what the compactor's own tasks said."""
    text = str(error)
    if type(error) is AnalysisException:  # raised before any data is read
        return f"AnalysisException: {text.partition(chr(10))[0]}"[:_MESSAGE_MAX_CHARACTERS]
    condition = error.getCondition() if isinstance(error, PySparkException) else None
    found = [condition, *_KINDS.findall(text), *_DEATHS.findall(text), *_TOLD.findall(text)]
    kinds = ", ".join(dict.fromkeys(filter(None, found)))
    return f"{type(error).__name__}: {kinds}".removesuffix(": ")[:_MESSAGE_MAX_CHARACTERS]


def _said(text: str, pattern: re.Pattern[str]) -> str:
    """The line of the storage that a pattern is in."""
    said = next((line for line in _OF_STORAGE.findall(text) if pattern.search(line)), "")
    return f": {said}"[:_MESSAGE_MAX_CHARACTERS] if said else ""
