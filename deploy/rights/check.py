"""What `compactor job smoke-test` takes: to send its file, to follow it, and to remove what became of it."""

from collections.abc import Iterator

from compactor.core.inputs.dates import EARLIEST_DATE
from compactor.ops.canary import FOLDER
from compactor.settings.settings import Settings
from deploy.resolved import Document
from deploy.rights.deployer import RESOURCES, TAGGED

_BUCKET = "arn:${AWS::Partition}:s3:::${%sBucketName}"
_WORK, _LAKE, _INPUT = (_BUCKET % name for name in ("Work", "Lake", "Input"))
_CLAIMS = "arn:${AWS::Partition}:dynamodb:${AWS::Region}:${AWS::AccountId}:table/${ClaimsTableName}"
_STATE = _WORK + "/${StatePrefix}"


def check_statements(settings: Settings, *, key: str, input_key: str) -> Iterator[Document]:
    """What the check takes, with the variables of the template.

    Its file has a date of its own, so that it may remove nothing but what has that date.

    Args:
        settings: Those of the deployment.
        key: The parameter KmsKey.
        input_key: The parameter InputKeyArn.
    """
    date = EARLIEST_DATE
    rows = f"{_LAKE}/${{OutputPrefix}}/{settings.output.folder.format(date=date)}/*"
    yield _statement(
        "SendFile", ("s3:DeleteObject", "s3:GetObject", "s3:PutObject"), f"{_INPUT}/${{InputPrefix}}{FOLDER}*"
    )
    yield _statement("List", ("s3:ListBucket",), _WORK, _LAKE, _INPUT)
    followed = (f"{_WORK}/${{{name}Prefix}}/*" for name in ("Manifests", "Pending", "State"))
    yield _statement("FollowFile", ("s3:GetObject",), *followed)
    yield _statement("ReadClaims", ("dynamodb:BatchGetItem",), _CLAIMS)
    yield _statement("RemoveRow", ("s3:DeleteObject", "s3:GetObject"), rows)
    records = (f"{_STATE}/{name}/{date}/*" for name in ("archive", "ledger", "unsummarised"))
    yield _statement(
        "RemoveRecords", ("s3:DeleteObject",), *records, f"{_STATE}/rejects/date={date}/*", f"{_STATE}/accepted/*"
    )
    use = ("kms:Decrypt", "kms:GenerateDataKey")
    if key == "new":
        yield {**_statement("UseKey", use, *RESOURCES["AWS::KMS::Key"]), "Condition": TAGGED}
    elif key:
        yield _statement("UseKey", use, key)
    if input_key:
        yield _statement("UseInputKey", use, input_key)


def _statement(sid: str, actions: tuple[str, ...], *resources: str) -> Document:
    return {"Sid": sid, "Effect": "Allow", "Action": list(actions), "Resource": list(resources)}
