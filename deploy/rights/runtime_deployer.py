"""What deploying the job's runtime takes, beside what deploying its environment takes."""

import re
from collections.abc import Iterator, Mapping

from deploy.resolved import Document
from deploy.rights.deployer import HERE, OWN, TAGGED, handler_actions, is_needed, statement

_APPLICATIONS = (HERE % "emr-serverless" + "/applications/*",)
_GROUPS = (HERE % "ec2" + "security-group/*",)

RUNTIME_RESOURCES: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "ecs": {
        "AWS::ECS::Cluster": (HERE % "ecs" + "cluster/${JobName}",),
        "AWS::ECS::TaskDefinition": (HERE % "ecs" + "task-definition/${JobName}:*",),
        "AWS::EC2::SecurityGroup": _GROUPS,
    },
    "emr": {"AWS::EMRServerless::Application": _APPLICATIONS},
}
"""Where the resources of each type are, by runtime. Roles and their policies are where those of the environment are."""

_LINKED = "arn:${AWS::Partition}:iam::${AWS::AccountId}:role/aws-service-role/%s/*"
_SERVICES = {"ecs": "ecs.amazonaws.com", "emr": "ops.emr-serverless.amazonaws.com"}
"""The services that make a role of their own for the first cluster or application of an account."""

_WITHOUT_RESOURCE = {
    "ecs:DeregisterTaskDefinition",
    "ecs:DescribeTaskDefinition",
    "ec2:DescribeInstances",
    "emr-serverless:CreateApplication",
}
"""Actions that are for no resource, and of which the deployer of the environment has none."""

_OF_THE_ENVIRONMENT = {"ec2:DescribeSecurityGroups", "logs:DescribeLogGroups", "logs:DescribeResourcePolicies"}
"""Actions that the deployer of the environment has, on everything."""

_UNUSED = re.compile(r"ecs:PutAccountSetting\w*|ec2:\w*Ingress")
"""Settings of the account, and rules that the security group does not have."""

_NEW: Mapping[str, Document] = {
    "ec2:CreateSecurityGroup": {},
    "ec2:CreateTags": {"StringEquals": {"ec2:CreateAction": "CreateSecurityGroup"}},
    "emr-serverless:TagResource": {},
}
"""What a resource without the name of the job takes before it has the tag, each with its condition."""


def runtime_statements(runtime: str) -> Iterator[Document]:
    """What deploying `ecs` or `emr` takes beside `deployer_statements`, with the variables of the template."""
    stack = tuple(each.replace("${JobName}/", f"${{JobName}}-{runtime}/") for each in OWN["Stack"][1])
    unused = {"cloudformation:GetTemplate", "cloudformation:ListStackResources"}
    yield statement("RuntimeStack", set(OWN["Stack"][0]) - unused, stack)
    group = HERE % "logs" + f"log-group:/compactor/{runtime}/${{JobName}}"
    places = {**RUNTIME_RESOURCES[runtime], "AWS::Logs::LogGroup": (group, f"{group}:*")}
    anywhere = set[str]()
    for kind, where in places.items():
        needed = {each for each in handler_actions(kind) if is_needed(kind, each) and not _UNUSED.fullmatch(each)}
        anywhere |= needed & _WITHOUT_RESOURCE
        yield from _of_type(kind, needed - _WITHOUT_RESOURCE - _OF_THE_ENVIRONMENT, where)
    yield statement("RuntimeAnywhere", anywhere, ("*",))
    service = {"StringEquals": {"iam:AWSServiceName": _SERVICES[runtime]}}
    linked = (_LINKED % _SERVICES[runtime],)
    yield _if(service, statement("FirstOfTheAccount", ("iam:CreateServiceLinkedRole",), linked))
    if runtime == "ecs":
        yield statement("Image", ("ecr:DescribeImages",), (HERE % "ecr" + "repository/*",))
        roles = ("arn:${AWS::Partition}:iam::${AWS::AccountId}:role/${JobName}-ecs-*",)
        to_tasks = {"StringEquals": {"iam:PassedToService": "ecs-tasks.amazonaws.com"}}
        yield _if(to_tasks, statement("PassRolesToTasks", ("iam:PassRole",), roles))


def _of_type(kind: str, actions: set[str], places: tuple[str, ...]) -> Iterator[Document]:
    """The statements of one type of resource. What has no name of the job is known by the tag of the stack."""
    sid = kind.removeprefix("AWS::").replace("::", "")
    if "${JobName}" in places[0]:
        yield statement(f"Runtime{sid}", actions, places)
        return
    for action in sorted(actions & _NEW.keys()):
        network = (HERE % "ec2" + "vpc/*",) if action == "ec2:CreateSecurityGroup" else ()
        yield _if(_NEW[action], statement(sid + action.partition(":")[2], (action,), (*places, *network)))
    anyhow = {action for action, condition in _NEW.items() if not condition}
    yield _if(TAGGED, statement(f"{sid}OfTheStack", actions - anyhow, places))


def _if(condition: Document, given: Document) -> Document:
    return {**given, "Condition": condition} if condition else given
