"""Adapters for AWS and for servers with its protocols. Nothing else imports boto3 or botocore."""

from compactor.core.extras import need

need("aws")
