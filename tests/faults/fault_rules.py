"""What goes wrong with which calls to S3: rules as values, and decisions that depend on a seed and a count alone."""

import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import parse_qs, unquote


class Operation(StrEnum):
    """The calls of S3's API that the compactor and S3A make; a put that may only create is a kind of its own."""

    HEAD_OBJECT = "HeadObject"
    GET_OBJECT = "GetObject"
    LIST_OBJECTS = "ListObjectsV2"
    PUT_OBJECT = "PutObject"
    CREATE_OBJECT = "PutObject If-None-Match"
    COPY_OBJECT = "CopyObject"
    DELETE_OBJECT = "DeleteObject"
    DELETE_OBJECTS = "DeleteObjects"
    CREATE_UPLOAD = "CreateMultipartUpload"
    UPLOAD_PART = "UploadPart"
    COPY_PART = "UploadPartCopy"
    COMPLETE_UPLOAD = "CompleteMultipartUpload"
    ABORT_UPLOAD = "AbortMultipartUpload"
    LIST_UPLOADS = "ListMultipartUploads"
    BUCKET = "calls about a bucket"


class FaultKind(StrEnum):
    """How a call goes wrong. What begins with `done_` is carried out, but the caller does not learn of it."""

    SLOW_DOWN = "slow_down"
    INTERNAL_ERROR = "internal_error"
    RESET = "reset"
    SILENCE = "silence"
    TRUNCATED_BODY = "truncated_body"
    SLOW_BODY = "slow_body"
    STALE_LISTING = "stale_listing"
    ERROR_IN_OK = "error_in_ok"
    DONE_RESET = "done_reset"
    DONE_ERROR = "done_error"
    DONE_SILENCE = "done_silence"
    DONE_CUT_HEAD = "done_cut_head"
    ACCESS_DENIED = "access_denied"
    NO_SUCH_BUCKET = "no_such_bucket"
    UNKNOWN_KEY = "unknown_key"
    KILLED_WORKER = "killed_worker"


LOST_ANSWERS = frozenset({FaultKind.DONE_RESET, FaultKind.DONE_ERROR, FaultKind.DONE_SILENCE, FaultKind.DONE_CUT_HEAD})
"""The outcome is unknown to the caller."""

FOR_AN_OPERATOR = frozenset({FaultKind.ACCESS_DENIED, FaultKind.NO_SUCH_BUCKET})
"""Repeating does not help."""

OF_ITS_OBJECT = frozenset({FaultKind.UNKNOWN_KEY, FaultKind.KILLED_WORKER})
"""The object is to blame: it is encrypted with a key of its producer, or whichever worker reads it dies."""

PASSING = tuple(kind for kind in FaultKind if kind not in FOR_AN_OPERATOR | OF_ITS_OBJECT)
"""What a job has to get over by itself."""

_WITH_BODY = frozenset(
    {
        Operation.GET_OBJECT,
        Operation.LIST_OBJECTS,
        Operation.COPY_OBJECT,
        Operation.DELETE_OBJECTS,
        Operation.CREATE_UPLOAD,
        Operation.COPY_PART,
        Operation.COMPLETE_UPLOAD,
    }
)
_APPLIES_TO = {
    FaultKind.TRUNCATED_BODY: _WITH_BODY,
    FaultKind.SLOW_BODY: _WITH_BODY,
    FaultKind.STALE_LISTING: frozenset({Operation.LIST_OBJECTS}),
    # S3 begins to answer these before it knows how they end [S3 API, CopyObject].
    FaultKind.ERROR_IN_OK: frozenset({Operation.COPY_OBJECT, Operation.COPY_PART, Operation.COMPLETE_UPLOAD}),
}


@dataclass(frozen=True, slots=True)
class Call:
    """One request.

    Attributes:
        place: Bucket and key, as `bucket/key`; of a listing, bucket and prefix.
    """

    operation: Operation
    place: str


