"""Checks what a person gives for the job's runtime, so that CloudFormation or the first task need not refuse it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial

from botocore.exceptions import ClientError

from deploy.existing_names import Client, answer

_ID = r"([0-9a-f]{8}|[0-9a-f]{17})"

NEEDED: Mapping[str, Mapping[str, tuple[str, str]]] = {
    "emr": {},
    "ecs": {
        "ImageDigest": (r"sha256:[0-9a-f]{64}", "sha256: and 64 hexadecimal digits, as docker push prints them"),
        "VpcId": (f"vpc-{_ID}", "vpc- and 8 or 17 hexadecimal digits"),
        "SubnetIds": (f"subnet-{_ID}(,subnet-{_ID})*", "each subnet- and 8 or 17 hexadecimal digits, comma-separated"),
    },
}
"""The parameters without which a runtime has no use, each with its pattern and its words."""

FARGATE_MEMORY: Mapping[int, Sequence[int]] = {
    256: (512, 1024, 2048),
    512: range(1024, 4096 + 1, 1024),
    1024: range(2048, 8192 + 1, 1024),
    2048: range(4096, 16_384 + 1, 1024),
    4096: range(8192, 30_720 + 1, 1024),
    8192: range(16_384, 61_440 + 1, 4096),
    16_384: range(32_768, 122_880 + 1, 8192),
}
"""The MiB that a task may have, by its CPU units [ECS API, RegisterTaskDefinition, memory]."""


def form_faults(runtime: str, given: Mapping[str, str]) -> Iterator[str]:
    """What is missing or has another form than the runtime's parameters have."""
    for name, (pattern, words) in NEEDED[runtime].items():
        if not given.get(name):
            yield f"parameter {name}: not given -> expected {words}"
        elif not re.fullmatch(pattern, given[name]):
            yield f"parameter {name}: {given[name]!r} -> expected {words}"


def size_faults(parameters: Mapping[str, str]) -> Iterator[str]:
    """What Fargate refuses about the size of a task. The parameters have the form that the template asks for."""
    units, memory = int(parameters["TaskCpu"]), int(parameters["TaskMemory"])
    sizes = FARGATE_MEMORY[units]
    if memory not in sizes:
        steps = f", in steps of {sizes.step}" if isinstance(sizes, range) else ", twice as much each time"
        words = f"{sizes[0]} to {sizes[-1]} (MiB{steps}) with TaskCpu {units}, as Fargate takes them"
        yield f"parameter TaskMemory: {memory} -> expected {words}"


def account_findings(client: Client, parameters: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    """Whether the account has the subnets and the image: each finding as `fault` or `warning`, with its words."""
    checks = [partial(_subnet, client, parameters["VpcId"], each) for each in parameters["SubnetIds"].split(",")]
    for check in (*checks, partial(_image, client, parameters)):
        try:
            if fault := check():
                yield "fault", fault
        except ClientError as exc:
            yield "warning", f"not checked: {exc}"


def _subnet(client: Client, network: str, subnet: str) -> str:
    found = answer(lambda: client("ec2").describe_subnets(SubnetIds=[subnet]))
    if not found:
        return f"parameter SubnetIds: {subnet} -> expected a subnet that exists in this region"
    actual = found["Subnets"][0]["VpcId"]
    return (
        "" if actual == network else f"parameter SubnetIds: {subnet} is in {actual} -> expected one in VpcId, {network}"
    )


def _image(client: Client, parameters: Mapping[str, str]) -> str:
    name, digest = parameters["ImageRepository"], parameters["ImageDigest"]
    images = partial(client("ecr").describe_images, repositoryName=name, imageIds=[{"imageDigest": digest}])
    if answer(images):
        return ""
    return f"parameter ImageDigest: {digest} -> expected an image in the repository {name} of ECR; push it first"
