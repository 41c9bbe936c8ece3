"""The store, call by call: what passes is got over, what stays is told, and nothing is ever left by half."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from compactor.adapters.aws.s3.store import S3Store
from compactor.core.errors import AccessError, StoreUnavailable
from tests.faults.fault_rules import FOR_AN_OPERATOR, PASSING, FaultKind, Operation, Rule, applies
from tests.faults.proxy import FaultProxy
from tests.faults.s3.cases import TIMEOUT_SECONDS, sample, shortened
from tests.faults.s3.store_actions import ACTIONS, BIG, CONTENTS, NAMES, TroubledStore, copy_big, list_names, upload_big
from tests.faults.s3_findings import Findings
from tests.faults.s3_lake import BUCKET
from tests.faults.s3_server import S3Server

OF_THE_STORE = [each for each in Operation if each is not Operation.LIST_UPLOADS]
SILENT = {FaultKind.SILENCE, FaultKind.DONE_SILENCE}
UNTOLD = {Operation.ABORT_UPLOAD}  # why the upload is aborted is told, and what is left, the bucket's rule clears up

STORE_CASES = [(kind, operation) for kind in PASSING for operation in OF_THE_STORE if applies(kind, operation)]
STAYING_CASES = [case for case in STORE_CASES if case[0] is not FaultKind.STALE_LISTING and case[1] not in UNTOLD]
FEW_PASSING = [
    (FaultKind.SLOW_DOWN, Operation.LIST_OBJECTS),
    (FaultKind.INTERNAL_ERROR, Operation.COPY_PART),
    (FaultKind.RESET, Operation.DELETE_OBJECT),
    (FaultKind.SILENCE, Operation.DELETE_OBJECTS),
    (FaultKind.ERROR_IN_OK, Operation.COPY_OBJECT),
    (FaultKind.DONE_ERROR, Operation.PUT_OBJECT),
    (FaultKind.DONE_RESET, Operation.ABORT_UPLOAD),
    (FaultKind.DONE_SILENCE, Operation.COPY_OBJECT),
    (FaultKind.DONE_CUT_HEAD, Operation.HEAD_OBJECT),
    (FaultKind.TRUNCATED_BODY, Operation.DELETE_OBJECTS),
    (FaultKind.SLOW_BODY, Operation.GET_OBJECT),
    (FaultKind.STALE_LISTING, Operation.LIST_OBJECTS),
]
FEW_STAYING = [
    (FaultKind.SLOW_DOWN, Operation.LIST_OBJECTS),
    (FaultKind.INTERNAL_ERROR, Operation.CREATE_UPLOAD),
    (FaultKind.RESET, Operation.HEAD_OBJECT),
    (FaultKind.SILENCE, Operation.DELETE_OBJECTS),
    (FaultKind.ERROR_IN_OK, Operation.COMPLETE_UPLOAD),
    (FaultKind.DONE_ERROR, Operation.CREATE_OBJECT),
    (FaultKind.DONE_CUT_HEAD, Operation.DELETE_OBJECTS),
    (FaultKind.TRUNCATED_BODY, Operation.GET_OBJECT),
    (FaultKind.SLOW_BODY, Operation.GET_OBJECT),
]
"""Each kind once, on calls that few others come before: silence is waited for."""

OPERATOR_CASES = [(kind, operation) for kind in sorted(FOR_AN_OPERATOR) for operation in OF_THE_STORE]


@pytest.fixture
def new_store(server: S3Server, proxy: FaultProxy, tmp_path: Path) -> Callable[..., TroubledStore]:
    """Makes stores for a client that sends a request so many times at most, and waits so long for each answer."""
    path = tmp_path / "big"
    path.write_bytes(BIG)
    count = 0

    def make(attempts: int, patience_seconds: float = TIMEOUT_SECONDS) -> TroubledStore:
        nonlocal count
        count += 1
        root = f"s3://{BUCKET}/{tmp_path.name}-{count}/"
        client = server.client(proxy.url, attempts=attempts, timeout_seconds=patience_seconds)
        # So that a few names take more than one page.
        client.meta.events.register(
            "before-parameter-build.s3.ListObjectsV2", lambda params, **_: params.update(MaxKeys=3)
        )
        made = TroubledStore(S3Store(client, sleep=lambda _: None), S3Store(server.client()), root, path)
        made.direct.put(root + "here", b"here")
        return made

    return make


def furnish(made: TroubledStore, action: Callable[[TroubledStore], None]) -> None:
    """Put there what an action needs."""
    if action is list_names:
        for name in NAMES:
            made.direct.put(f"{made.root}names/{name}", b"")
    if action is copy_big:
        made.direct.put(made.root + "big", BIG)


TRIES_WHEN_BUSY = 3


@pytest.mark.parametrize(("kind", "operation"), shortened(STORE_CASES, FEW_PASSING))
def test_a_fault_that_passes_is_got_over(
    kind: FaultKind,
    operation: Operation,
    new_store: Callable[..., TroubledStore],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """At the first, the second, ... call: the client's repeats hide it, and the method does what it says."""
    for action in ACTIONS[operation]:
        for number in range(1, 50):
            made = new_store(3)
            furnish(made, action)
            proxy.use([Rule(kind, frozenset({operation}), calls=frozenset({number}))])
            proxy.restart_count()
            action(made)
            traffic = proxy.restart_count()
            if traffic.calls[operation] < number:
                break
            findings.add("store", kind, {operation}, injected=traffic.injected.total())


