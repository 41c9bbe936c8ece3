"""Tries what the compactor does in each place: list, read, write, create-only write, delete."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Literal

from compactor.core.errors import CompactorError, StoreUnavailable
from compactor.core.layout import canonical, folder, is_s3, probe
from compactor.core.ports import ObjectStore
from compactor.ops.doctor.findings import Finding, fault, ok, warning

Right = Literal["list", "read", "write", "create-only write", "delete"]

ALL: tuple[Right, ...] = ("list", "read", "write", "create-only write", "delete")
ADD_ONLY: tuple[Right, ...] = ("list", "read", "write")

_ACTIONS: Mapping[Right, str] = {
    "read": "s3:GetObject",
    "write": "s3:PutObject",
    "create-only write": "s3:PutObject",
    "delete": "s3:DeleteObject",
}
_NOT_EXCLUSIVE = "a second writer was let through: the server ignores If-None-Match, which the ledger depends on"

Trial = dict[Right, str]
"""The fault of each right that was tried; empty if it works."""


def _works(trial: Trial, right: Right, act: Callable[[], object]) -> bool:
    """Try one right; return whether it works. If `act` returns a text, the text is the fault.

    Raises:
        StoreUnavailable: The store does not respond, so nothing else need be tried.
    """
    try:
        answer = act()
        trial[right] = answer if isinstance(answer, str) else ""
    except StoreUnavailable:
        raise
    except CompactorError as exc:
        trial[right] = _reason(exc)
    return not trial[right]


def try_own_place(store: ObjectStore, place: str, key: str, rights: tuple[Right, ...], trial_id: str) -> Finding:
    """Try a place that the compactor writes to, with objects that readers ignore.

    Raises:
        StoreUnavailable: S3 does not respond.
    """
    if is_s3(place):
        return _tried(store, place, key, rights, trial_id)
    try:
        with _new_folders_removed(place):
            return _tried(store, place, key, rights, trial_id)
    except StoreUnavailable as exc:
        return fault(f"{place}: {_reason(exc)}", f"free space or fix that disk, or correct {key}")


def _tried(store: ObjectStore, place: str, key: str, rights: tuple[Right, ...], trial_id: str) -> Finding:
    trial = Trial()
    # An object that may not be deleted always has the same name, so that the place does not fill up.
    suffix = f"-{trial_id}" if "delete" in rights else ""
    written, created = probe(place, f"put{suffix}"), probe(place, f"create{suffix}")
    uris = [written, created] if "create-only write" in rights else [written]
    left: list[str] = []
    _works(trial, "list", lambda: next(iter(store.list(folder(place))), None))
    is_written = False
    try:
        is_written = _works(trial, "write", lambda: store.put(written, b"doctor"))
        if is_written:
            _works(trial, "read", lambda: "" if store.read(written) == b"doctor" else "different bytes came back")
            if "create-only write" in rights:
                _works(trial, "create-only write", lambda: _create(store, created))
    finally:
        if not is_written:
            with suppress(CompactorError):  # the response to a write may be lost although the object exists
                store.delete(uris)
        elif not _works(trial, "delete", lambda: store.delete(uris)):
            left = uris
    return _finding(place, key, rights, trial, left)


def try_input(store: ObjectStore, place: str, key: str) -> Finding:
    """Try a place that is only read: list it, and read one byte of the first object.

    Raises:
        StoreUnavailable: The store does not respond.
    """
    trial, found = Trial(), list[str]()

    def list_first() -> None:
        objects = (info.uri for info in store.list(folder(place)) if not info.uri.endswith("/"))
        found.extend(islice(objects, 1))

    if _works(trial, "list", list_first) and not found:
        return warning(f"{place} is empty", f"if it should have files, correct {key}")
    if found:
        _works(trial, "read", lambda: store.read_range(found[0], 0, 1))
    return _finding(place, key, ("list", "read"), trial)


def _finding(place: str, key: str, rights: tuple[Right, ...], trial: Trial, left: list[str] | None = None) -> Finding:
    """The finding on these rights; `left` are objects that could not be deleted."""
    also = f"; left behind, harmless: {', '.join(left)}" if left else ""
    refused = {right: trial[right] for right in rights if trial.get(right)}
    if not refused:
        return ok(f"{place}: can {', '.join(rights)}{also}")
    untried = [right for right in rights if right not in trial]
    not_tried = f" (not tried: {', '.join(untried)})" if untried else ""
    because = "; ".join(dict.fromkeys(refused.values()))
    return fault(f"{place}: cannot {', '.join(refused)}: {because}{not_tried}{also}", _next_move(place, key, refused))


def _create(store: ObjectStore, uri: str) -> str:
    if not store.create(uri, b"first"):
        return "found an object under a new name"
    return _NOT_EXCLUSIVE if store.create(uri, b"second") else ""


@contextmanager
def _new_folders_removed(path: str) -> Iterator[None]:
    """Remove the folders of a path that did not exist before, if they are still empty."""
    missing = [each for each in (Path(path), *Path(path).parents) if not each.exists()]
    try:
        yield
    finally:
        with suppress(OSError):  # it is no longer empty, so another process uses it
            for each in missing:
                each.rmdir()


def _next_move(place: str, key: str, refused: Mapping[Right, str]) -> str:
    if _NOT_EXCLUSIVE in refused.values():
        return "use a server that honours it, such as S3 itself: without it two runs may both commit"
    if not is_s3(place):
        return f"give this user that right there (chown, chmod, mount), or correct {key}"
    bucket, _, prefix = canonical(place).removeprefix("s3://").partition("/")
    arn = f"arn:aws:s3:::{bucket}"
    grants = [f"s3:ListBucket on {arn}"] if "list" in refused else []
    if actions := dict.fromkeys(_ACTIONS[right] for right in refused if right != "list"):
        grants.append(f"{', '.join(actions)} on {arn}/{folder(prefix) if prefix else ''}*")
    return f"allow {' and '.join(grants)} (policies of role, bucket and KMS key), or correct {key}"


def _reason(exc: CompactorError) -> str:
    """The error without the name of the test object."""
    text = " ".join(str(exc).split())
    return text.partition(": ")[2] or text
