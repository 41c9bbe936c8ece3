"""Deployments of the template into an account in memory, by the code that deploys it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from deploy.order import with_calls_last
from deploy.resolved import Document
from deploy.stack import Stack
from tests.deployment.resolving import parameters_of, template
from tests.support.aws_account.account import Account
from tests.support.aws_account.clients import CloudFormation, Services
from tests.support.aws_account.resource import Resource
from tests.support.aws_account.stacks import Stacks

LONGEST_BUCKET_NAME = 63
"""Characters: "Bucket names must be between 3 (min) and 63 (max) characters long" [S3 user guide]."""

NAME = "compactor-dev"
FAST = {"Delay": 0, "MaxAttempts": 1}


@dataclass
class Deployment:
    """An account, and one stack in it."""

    account: Account = field(default_factory=Account)
    cloudformation: CloudFormation = field(init=False)

    def __post_init__(self) -> None:
        given = parameters_of("dev")
        self.account.objects.add(f"{given['ArtefactBucketName']}/{given['FunctionsKey']}")
        self.cloudformation = CloudFormation(Stacks(self.account), {})

    @property
    def services(self) -> Services:
        return Services(self.cloudformation)

    @property
    def status(self) -> str:
        return self.cloudformation.stacks.stacks[NAME].status

    def deploy(self, document: Document | None = None, parameters: Mapping[str, str] | None = None) -> None:
        """Deploy a template, today's by default; a `DeploymentError` if it is refused, as in `make deploy`."""
        given = {**parameters_of("dev"), **(parameters or {})}
        self.cloudformation.templates["url"] = document or with_calls_last(template(), given)
        stack = Stack(self.cloudformation, NAME, FAST)
        change_set = f"c{len(self.cloudformation.plans)}"
        stack.propose(change_set, "url", given)
        stack.execute(change_set)

    def delete(self) -> None:
        self.cloudformation.delete_stack(StackName=NAME)

    def bucket(self, name: str) -> Resource:
        found = self.account.named("AWS::S3::Bucket", name)
        assert found is not None, name
        return found
