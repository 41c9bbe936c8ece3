"""The IAM actions that each AWS call of the code needs, and the use of a key that follows from them."""

from collections.abc import Iterable

ACTIONS = {
    "abort_multipart_upload": ("s3:AbortMultipartUpload",),
    "complete_multipart_upload": ("s3:PutObject",),
    "copy": ("s3:GetObject", "s3:PutObject", "s3:AbortMultipartUpload"),
    "create_multipart_upload": ("s3:PutObject",),
    "delete_object": ("s3:DeleteObject",),
    "delete_objects": ("s3:DeleteObject",),
    "get_object": ("s3:GetObject",),
    "head_bucket": ("s3:ListBucket",),
    "head_object": ("s3:GetObject",),
    "list_objects_v2": ("s3:ListBucket",),
    "put_object": ("s3:PutObject",),
    "upload_part": ("s3:PutObject",),
    "upload_file": ("s3:PutObject", "s3:AbortMultipartUpload"),
    "batch_get_item": ("dynamodb:BatchGetItem",),
    "put_item": ("dynamodb:PutItem",),
    "get_queue_attributes": ("sqs:GetQueueAttributes",),
    "batch_stop_job_run": ("glue:BatchStopJobRun",),
    "get_job": ("glue:GetJob",),
    "get_job_runs": ("glue:GetJobRuns",),
    "start_job_run": ("glue:StartJobRun",),
    "get_metric_data": ("cloudwatch:GetMetricData",),
    "put_metric_data": ("cloudwatch:PutMetricData",),
    "publish": ("sns:Publish",),
}
"""The actions that each client call needs. Add new calls here, and allow them in the roles that make them."""

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
    # The redrive receives from one queue and sends to the other one with the rights of whoever starts it.
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
