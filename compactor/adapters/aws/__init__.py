"""Adapters to AWS and to servers with its protocols. Nothing else imports boto3 or botocore."""

from compactor.adapters.aws.clients import aws_client, cloudwatch_client, dynamodb_client, s3_client
from compactor.adapters.aws.cloudwatch_metrics import CloudWatchMetrics
from compactor.adapters.aws.dynamo_claims import DynamoClaims
from compactor.adapters.aws.errors import error_code, translated
from compactor.adapters.aws.glue_job import GlueJob
from compactor.adapters.aws.s3 import S3Store
from compactor.adapters.aws.sns_topic import SnsTopic
from compactor.adapters.aws.sqs_queue import SqsQueue

__all__ = [
    "CloudWatchMetrics",
    "DynamoClaims",
    "GlueJob",
    "S3Store",
    "SnsTopic",
    "SqsQueue",
    "aws_client",
    "cloudwatch_client",
    "dynamodb_client",
    "error_code",
    "s3_client",
    "translated",
]
