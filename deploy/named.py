"""Checks what the parameters file names in the account: keys, a boundary, a subnet and a security group."""

from collections.abc import Iterator, Mapping
from typing import Literal

from deploy.existing_names import Client, answer

State = Literal["ok", "warning", "fault"]
Found = Iterator[tuple[State, str]]


def named(client: Client, parameters: Mapping[str, str], region: str) -> Found:
    """What does not exist, or cannot be used, of the keys, the boundary and the network.

    Args:
        client: Makes the client of a service.
        parameters: Of the stack.
        region: Of the stack.

    Raises:
        ClientError: AWS refused to say.
    """
    for name in ("KmsKey", "InputKeyArn", "KafkaSecretsKeyArn"):
        if (key := parameters.get(name, "")) not in {"", "new"}:
            yield from _key(client, name, key, region)
    if arn := parameters.get("PermissionsBoundary"):
        found = answer(lambda: client("iam").get_policy(PolicyArn=arn))
        yield ("ok", "PermissionsBoundary exists") if found else ("fault", f"PermissionsBoundary: no policy {arn}")
    if parameters.get("JobSubnet"):
        yield from _network(client, parameters)


def _key(client: Client, name: str, key: str, region: str) -> Found:
    if key.split(":")[3] != region:
        yield "fault", f"{name}: {key} is not of {region}, where it is needed"
        return
    found = answer(lambda: client("kms").describe_key(KeyId=key))
    if not found:
        yield "fault", f"{name}: no key {key}"
    elif (state := found["KeyMetadata"]["KeyState"]) != "Enabled":
        yield "fault", f"{name}: {key} is {state}, expected Enabled"
    else:
        yield "ok", f"{name} is enabled"


def _network(client: Client, parameters: Mapping[str, str]) -> Found:
    ec2, subnet, group = client("ec2"), parameters["JobSubnet"], parameters["JobSecurityGroup"]
    subnets = answer(lambda: ec2.describe_subnets(SubnetIds=[subnet]))
    groups = answer(lambda: ec2.describe_security_groups(GroupIds=[group]))
    if not subnets:
        yield "fault", f"JobSubnet: no subnet {subnet}"
    if not groups:
        yield "fault", f"JobSecurityGroup: no security group {group}"
    if not subnets or not groups:
        return
    [place], [guard] = subnets["Subnets"], groups["SecurityGroups"]
    faults: list[str] = []
    if place["AvailabilityZone"] != (zone := parameters["JobSubnetZone"]):
        faults.append(f"JobSubnetZone: {subnet} is in {place['AvailabilityZone']}, not in {zone}")
    if place["VpcId"] != guard["VpcId"]:
        faults.append(f"JobSecurityGroup: {group} is of {guard['VpcId']}, {subnet} of {place['VpcId']}")
    of_itself = (pair for rule in guard["IpPermissions"] for pair in rule.get("UserIdGroupPairs", ()))
    if group not in {pair.get("GroupId") for pair in of_itself}:
        faults.append(f"JobSecurityGroup: {group} allows no traffic from itself, which Glue's workers need")
    yield from (("fault", fault) for fault in faults)
    wanted = [{"Name": "vpc-id", "Values": [place["VpcId"]]}]
    endpoints = ec2.describe_vpc_endpoints(Filters=wanted)["VpcEndpoints"]
    if not any(each["ServiceName"].endswith(".s3") for each in endpoints):
        yield "warning", f"{place['VpcId']} has no endpoint for S3: the job needs one, or a NAT gateway"
    if not faults:
        yield "ok", f"{subnet} and {group} exist, in {place['VpcId']}"
