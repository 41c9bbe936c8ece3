"""What actions need of a customer's key."""

from collections.abc import Iterable

_READS_KEY = ("kms:Decrypt",)
_WRITES_KEY = ("kms:Decrypt", "kms:GenerateDataKey")
_KEY_USE = {
    # "To perform a multipart upload with encryption using an KMS key, the requester must have permission to the
    # kms:Decrypt and kms:GenerateDataKey actions on the key" [S3 API, CreateMultipartUpload]
    "s3:PutObject": _WRITES_KEY,
    "s3:GetObject": _READS_KEY,
    # "the producer must have the kms:GenerateDataKey and kms:Decrypt permissions", the consumer kms:Decrypt [SQS
    # developer guide, sqs-key-management]
    "sqs:SendMessage": _WRITES_KEY,
    "sqs:ReceiveMessage": _READS_KEY,
    # The redrive receives from one queue and sends to the other one with the rights of the operator.
    "sqs:StartMessageMoveTask": _WRITES_KEY,
    "sns:Publish": _WRITES_KEY,
    # "When you access an encrypted table, DynamoDB needs to decrypt the table key" [DynamoDB developer guide,
    # encryption.usagenotes]
    "dynamodb:PutItem": _READS_KEY,
    "dynamodb:BatchGetItem": _READS_KEY,
}
"""What an action needs of a customer's key. The other actions use none."""


def key_actions(actions: Iterable[str]) -> tuple[str, ...]:
    """The actions on a customer's key that a principal with these actions needs, in order."""
    return tuple(sorted({needed for action in actions for needed in _KEY_USE.get(action, ())}))
