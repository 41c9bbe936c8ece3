"""Prepares what an account has before a deployment, and returns the parameters that name it."""

from collections.abc import Callable
from typing import Any

REGION = "eu-central-1"
ZONE = f"{REGION}a"

Parameters = dict[str, str]
Prepare = Callable[[Any], Parameters]


def key(state: str = "", parameter: str = "KmsKey") -> Prepare:
    """A key in a state."""

    def prepare(session: Any) -> Parameters:
        kms = session.client("kms")
        made = kms.create_key()["KeyMetadata"]
        if state == "disabled":
            kms.disable_key(KeyId=made["KeyId"])
        if state == "deleted":
            kms.schedule_key_deletion(KeyId=made["KeyId"], PendingWindowInDays=7)
        return {parameter: made["Arn"]}

    return prepare


def network(*, zone: str = ZONE, same_vpc: bool = True, itself: bool = True) -> Prepare:
    """A subnet and a security group."""

    def prepare(session: Any) -> Parameters:
        ec2 = session.client("ec2")
        one, other = (ec2.create_vpc(CidrBlock=f"10.{number}.0.0/16")["Vpc"]["VpcId"] for number in (1, 2))
        subnet = ec2.create_subnet(VpcId=one, CidrBlock="10.1.1.0/24", AvailabilityZone=ZONE)["Subnet"]["SubnetId"]
        of = one if same_vpc else other
        group = ec2.create_security_group(GroupName="job", Description="of the job", VpcId=of)["GroupId"]
        if itself:
            rule = {"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group}]}
            ec2.authorize_security_group_ingress(GroupId=group, IpPermissions=[rule])
        return {"JobSubnet": subnet, "JobSubnetZone": zone, "JobSecurityGroup": group}

    return prepare
