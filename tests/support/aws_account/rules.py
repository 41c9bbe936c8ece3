"""What AWS refuses, or takes and does not do, each with the page and the sentence that say so."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of AWS.

    Attributes:
        page: Where it is written.
        sentence: What is written there, or the error message where no page says it.
        model: The service whose model in botocore has the sentence, word for word; empty if none has.
    """

    page: str
    sentence: str
    model: str = ""


class Refused(Exception):
    """AWS refuses a call.

    Attributes:
        rule: The name of the rule.
    """

    def __init__(self, rule: str, message: str) -> None:
        super().__init__(f"{message} [{rule}]")
        self.rule = rule
        if rule not in RULES:
            raise KeyError(rule)


_GLUE_ARGUMENTS = "Using job parameters in AWS Glue jobs"
_VIRTUAL_ENVIRONMENTS = "Using Python virtual environments with AWS Glue"

RULES = {
    # ------------------------------------------------------------------------------------------------- CloudFormation
    "name is taken": Rule(
        "CloudFormation CLI user guide, Resource type handler contract",
        "prevents creation of unintended or duplicate resources",
    ),
    "bucket is taken": Rule(
        "S3 API, CreateBucket, BucketAlreadyExists",
        "The requested bucket name is not available. The bucket namespace is shared by all users of the system.",
        "s3",
    ),
    "bucket is not empty": Rule(
        "S3 API, DeleteBucket",
        "All objects (including all object versions and delete markers) in the bucket must be deleted before the "
        "bucket itself can be deleted.",
        "s3",
    ),
    "replacement of a named resource": Rule(
        "CloudFormation template reference, Name type",
        "If you specify a name, you can't perform updates that require replacement of this resource.",
    ),
    "property": Rule(
        "CloudFormation CLI user guide, Resource type handler contract",
        "The input to a create handler MUST be valid against the resource schema.",
    ),
    "parameter": Rule(
        "CloudFormation template reference, Parameters",
        "A regular expression that represents the patterns to allow for String or CommaDelimitedList types.",
    ),
    "size of a parameter": Rule(
        "CloudFormation user guide, CloudFormation quotas, Parameter value: 4,096 bytes",
        "Maximum size of a parameter value.",
    ),
    "size of the template": Rule(
        "CloudFormation user guide, CloudFormation quotas, Template body size in an S3 object: 1 MB",
        "Maximum size of a template body that you can pass in an S3 object",
    ),
    "dependency": Rule(
        "CloudFormation template reference, DependsOn attribute", "Circular dependency between resources"
    ),
    "capability": Rule(
        "CloudFormation API, CreateChangeSet",
        "If you have IAM resources with custom names, you must specify CAPABILITY_NAMED_IAM.",
        "cloudformation",
    ),
    "state of the stack": Rule(
        "CloudFormation user guide, Understand stack creation events, ROLLBACK_COMPLETE",
        "When in this state, only a delete operation can be performed.",
    ),
    "access": Rule(
        "IAM user guide, Policy evaluation logic",
        "By default, all requests are implicitly denied with the exception of root",
    ),
    # --------------------------------------------------------------------------------------------------- other services
    "size of a task": Rule(
        "ECS API, RegisterTaskDefinition, memory",
        "If using the Fargate launch type, this field is required and you must use one of the following values.",
        "ecs",
    ),
    "network": Rule("EC2 API, error codes, InvalidVpcID.NotFound", "The specified VPC does not exist."),
    "role of a policy": Rule(
        "IAM API, PutRolePolicy, NoSuchEntityException",
        "The request was rejected because it referenced a resource entity that does not exist.",
        "iam",
    ),
    "unreserved executions": Rule(
        "Lambda API, PutFunctionConcurrency",
        "You can reserve concurrency for as many functions as you like, as long as you leave at least 100 "
        "simultaneous executions unreserved for functions that aren't configured with a per-function limit.",
        "lambda",
    ),
    "code is missing": Rule("Lambda API, CreateFunction", "The specified key does not exist."),
    "visibility timeout": Rule(
        "Lambda API, CreateEventSourceMapping, InvalidParameterValueException",
        "Queue visibility timeout is less than Function timeout",
    ),
    "batching window": Rule(
        "Lambda API, CreateEventSourceMapping",
        "When you set BatchSize to a value greater than 10, you must set MaximumBatchingWindowInSeconds to at least 1.",
        "lambda",
    ),
    "notification": Rule(
        "S3 API, PutBucketNotificationConfiguration",
        "If the message fails, the entire PUT action will fail, and Amazon S3 will not add the configuration to your "
        "bucket.",
        "s3",
    ),
    "key of a log group": Rule(
        "CloudWatch Logs user guide, Encrypt log data in CloudWatch Logs using AWS KMS",
        "By default, all KMS keys are private. Only the resource owner can use it to encrypt and decrypt data.",
    ),
    "key policy": Rule(
        "KMS API, CreateKey",
        "The key policy must allow the calling principal to make a subsequent PutKeyPolicy request on the KMS key.",
        "kms",
    ),
    "length of a policy": Rule(
        "IAM user guide, IAM and AWS STS quotas", "The size of each managed policy cannot exceed 6,144 characters."
    ),
    "length of inline policies": Rule(
        "IAM user guide, IAM and AWS STS quotas", "Role policy size can't exceed 10,240 characters."
    ),
    "right to create databases": Rule(
        "Lake Formation developer guide, Lake Formation permissions reference, CREATE_DATABASE",
        "A principal with this permission can create a metadata database or resource link in the Data Catalog.",
    ),
    "living run of a deleted job": Rule(
        "Glue API, DeleteJob, whose errors are of the input, of the service and of time",
        "Deletes a specified job definition. If the job definition is not found, no exception is thrown.",
        "glue",
    ),
    "service error": Rule(
        "CloudFormation user guide, Troubleshooting CloudFormation", "Service unavailable, as any call may be answered"
    ),
    # ----------------------------------------------------------------------------------------- Glue, when it is created
    "timeout": Rule(
        "Glue API, CreateJob, Timeout",
        "Jobs must have timeout values less than 7 days or 10080 minutes. Otherwise, the jobs will throw an exception.",
        "glue",
    ),
    "Glue version": Rule(
        "Glue API, CreateJob, GlueVersion",
        "For more information about the available Glue versions and corresponding Spark and Python versions, see Glue "
        "version in the developer guide.",
        "glue",
    ),
    "worker type": Rule(
        "Glue API, CreateJob, WorkerType",
        "Accepts a value of G.1X, G.2X, G.4X, G.8X or G.025X for Spark jobs.",
        "glue",
    ),
    "capacity": Rule(
        "Glue API, CreateJob, MaxCapacity",
        "Do not set MaxCapacity if using WorkerType and NumberOfWorkers.",
        "glue",
    ),
    "reserved argument": Rule(_GLUE_ARGUMENTS, "Internal to AWS Glue. Do not set!"),
    # ---------------------------------------------------------------------- Glue, taken at creation and of no use later
    "window beside a timeout": Rule(
        "Glue developer guide, Maintenance windows for AWS Glue Streaming",
        "If the timeout is less than 7 days, then the job will not be restarted.",
    ),
    "unknown argument": Rule(
        _GLUE_ARGUMENTS,
        "AWS Glue recognizes the following argument names that you can use to set up the script environment.",
    ),
    "argument of another version": Rule(
        _VIRTUAL_ENVIRONMENTS, "You add the --python-virtual-env-storage-prefix parameter (AWS Glue 6.0 and later)"
    ),
    "environment": Rule(
        "PEP 600, manylinux_x_y; Migrating to AWS Glue 6.0: Python 3.13 on Amazon Linux 2023",
        "works on any mainstream Linux distribution with that version of glibc or a later one",
    ),
    "files of Glue": Rule(
        "Glue developer guide, Enabling the Apache Spark web UI",
        "Every 30 seconds, AWS Glue backs up the Spark event logs to the Amazon S3 path that you specify.",
    ),
    "metrics that are not read": Rule("CloudWatch pricing, custom metrics", "each metric is billed by the month"),
}
"""All rules by name."""