@dataclass(frozen=True, slots=True)
class Rule:
    """Which calls a fault befalls.

    Attributes:
        kind: What goes wrong.
        operations: Which calls; empty means every kind.
        pattern: A regular expression that is searched in `bucket/key`.
        probability: Of each matching call.
        calls: Numbers of matching calls, from 1, that it befalls for certain.
        burst: How many matching calls in a row it befalls, once it does.
    """

    kind: FaultKind
    operations: frozenset[Operation] = frozenset()
    pattern: str = ""
    probability: float = 0.0
    calls: frozenset[int] = frozenset()
    burst: int = 1

    def matches(self, call: Call) -> bool:
        """Whether the rule is about such a call."""
        return (
            applies(self.kind, call.operation)
            and (not self.operations or call.operation in self.operations)
            and re.search(self.pattern, call.place) is not None
        )

    def strikes(self, number: int, seed: str) -> bool:
        """Whether the fault befalls this matching call.

        Args:
            number: Of the call among those that match, from 1.
            seed: The same one gives the same answer.
        """
        return any(self._begins(each, seed) for each in range(max(1, number - self.burst + 1), number + 1))

    def _begins(self, number: int, seed: str) -> bool:
        if number in self.calls:
            return True
        return self.probability > 0 and random.Random(f"{seed}:{number}").random() < self.probability


def applies(kind: FaultKind, operation: Operation) -> bool:
    """Whether such a fault can befall such a call: an answer without a body cannot be cut, for one."""
    return operation in _APPLIES_TO.get(kind, Operation)


class FaultPlan:
    """Decides call by call; the first rule that strikes wins. Not safe between threads.

    Args:
        rules: In their order.
        seed: Two plans of the same rules and seed decide alike about the same calls.
    """

    def __init__(self, rules: Sequence[Rule] = (), seed: int = 0) -> None:
        self._rules = tuple(rules)
        self._seed = seed
        self._matched = [0] * len(self._rules)

    def fault_for(self, call: Call) -> FaultKind | None:
        """What befalls the next call, if anything. Every rule counts every call that it is about."""
        struck: FaultKind | None = None
        for index, rule in enumerate(self._rules):
            if rule.matches(call):
                self._matched[index] += 1
                if struck is None and rule.strikes(self._matched[index], f"{self._seed}:{index}"):
                    struck = rule.kind
        return struck


def call_of(method: str, target: str, *, copies: bool, creates: bool) -> Call:
    """What a path-style request asks for.

    Args:
        method: Of HTTP.
        target: Path and query, as sent.
        copies: Whether it names a source to copy from.
        creates: Whether it may only create.
    """
    path, _, query = target.partition("?")
    words = parse_qs(query, keep_blank_values=True)
    bucket, _, key = path.lstrip("/").partition("/")
    if not key:
        operation = _about_bucket(method, words)
        return Call(operation, f"{bucket}/{words.get('prefix', [''])[0]}")
    return Call(_about_object(method, words, copies=copies, creates=creates), f"{bucket}/{unquote(key)}")


def _about_bucket(method: str, words: dict[str, list[str]]) -> Operation:
    if method == "GET" and "list-type" in words:
        return Operation.LIST_OBJECTS
    if method == "GET" and "uploads" in words:
        return Operation.LIST_UPLOADS
    if method == "POST" and "delete" in words:
        return Operation.DELETE_OBJECTS
    return Operation.BUCKET


def _about_object(method: str, words: dict[str, list[str]], *, copies: bool, creates: bool) -> Operation:
    if "uploadId" in words:
        of_upload = {"POST": Operation.COMPLETE_UPLOAD, "DELETE": Operation.ABORT_UPLOAD, "GET": Operation.LIST_UPLOADS}
        return of_upload.get(method, Operation.COPY_PART if copies else Operation.UPLOAD_PART)
    if method == "POST":
        return Operation.CREATE_UPLOAD
    if method == "PUT" and copies:
        return Operation.COPY_OBJECT
    if method == "PUT" and creates:
        return Operation.CREATE_OBJECT
    simple = {"GET": Operation.GET_OBJECT, "HEAD": Operation.HEAD_OBJECT, "DELETE": Operation.DELETE_OBJECT}
    return simple.get(method, Operation.PUT_OBJECT)
