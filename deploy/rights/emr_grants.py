"""Who may do what where for the job on EMR Serverless: the statements of `deploy/emr_serverless.yaml`."""

from collections.abc import Mapping
from dataclasses import replace

from deploy.rights.grants import GRANTS, Grant
from deploy.rights.places import PLACES

EMR_PLACES = {
    **PLACES,
    "log of the EMR job": "!GetAtt JobLogs.Arn",
    "application": "!GetAtt Application.Arn",
    "runs of the application": "!Sub ${Application.Arn}/jobruns/*",
    "role of the EMR job": "!GetAtt JobRole.Arn",
}
"""All resources by the name that these grants use."""

_OF_GLUE = {"spark ui"}
_REPLACED = {"Log", "PutMetrics"}
_OF_THE_NAMESPACE = '{ StringEquals: { "cloudwatch:namespace": !Ref MetricNamespace } }'
_TO_EMR = '{ StringEquals: { "iam:PassedToService": emr-serverless.amazonaws.com } }'


def _without_glue(grant: Grant) -> Grant:
    return replace(grant, places=tuple(place for place in grant.places if place not in _OF_GLUE))


EMR_GRANTS: Mapping[str, tuple[Grant, ...]] = {
    "EmrJobRole": (
        # What the driver's log takes [EMR Serverless User Guide, Logging for EMR Serverless with Amazon CloudWatch].
        Grant("Log", ("logs:CreateLogStream", "logs:DescribeLogStreams", "logs:PutLogEvents"), ("log of the EMR job",)),
        Grant("FindLog", ("logs:DescribeLogGroups",), ("everything",)),
        *(_without_glue(grant) for grant in GRANTS["JobRole"] if not (grant.only_if or grant.sid in _REPLACED)),
        Grant("PutMetrics", ("cloudwatch:PutMetricData",), ("everything",), _OF_THE_NAMESPACE),
    ),
    "EmrControlPolicy": (
        Grant("RunTheJob", ("emr-serverless:StartJobRun", "emr-serverless:ListJobRuns"), ("application",)),
        Grant("StopTheJob", ("emr-serverless:CancelJobRun",), ("runs of the application",)),
        Grant("PassTheRole", ("iam:PassRole",), ("role of the EMR job",), _TO_EMR),
    ),
}
"""The statements of the role and of what the control plane gets, by the name in the template."""
