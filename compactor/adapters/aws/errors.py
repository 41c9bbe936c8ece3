"""Translates AWS errors into the compactor's own."""

import random
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from boto3.exceptions import Boto3Error
from botocore import exceptions
from botocore.exceptions import BotoCoreError, ClientError
from urllib3.exceptions import HTTPError

from compactor.core.errors import (
    AccessError,
    CompactorError,
    CredentialsMissing,
    CredentialsRefused,
    ObjectChanged,
    ObjectNotFound,
    StoreUnavailable,
)
from compactor.core.rules.backoff import pause_seconds

_NOT_FOUND = {"NoSuchKey", "NoSuchVersion", "NotFound", "404", "KeyTooLongError", "MethodNotAllowed"}
_ARCHIVED = {"InvalidObjectState"}  # in Glacier: answered with 403, although it concerns only this object
_CHANGED = {"PreconditionFailed", "412"}
_PASSING = {
    "SlowDown",
    "InternalError",
    "ServiceUnavailable",
    "RequestTimeout",
    "RequestTimeoutException",
    "OperationAborted",
    "NoSuchUpload",  # completed by a request whose response was lost, or cleaned up: a new upload helps
    "ConditionalRequestConflict",
    "BadDigest",
    "Throttling",
    "ThrottlingException",
    "ThrottledException",
    "RequestLimitExceeded",
    "RequestThrottled",
    "RequestThrottledException",
    "TooManyRequestsException",
    "BandwidthLimitExceeded",
    "ProvisionedThroughputExceededException",
    "LimitExceededException",
    "TransactionInProgressException",
    "TransactionConflictException",
    "PriorRequestNotComplete",
    "EC2ThrottledException",
    "OperationTimeoutException",
    "InternalServiceException",
    "InternalFailureException",
    "KMSThrottlingException",
}
_NOT_VALID = {
    "ExpiredToken",
    "ExpiredTokenException",
    "InvalidAccessKeyId",
    "InvalidClientTokenId",
    "InvalidToken",
    "RequestTimeTooSkewed",
    "TokenRefreshRequired",
    "UnrecognizedClientException",
}
"""Refusals because of the caller's credentials or clock."""

_NO_CREDENTIALS: tuple[tuple[type[BotoCoreError], str], ...] = (
    (exceptions.PartialCredentialsError, "incomplete AWS credentials: {} is not set"),
    (exceptions.NoCredentialsError, "no AWS credentials: set AWS_PROFILE or run aws sso login"),
    (exceptions.ProfileNotFound, "no AWS profile {}: set AWS_PROFILE to one of `aws configure list-profiles`"),
    (exceptions.SSOError, "the AWS session is invalid: run aws sso login"),
    (exceptions.TokenRetrievalError, "the AWS session is invalid: run aws sso login"),
)
"""Client errors without a response from AWS. The braces stand for the error's `cred_var` or `profile`."""

_SET_UP_WRONG = (
    exceptions.ConfigNotFound,
    exceptions.ConfigParseError,
    exceptions.InvalidRegionError,
    exceptions.ParamValidationError,
)


def pause_before_try(failures: int, *, first_seconds: float = 0.2, longest_seconds: float = 5.0) -> float:
    """The pause before a retry that the client does not make itself, given the number of failures, from 1."""
    chance = random.random()  # noqa: S311 - only spreads pauses
    return pause_seconds(failures, first_seconds=first_seconds, longest_seconds=longest_seconds, chance=chance)


def error_code(exc: ClientError) -> str:
    """An error's code, such as `NoSuchKey`; the HTTP status if there is none."""
    return str(exc.response.get("Error", {}).get("Code", ""))


def answered_code(error: CompactorError) -> str:
    """The AWS code behind a translated error; empty if there was no response."""
    return error_code(error.__cause__) if isinstance(error.__cause__, ClientError) else ""


def error_for(code: str, message: str, status: int) -> CompactorError:
    """The compactor's error for an AWS code and an HTTP status, which is 0 if unknown."""
    if code in _NOT_FOUND or code in _ARCHIVED:
        return ObjectNotFound(message)
    if code in _CHANGED:
        return ObjectChanged(message)
    if code in _PASSING or status >= 500 or status == 429:  # noqa: PLR2004 - HTTP's own numbers
        return StoreUnavailable(message)
    return CredentialsRefused(message) if code in _NOT_VALID else AccessError(message)


@contextmanager
def translated(place: str) -> Iterator[None]:
    """Translate AWS and network errors that concern a URI, table or service."""
    try:
        yield
    except (ClientError, BotoCoreError, Boto3Error, HTTPError) as exc:
        raise own_error(place, exc) from exc


def translated_pages(place: str, pages: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The pages of a boto3 paginator, with its requests' errors translated."""
    with translated(place):
        yield from pages


def own_error(place: str, error: Exception) -> Exception:
    """The compactor's error for an AWS or network error; any other error unchanged."""
    if isinstance(error, ClientError):
        code = error_code(error)
        detail = error.response.get("Error", {}).get("Message", "")
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        return error_for(code, f"{place}: {error.operation_name} failed with {code}: {detail}", status)
    for kind, said in _NO_CREDENTIALS:
        if isinstance(error, kind):
            named = error.kwargs.get("cred_var", error.kwargs.get("profile", ""))
            return CredentialsMissing(f"{place}: {said.format(named)}")
    if isinstance(error, exceptions.NoRegionError):
        return AccessError(f"{place}: no AWS region: set aws.region, or AWS_REGION in the environment")
    if isinstance(error, _SET_UP_WRONG):
        return AccessError(f"{place}: {error}")
    if isinstance(error, BotoCoreError | Boto3Error | HTTPError):
        return StoreUnavailable(f"{place}: {error}")
    return error
