"""An account with an environment and what runs its job, each deployed with the policies that are written for it."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from deploy.policies import policies
from deploy.resolved import Document
from deploy.runtime import deploy_runtime
from tests.deployment.deployments import NAME, Deployment
from tests.deployment.granted import Granted
from tests.deployment.test_deployer import CALLS, FREE, RUNTIME_CALLS, pascal
from tests.support.aws_account.account import Account
from tests.support.aws_account.arns import NUMBER, REGION
from tests.support.aws_account.clients import error
from tests.support.aws_account.rights import Call, Rights

NETWORK, SUBNETS, DIGEST = "vpc-01234567", ("subnet-01234567", "subnet-89abcdef"), f"sha256:{'0' * 64}"
FOR_ECS = {"ImageDigest": DIGEST, "VpcId": NETWORK, "SubnetIds": ",".join(SUBNETS)}
GIVEN = {"ecs": FOR_ECS, "emr": {}}
"""What a person gives for each runtime."""

SIZES = {"ecs": {"TaskCpu": "4096", "TaskMemory": "8192"}, "emr": {"MaxCpu": "40 vCPU"}}
"""Other values of parameters, which change what is there."""


@dataclass(frozen=True, slots=True)
class WatchedRights(Rights):
    """Rights that remember what they were asked for."""

    asked: list[Call] = field(default_factory=list)

    def allows(self, action: str, arn: str, context: Mapping[str, str]) -> bool:
        self.asked.append((action, arn, context))
        return Rights.allows(self, action, arn, context)


@dataclass
class Place:
    """An account, a checkout, and those who deploy from it. `parameters` are of the environment."""

    runtime: str
    root: Path
    parameters: dict[str, str] = field(default_factory=dict)
    deployment: Deployment = field(default_factory=lambda: Deployment(new_account()))

    def __post_init__(self) -> None:
        path = self.root / "deploy" / "parameters" / "dev.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **self.parameters}))

    @property
    def account(self) -> Account:
        return self.deployment.account

    def policy(self) -> Document:
        """The policy that the deployer of the runtime gets beside the others."""
        return policies("dev", NUMBER, self.root)[f"runtime-{self.runtime}"]

    def rights(self, beside: Document) -> WatchedRights:
        """The rights of the environment's deployer, and one policy beside."""
        written = policies("dev", NUMBER, self.root)
        own = [each for name, each in written.items() if name.startswith("deployer-")]
        return WatchedRights([statement for each in (*own, beside) for statement in each["Statement"]])

    def deploy_environment(self) -> None:
        self.account.deployer = self.rights({"Statement": []})
        self.deployment.deploy(parameters=self.parameters)

    def deploy_runtime(
        self, more: Mapping[str, str] | None = None, *, rights: Rights | None = None, agreed: bool = True
    ) -> None:
        """`make deploy RUNTIME=` with the policies, unless other rights are given."""
        self.account.deployer = rights or self.rights(self.policy())
        session = Session(self.deployment, self.account.deployer)
        given = {**GIVEN[self.runtime], **(more or {})}
        deploy_runtime(self.runtime, "dev", lambda **_: session, more=given, confirm=lambda: agreed, root=self.root)

    def delete_runtime(self) -> None:
        self.deployment.cloudformation.delete_stack(StackName=self.stack)

    @property
    def stack(self) -> str:
        return f"{NAME}-{self.runtime}"

    @property
    def status(self) -> str:
        found = self.deployment.cloudformation.stacks.stacks.get(self.stack)
        return found.status if found else "none"


def new_account() -> Account:
    """An account with a network and an image."""
    return Account(
        networks={NETWORK: {*SUBNETS}, "vpc-89abcdef": {"subnet-00000000"}}, images={"ndjson-compactor": {DIGEST}}
    )


class Session:
    """A session of the account for someone with rights."""

    region_name = REGION

    def __init__(self, deployment: Deployment, rights: Rights) -> None:
        self._account, self._cloudformation, self._rights = deployment.account, deployment.cloudformation, rights

    def client(self, service: str) -> Any:
        stand_ins: dict[str, Any] = {
            "cloudformation": self._cloudformation,
            "ec2": SimpleNamespace(describe_subnets=self._subnets),
            "ecr": SimpleNamespace(describe_images=self._images),
            "s3": SimpleNamespace(put_object=self._put, upload_file=self._upload),
            "sts": SimpleNamespace(get_caller_identity=lambda: {"Account": NUMBER}),
        }
        return Granted(stand_ins[service], self._rights, _calls_of(service))

    def _put(self, Bucket: str, Key: str, Body: bytes) -> None:  # noqa: N803 - as boto3 names them
        self._cloudformation.templates[f"https://{Bucket}.s3.{REGION}.amazonaws.com/{Key}"] = json.loads(Body)

    def _upload(self, _path: str, bucket: str, key: str) -> None:
        self._account.objects.add(f"{bucket}/{key}")

    def _subnets(self, SubnetIds: list[str]) -> dict[str, Any]:  # noqa: N803
        places = {subnet: network for network, subnets in self._account.networks.items() for subnet in subnets}
        if missing := [each for each in SubnetIds if each not in places]:
            raise error("InvalidSubnetID.NotFound", f"The subnet ID '{missing[0]}' does not exist")
        return {"Subnets": [{"SubnetId": each, "VpcId": places[each]} for each in SubnetIds]}

    def _images(self, repositoryName: str, imageIds: list[dict[str, str]]) -> dict[str, Any]:  # noqa: N803
        if repositoryName not in self._account.images:
            raise error("RepositoryNotFoundException", f"The repository with name '{repositoryName}' does not exist")
        found = [each for each in imageIds if each["imageDigest"] in self._account.images[repositoryName]]
        if found != imageIds:
            raise error("ImageNotFoundException", "The image requested does not exist")
        return {"imageDetails": found}


def _calls_of(service: str) -> Callable[[str, Mapping[str, Any]], Iterable[Call]]:
    """What the calls of the deployment ask IAM for."""
    known = CALLS | RUNTIME_CALLS

    def calls(operation: str, given: Mapping[str, Any]) -> Iterable[Call]:
        name = f"{service}.{pascal(operation)}"
        if name not in FREE:
            action, arn_of = known[name]
            yield action, arn_of(given), {}
            if name == "cloudformation.CreateChangeSet":  # whose tags need it [CloudFormation API, TagResource]
                yield "cloudformation:TagResource", arn_of(given), {}

    return calls
