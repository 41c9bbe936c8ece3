"""Adapters to AWS and to servers with its protocols. Nothing else imports boto3 or botocore."""

from compactor.core.extras import need

need("aws")
