"""The ports carried out by AWS, or by a server that speaks its protocols. Nothing else imports boto3 or botocore."""

from compactor.adapters.aws.clients import cloudwatch_client, dynamodb_client, s3_client
from compactor.adapters.aws.cloudwatch_metrics import CloudWatchMetrics
from compactor.adapters.aws.dynamo_claims import DynamoClaims
from compactor.adapters.aws.errors import error_code, translated
from compactor.adapters.aws.s3 import S3Store

__all__ = [
    "CloudWatchMetrics",
    "DynamoClaims",
    "S3Store",
    "cloudwatch_client",
    "dynamodb_client",
    "error_code",
    "s3_client",
    "translated",
]
