"""Translates errors of pyiceberg, its HTTP client and its database into the compactor's own."""

from collections.abc import Iterator
from contextlib import contextmanager

import requests
from pyiceberg import exceptions
from sqlalchemy.exc import SQLAlchemyError

from compactor.core.errors import (
    AccessError,
    CompactorError,
    CredentialsRefused,
    OperatorError,
    StoreUnavailable,
    TableCommitUnknown,
    TableConflict,
    TableRefused,
)
from compactor.core.text.safe_text import visible

_MAX_CHARACTERS = 200  # of the catalog's message

_NOT_VALID = (exceptions.UnauthorizedError, exceptions.AuthorizationExpiredError, exceptions.OAuthError)
_CHANGED_BY_ANOTHER = (
    exceptions.CommitFailedException,
    exceptions.NoSuchTableError,
    exceptions.NoSuchNamespaceError,
)
_SET_UP_WRONG = {
    requests.TooManyRedirects: "the address that responds directly",
    requests.exceptions.InvalidURL: "the address of a catalog",
    requests.exceptions.InvalidSchema: "an address that starts with http:// or https://",
}
_MAY_PASS = frozenset({408, 425, 429})
"""Refusals that mean "not now"."""

_CONFLICT, _NOT_FOUND = 409, 404


class FileGone(StoreUnavailable):
    """A file named in the table's metadata is missing: lost, or no longer named.

    Attributes:
        said: The store's message, with the full name.
    """

    def __init__(self, where: str, said: str) -> None:
        super().__init__(f"{where}: a file in its metadata is missing: {said}")
        self.said = said


@contextmanager
def reading(where: str) -> Iterator[None]:
    """Translate errors while nothing is changed: reading the catalog and its store, or preparing files.

    Raises:
        StoreUnavailable: They do not respond, or respond "not now".
        FileGone: A file is missing.
        AccessError: They deny access.
        OperatorError: Their response is not understood.
    """
    try:
        yield
    except (CompactorError, exceptions.NoSuchTableError):
        raise
    except Exception as error:
        raise _of_reading(error, where) from error


@contextmanager
def preparing(where: str) -> Iterator[None]:
    """As `reading`, for the files of one change.

    Raises:
        TableRefused: The change or the table has a fault; the next change will show which.
    """
    try:
        with reading(where):
            yield
    except OperatorError as error:
        raise _of_one_change(error) from error


def refused_or_unknown(error: Exception, where: str) -> CompactorError:
    """The error for a failed commit. Unless it is a known refusal, the table may have changed."""
    status = _status(error)
    if isinstance(error, _CHANGED_BY_ANOTHER) or status in {_CONFLICT, _NOT_FOUND}:
        return TableConflict(f"{where}: the table has changed since it was read ({_said(error)})")
    if status is not None and _is_refused(status):
        return _of_one_change(_refusal(error, where, status))
    if isinstance(error, exceptions.ValidationException | NotImplementedError):
        return TableRefused(f"{where}: refuses the change: {_said(error)} -> expected a catalog that accepts it")
    return TableCommitUnknown(f"{where}: no response that shows whether the change is in the table: {_said(error)}")


def _of_reading(error: Exception, where: str) -> CompactorError:
    status = _status(error)
    for kind, expected in _SET_UP_WRONG.items():
        if isinstance(error, kind):
            return OperatorError(f"{where}: {_said(error)} -> expected {expected}")
    if isinstance(error, FileNotFoundError):
        return FileGone(where, _whole(error))
    if isinstance(error, PermissionError):
        return AccessError(f"{where}: permission denied: {_said(error)}")
    if status is not None and _is_refused(status):
        return _refusal(error, where, status)
    if status is not None or isinstance(error, requests.RequestException | SQLAlchemyError | OSError):
        return StoreUnavailable(f"{where}: does not respond: {_said(error)}")
    return OperatorError(f"{where}: cannot be used: {_said(error)} -> expected an Iceberg catalog")


def _of_one_change(error: OperatorError) -> OperatorError:
    """Convert an error to one that concerns only this change, unless every change would get it."""
    return TableRefused(str(error)) if type(error) is OperatorError else error


def _is_refused(status: int) -> bool:
    # guard: an ambiguous answer is not a refusal
    return 400 <= status < 500 and status not in _MAY_PASS  # noqa: PLR2004 - the client errors of HTTP


def _refusal(error: Exception, where: str, status: int) -> OperatorError:
    if isinstance(error, _NOT_VALID):
        return CredentialsRefused(f"{where}: refuses the credentials ({status}): {_said(error)}")
    if isinstance(error, exceptions.ForbiddenError):
        return AccessError(f"{where}: permission denied ({status}): {_said(error)}")
    return OperatorError(f"{where}: refuses the request ({status}): {_said(error)} -> expected it to be accepted")


def _status(error: Exception) -> int | None:
    """The HTTP status behind a pyiceberg error."""
    cause = error if isinstance(error, requests.HTTPError) else error.__cause__
    if isinstance(cause, requests.HTTPError) and cause.response is not None:
        return int(cause.response.status_code)
    return None


def _whole(error: Exception) -> str:
    return visible(" ".join(str(error).split()) or type(error).__name__)


def _said(error: Exception) -> str:
    text = _whole(error)
    return text if len(text) <= _MAX_CHARACTERS else text[: _MAX_CHARACTERS - 3] + "..."
