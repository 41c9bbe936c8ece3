"""Who may do what where for the job on EMR Serverless or ECS: the statements of `deploy/runtime.yaml`."""

from collections.abc import Mapping
from dataclasses import replace

from deploy.rights.grants import GRANTS, Grant
from deploy.rights.places import PLACES

_ECS = "!Sub arn:${AWS::Partition}:ecs:${AWS::Region}:${AWS::AccountId}:"

RUNTIME_PLACES = {
    **PLACES,
    "log of the job": "!GetAtt JobLogs.Arn",
    "application": "!GetAtt Application.Arn",
    "runs of the application": "!Sub ${Application.Arn}/jobruns/*",
    "role of the job": "!GetAtt JobRole.Arn",
    "role of the agent": "!GetAtt ExecutionRole.Arn",
    "task definition": f"{_ECS}task-definition/${{JobName}}:*",
    "tasks": f"{_ECS}task/${{JobName}}/*",
    "image": "!Sub arn:${AWS::Partition}:ecr:${AWS::Region}:${AWS::AccountId}:repository/${ImageRepository}",
}
"""All resources by the name that these grants use."""

_OF_GLUE = {"spark ui"}
_REPLACED = {"Log", "PutMetrics"}
_OF_THE_NAMESPACE = '{ StringEquals: { "cloudwatch:namespace": !Ref MetricNamespace } }'
_TO_EMR = '{ StringEquals: { "iam:PassedToService": emr-serverless.amazonaws.com } }'
_TO_ECS = '{ StringEquals: { "iam:PassedToService": ecs-tasks.amazonaws.com } }'
_AT_START = '{ StringEquals: { "ecs:CreateAction": RunTask } }'
_IN_THE_CLUSTER = '{ ArnEquals: { "ecs:cluster": !GetAtt Cluster.Arn } }'
_WRITE_LOG = ("logs:CreateLogStream", "logs:PutLogEvents")


def _without_glue(grant: Grant) -> Grant:
    return replace(grant, places=tuple(place for place in grant.places if place not in _OF_GLUE))


RUNTIME_GRANTS: Mapping[str, tuple[Grant, ...]] = {
    "JobRole": (
        # The first stands for those of conditions that do not hold, so it is a short one.
        Grant("PutMetrics", ("cloudwatch:PutMetricData",), ("everything",), _OF_THE_NAMESPACE),
        # What the driver's log takes [EMR Serverless User Guide, Logging for EMR Serverless with Amazon CloudWatch].
        Grant("Log", (*_WRITE_LOG, "logs:DescribeLogStreams"), ("log of the job",), only_if="OnEmr"),
        Grant("FindLog", ("logs:DescribeLogGroups",), ("everything",), only_if="OnEmr"),
        *(_without_glue(grant) for grant in GRANTS["JobRole"] if not (grant.only_if or grant.sid in _REPLACED)),
    ),
    # What ECS's agent does before the task and for its log [ECS Developer Guide, task execution IAM role].
    "ExecutionRole": (
        Grant("Log", _WRITE_LOG, ("log of the job",)),
        Grant("LogIn", ("ecr:GetAuthorizationToken",), ("everything",)),
        Grant(
            "PullImage",
            ("ecr:BatchCheckLayerAvailability", "ecr:BatchGetImage", "ecr:GetDownloadUrlForLayer"),
            ("image",),
        ),
    ),
    "EmrControlPolicy": (
        Grant("RunTheJob", ("emr-serverless:StartJobRun", "emr-serverless:ListJobRuns"), ("application",)),
        Grant("StopTheJob", ("emr-serverless:CancelJobRun",), ("runs of the application",)),
        Grant("PassTheRole", ("iam:PassRole",), ("role of the job",), _TO_EMR),
    ),
    "EcsControlPolicy": (
        Grant("RunTheJob", ("ecs:RunTask",), ("task definition",), _IN_THE_CLUSTER),
        # A start that propagates tags needs it [ECS Developer Guide, Grant permission to tag resources on creation].
        Grant("TagTasks", ("ecs:TagResource",), ("tasks",), _AT_START),
        Grant("FindTasks", ("ecs:ListTasks",), ("everything",), _IN_THE_CLUSTER),
        Grant("StopTheJob", ("ecs:DescribeTasks", "ecs:StopTask"), ("tasks",)),
        Grant("PassTheRoles", ("iam:PassRole",), ("role of the job", "role of the agent"), _TO_ECS),
    ),
}
"""The statements of the roles and of what the control plane gets, by the name in the template."""
