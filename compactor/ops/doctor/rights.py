"""Tries on each place what the compactor does there: lists, writes, writes only where there is nothing, deletes."""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from compactor.core.errors import CompactorError, StoreUnavailable
from compactor.core.layout import canonical, folder, is_s3, probe
from compactor.core.ports import ObjectStore
from compactor.ops.doctor.findings import Finding, fault, ok, warning

Right = Literal["list", "read", "write", "create", "delete"]

ALL: tuple[Right, ...] = ("list", "read", "write", "create", "delete")
ADD_ONLY: tuple[Right, ...] = ("list", "read", "write")
READ_ONLY: tuple[Right, ...] = ("list", "read")

_IN_WORDS: Mapping[Right, str] = {"create": "create-only write"}
_ACTIONS: Mapping[Right, str] = {
    "list": "s3:ListBucket",
    "read": "s3:GetObject",
    "write": "s3:PutObject",
    "create": "s3:PutObject",
    "delete": "s3:DeleteObject",
}
_NOT_EXCLUSIVE = "a second writer was let through: the server does not heed If-None-Match, which the ledger rests on"


@dataclass(slots=True)
class _Tried:
    """What was tried on a place.

    Attributes:
        allowed: What worked.
        refused: Why each of the others did not.
        left: Objects that were made and could not be deleted.
    """

    allowed: list[Right] = field(default_factory=list)
    refused: dict[Right, str] = field(default_factory=dict)
    left: list[str] = field(default_factory=list)

    def attempt(self, right: Right, act: Callable[[], str | None]) -> None:
        """Try one thing; passing trouble of the store goes through to the caller.

        Args:
            right: What is tried.
            act: Tries it; returns what is wrong with how it went, if anything.
        """
        try:
            wrong = act()
        except StoreUnavailable:
            raise
        except CompactorError as exc:
            wrong = reason(exc)
        if wrong:
            self.refused[right] = wrong
        else:
            self.allowed.append(right)


def try_own_place(
    store: ObjectStore, name: str, place: str, key: str, rights: tuple[Right, ...], token: str
) -> Finding:
    """Try a place that the compactor writes to, with objects that nobody takes for anything.

    Args:
        store: Where it is.
        name: Of the finding.
        place: What to try.
        key: The settings' key that names it.
        rights: What the compactor does there.
        token: Tells these objects from those of another try; nothing where one may be written over the other.

    Raises:
        StoreUnavailable: The store does not answer.
    """
    tried = _Tried()
    written, created = probe(place, f"put{token}"), probe(place, f"create{token}")
    tried.attempt("list", lambda: _listed(store, place))
    try:
        tried.attempt("write", partial(store.put, written, b"doctor"))
        if "write" in tried.allowed:
            tried.attempt("read", lambda: "" if store.read(written) == b"doctor" else "other bytes came back")
            if "create" in rights:
                tried.attempt("create", lambda: _created(store, created))
    finally:
        _delete(store, tried, [written, created] if "create" in rights else [written])
    return _finding(name, place, key, rights, tried)


def try_input(store: ObjectStore, name: str, place: str, key: str) -> Finding:
    """Try a place that is read only: list it, and read one byte of the first object there.

    Raises:
        StoreUnavailable: The store does not answer.
    """
    tried = _Tried()
    found: list[str] = []

    def list_first() -> str:
        listed = (info.uri for info in store.list(folder(place)) if not info.uri.endswith("/"))
        found.extend(uri for uri in [next(listed, None)] if uri is not None)
        return ""

    tried.attempt("list", list_first)
    if "list" in tried.allowed and not found:
        return warning(name, f"{place}: nothing is there", f"if there should be files, put {key} right")
    if found:
        tried.attempt("read", lambda: _done(store.read_range(found[0], 0, 1)))
    return _finding(name, place, key, READ_ONLY, tried)


def _done(_result: object) -> str:
    return ""


def _listed(store: ObjectStore, place: str) -> str:
    return _done(next(iter(store.list(folder(place))), None))


def _created(store: ObjectStore, uri: str) -> str:
    if not store.create(uri, b"first"):
        return "an object was found where none can be"
    return _NOT_EXCLUSIVE if store.create(uri, b"second") else ""


def _delete(store: ObjectStore, tried: _Tried, uris: list[str]) -> None:
    if "write" not in tried.allowed:
        with suppress(CompactorError):  # the answer to a write may be lost, and the object there
            store.delete(uris)
        return
    tried.attempt("delete", partial(store.delete, uris))
    if "delete" in tried.refused:
        tried.left = uris


def _finding(name: str, place: str, key: str, rights: tuple[Right, ...], tried: _Tried) -> Finding:
    refused = {right: tried.refused[right] for right in rights if right in tried.refused}
    untried = [right for right in rights if right not in tried.allowed and right not in refused]
    left = f"; left behind, and in nobody's way: {', '.join(tried.left)}" if tried.left else ""
    if not refused:
        return ok(name, f"{place}: may {_listing(rights)}{left}")
    because = "; ".join(dict.fromkeys(refused.values()))
    not_tried = f" (not tried: {_listing(untried)})" if untried else ""
    return fault(name, f"{place}: cannot {_listing(refused)}: {because}{not_tried}{left}", _mend(place, key, refused))


def _mend(place: str, key: str, refused: Mapping[Right, str]) -> str:
    if _NOT_EXCLUSIVE in refused.values():
        return "use a server that does, such as S3 itself: without it two runs may both commit"
    if not is_s3(place):
        return f"let this user do that there (chown, chmod, mount), or put {key} right"
    bucket, _, prefix = canonical(place).removeprefix("s3://").partition("/")
    actions = dict.fromkeys(_ACTIONS[right] for right in refused)
    on_objects = [action for action in actions if action != "s3:ListBucket"]
    grants = [f"s3:ListBucket on arn:aws:s3:::{bucket}"] if "s3:ListBucket" in actions else []
    if on_objects:
        grants.append(f"{', '.join(on_objects)} on arn:aws:s3:::{bucket}/{folder(prefix) if prefix else ''}*")
    return f"allow {' and '.join(grants)} (policies of role, bucket and KMS key), or put {key} right"


def reason(exc: CompactorError) -> str:
    """What went wrong, without the name of the object it was tried with."""
    text = " ".join(str(exc).split())
    return text.partition(": ")[2] or text


def _listing(rights: Iterable[Right]) -> str:
    return ", ".join(_IN_WORDS.get(right, right) for right in rights)