@pytest.mark.parametrize(("kind", "operation"), shortened(STAYING_CASES, FEW_STAYING))
def test_a_fault_that_stays_is_told(
    kind: FaultKind,
    operation: Operation,
    new_store: Callable[..., TroubledStore],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """From some call on: the method does what it says or raises, and never leaves or returns half of anything."""
    # Each answer is waited for in vain, so half the patience does: an earlier call that runs out of it is told, too.
    patience_seconds = TIMEOUT_SECONDS / 2 if kind in SILENT else TIMEOUT_SECONDS
    for action in ACTIONS[operation]:
        for attempts in (1, 3):
            injected, tries = 0, 0
            # On a machine that is busy with other things, an earlier call of the action may time out by itself.
            while not injected and tries < TRIES_WHEN_BUSY:
                tries += 1
                made = new_store(attempts, patience_seconds)
                furnish(made, action)
                proxy.use([Rule(kind, frozenset({operation}), probability=1.0)])
                proxy.restart_count()
                if kind is FaultKind.SLOW_BODY:
                    action(made)
                else:
                    with pytest.raises(StoreUnavailable, match=f"s3://{BUCKET}/"):
                        action(made)
                injected = proxy.restart_count().injected.total()
            assert injected
            findings.add("store", kind, {operation}, injected=injected)
            for name, allowed in CONTENTS.items():
                assert made.bytes_at(name) in allowed


@pytest.mark.parametrize(("kind", "operation"), shortened(OPERATOR_CASES, sample(OPERATOR_CASES, 3)))
def test_what_an_operator_must_fix_is_told_as_such(
    kind: FaultKind,
    operation: Operation,
    new_store: Callable[..., TroubledStore],
    proxy: FaultProxy,
    findings: Findings,
) -> None:
    """Permission denied, or a bucket that is gone, is never taken for passing trouble, nor for a missing object."""
    for action in ACTIONS[operation]:
        made = new_store(3)
        furnish(made, action)
        proxy.use([Rule(kind, probability=1.0)])
        with pytest.raises(AccessError):
            action(made)
        injected = proxy.restart_count().injected
        findings.add("store", kind, {operation}, injected=injected.total())


def test_an_upload_that_was_cleared_away_is_passing_trouble(new_store: Callable[..., TroubledStore]) -> None:
    """Where a clean-up of unfinished uploads met a living one, another upload will do: no operator is needed."""
    made = new_store(1)

    def clear_away(params: dict[str, Any], **_: Any) -> None:
        made.direct.client.abort_multipart_upload(**{name: params[name] for name in ("Bucket", "Key", "UploadId")})

    events = made.spoiled.client.meta.events
    events.register_first("provide-client-params.s3.CompleteMultipartUpload", clear_away, unique_id="cleared")
    # The answer of S3 and of versitygw; moto knows of none, and says 500.
    with pytest.raises(StoreUnavailable, match=r"NoSuchUpload|failed with 500"):
        upload_big(made)
    events.unregister("provide-client-params.s3.CompleteMultipartUpload", unique_id="cleared")
    upload_big(made)
