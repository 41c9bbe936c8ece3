"""Promises of the translation of AWS's errors: what is the trouble of one object, and what is not."""

import pytest
from botocore import exceptions
from botocore.exceptions import ClientError

from compactor.adapters.aws.errors import own_error
from compactor.core.errors import (
    AccessError,
    CompactorError,
    CredentialsMissing,
    CredentialsRefused,
    ObjectNotFound,
    StoreUnavailable,
)

OF_ONE_OBJECT = {
    "AccessDenied": 403,
    "KMS.DisabledException": 400,
    "InvalidRequest": 400,  # an object that is encrypted with a key of its customer
    "RequestHeaderSectionTooLarge": 431,
    "431": 431,
    "AllAccessDisabled": 403,
}
OF_THE_CALLER = {"ExpiredToken": 400, "InvalidAccessKeyId": 403, "RequestTimeTooSkewed": 403, "InvalidToken": 400}


def answered(code: str, status: int) -> type[CompactorError]:
    response = {"Error": {"Code": code, "Message": "no"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    return type(own_error("s3://raw/a", ClientError(response, "GetObject")))  # type: ignore[arg-type,return-value]


@pytest.mark.parametrize(("code", "status"), OF_ONE_OBJECT.items())
def test_refusals_of_an_object(code: str, status: int) -> None:
    """Any 4xx that says nothing else is a refusal, which a file can be quarantined for."""
    assert answered(code, status) is AccessError


@pytest.mark.parametrize(("code", "status"), OF_THE_CALLER.items())
def test_refusals_of_the_caller(code: str, status: int) -> None:
    """No object can be to blame for them."""
    assert answered(code, status) is CredentialsRefused


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (exceptions.NoCredentialsError(), "no AWS credentials: set AWS_PROFILE or run aws sso login"),
        (
            exceptions.PartialCredentialsError(provider="env", cred_var="AWS_SECRET_ACCESS_KEY"),
            "incomplete AWS credentials: AWS_SECRET_ACCESS_KEY is not set",
        ),
        (
            exceptions.ProfileNotFound(profile="prod"),
            "no AWS profile prod: set AWS_PROFILE to one of `aws configure list-profiles`",
        ),
        (exceptions.UnauthorizedSSOTokenError(), "the AWS session is invalid: run aws sso login"),
        (
            exceptions.TokenRetrievalError(provider="sso", error_msg="expired"),
            "the AWS session is invalid: run aws sso login",
        ),
    ],
)
def test_a_caller_without_credentials(error: Exception, said: str) -> None:
    """The message says what helps a person, not what a library did not find."""
    found = own_error("s3://raw/a", error)
    assert (type(found), str(found)) == (CredentialsMissing, f"s3://raw/a: {said}")


def test_a_caller_without_a_region() -> None:
    """The message names the setting and the variable."""
    found = own_error("glue", exceptions.NoRegionError())
    assert str(found) == "glue: no AWS region: set aws.region, or AWS_REGION in the environment"


@pytest.mark.parametrize(
    ("code", "status", "error"),
    [("NoSuchKey", 404, ObjectNotFound), ("SlowDown", 503, StoreUnavailable), ("Odd", 502, StoreUnavailable)],
)
def test_other_answers(code: str, status: int, error: type[CompactorError]) -> None:
    """What is gone is gone, and what passes is tried again."""
    assert answered(code, status) is error
