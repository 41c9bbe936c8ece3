"""Signatures of requests: those of botocore, for any path and header."""

from datetime import UTC, datetime
from urllib.parse import quote

import botocore.auth
import pytest
from botocore.awsrequest import AWSRequest
from botocore.credentials import ReadOnlyCredentials
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from compactor.adapters.aws.s3.direct_reads import Scope, signed_headers

HOST = "bucket.s3.eu-west-1.amazonaws.com"
_TEXTS = st.text("a b\t", min_size=1, max_size=9) | st.text('ab cd"/+=*~%.-_', min_size=1, max_size=20)
WORDS = _TEXTS.map(str.strip).filter(bool)
HEADERS = st.dictionaries(
    st.sampled_from(["range", "if-match", "x-amz-checksum-mode", "user-agent", "x-amz-request-payer", "accept"]), WORDS
)
SCOPES = st.builds(Scope, st.sampled_from(["eu-west-1", "us-gov-east-1"]), st.sampled_from(["s3", "s3-outposts"]))
CREDENTIALS = st.builds(ReadOnlyCredentials, WORDS, WORDS, st.one_of(st.none(), st.just(""), WORDS), st.none())


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    key=st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=30),
    headers=HEADERS,
    scope=SCOPES,
    credentials=CREDENTIALS,
    now=st.datetimes(timezones=st.just(UTC)),
)
def test_a_signature_is_that_of_botocore(
    monkeypatch: pytest.MonkeyPatch,
    key: str,
    headers: dict[str, str],
    scope: Scope,
    credentials: ReadOnlyCredentials,
    now: datetime,
) -> None:
    """The same headers come out, with the same values, for any caller, time and object."""
    monkeypatch.setattr(botocore.auth, "get_current_datetime", lambda: now)
    path = f"/{quote(key)}"
    request = AWSRequest("GET", f"https://{HOST}{path}", {**headers, "host": HOST})
    botocore.auth.S3SigV4Auth(credentials, scope.service, scope.region).add_auth(request)
    expected = {name.lower(): value for name, value in request.headers.items()}
    assert signed_headers(path, {**headers, "host": HOST}, credentials, scope, now) == expected
