"""Tokens by which IAM lets a client of Kafka into a cluster of Amazon MSK."""

from compactor.core.extras import need

need("msk")

from aws_msk_iam_sasl_signer import MSKAuthTokenProvider  # noqa: E402 - what it needs is checked first
from boto3.session import Session  # noqa: E402
from botocore.credentials import CredentialProvider, Credentials  # noqa: E402

from compactor.adapters.aws.errors import translated  # noqa: E402
from compactor.core.errors import CredentialsMissing  # noqa: E402


class _Given(CredentialProvider):
    """Gives credentials that were found."""

    def __init__(self, found: Credentials) -> None:
        super().__init__()
        self._found = found

    def load(self) -> Credentials:
        return self._found


def token(region: str, session: Session | None = None) -> tuple[str, float]:
    """Make a token of the credentials that AWS finds.

    Args:
        region: That of the cluster.
        session: Has the credentials; by default those of the environment, the profile or the role.

    Returns:
        The token, and when it ends, in seconds since 1970.

    Raises:
        CredentialsMissing: There are none.
        CompactorError: They cannot be read or renewed.
    """
    with translated("credentials of MSK"):  # roles are assumed, and tokens of them renewed, when they are asked for
        found = (session or Session()).get_credentials()
        if found is None:
            raise CredentialsMissing("no AWS credentials: set AWS_PROFILE or run aws sso login")
        frozen = found.get_frozen_credentials()
        given = Credentials(str(frozen.access_key), str(frozen.secret_key), frozen.token)
        made, ends_at_ms = MSKAuthTokenProvider.generate_auth_token_from_credentials_provider(region, _Given(given))
    return made, ends_at_ms / 1000
