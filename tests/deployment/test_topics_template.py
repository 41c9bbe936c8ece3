"""What the stack has for a job that plans topics: a network, rights, secrets, an alarm. Nothing of it by default."""

from dataclasses import replace
from typing import Any

import pytest

from compactor.core.errors import SettingsError
from compactor.settings.settings import Settings, load_settings
from deploy.stack_parameters import secrets_of, settings_parameters, stack_parameters
from tests.deployment.deployments import Deployment
from tests.deployment.drift import permission_faults
from tests.deployment.permissions import allows
from tests.deployment.resolving import ROOT, parameters_of, resources, template
from tests.deployment.test_drift import current_code

OF_BROKERS = "arn:aws:secretsmanager:eu-central-1:123456789012:secret:AmazonMSK_compactor-AbCdEf"
KEY = "arn:aws:kms:eu-central-1:123456789012:key/0a1b"
NETWORK = {"JobSubnet": "subnet-0a1b2c3d", "JobSubnetZone": "eu-central-1a", "JobSecurityGroup": "sg-0a1b2c3d"}
TOPICS = {
    **NETWORK,
    "KafkaTopics": "orders",
    "KafkaClusterName": "main",
    "KafkaSecrets": OF_BROKERS,
    "KafkaSecretsKeyArn": KEY,
}
ARN = "arn:aws:kafka:eu-central-1:123456789012:{}"
WANTED = {
    "kafka-cluster:Connect": ARN.format("cluster/main/0a1b"),
    "kafka-cluster:DescribeTopic": ARN.format("topic/main/0a1b/orders"),
    "kafka-cluster:ReadData": ARN.format("topic/main/0a1b/orders"),
    "secretsmanager:GetSecretValue": OF_BROKERS,
    "kms:Decrypt": KEY,
    "glue:GetConnection": "arn:aws:glue:eu-central-1:123456789012:connection/compactor-prod-brokers",
    "ec2:CreateNetworkInterface": "*",
    "ec2:CreateTags": "arn:aws:ec2:eu-central-1:123456789012:network-interface/eni-1",
}


def settings_with(kafka: dict[str, Any], prefixes: tuple[str, ...]) -> Settings:
    """Those of production, with topics beside the place on S3."""
    found = load_settings(ROOT / "config" / "prod.toml", {})
    clusters = {"main": {"bootstrap.servers": "b-1:9096", **kafka.pop("properties", {})}}
    section = found.kafka.model_copy(update={"clusters": clusters, **kafka})
    places = found.input.model_copy(update={"allowed_prefixes": (*prefixes, *found.input.allowed_prefixes)})
    return replace(found, kafka=section, input=places)


def test_nothing_of_it_by_default() -> None:
    """A stack without topics has no network and no further right."""
    found = resources(template(), parameters_of("prod"))
    assert "BrokersConnection" not in found
    assert "Connections" not in found["Job"]["Properties"]
    assert [action for action, arn in WANTED.items() if allows(found["JobRole"], action, arn)] == []


def test_the_job_enters_the_network_and_may_read_its_topics() -> None:
    """Those that are named, and no other."""
    found = resources(template(), {**parameters_of("prod"), **TOPICS})
    connection = found["BrokersConnection"]["Properties"]["ConnectionInput"]
    assert connection["ConnectionType"] == "NETWORK"
    assert connection["PhysicalConnectionRequirements"] == {
        "AvailabilityZone": "eu-central-1a",
        "SubnetId": "subnet-0a1b2c3d",
        "SecurityGroupIdList": ["sg-0a1b2c3d"],
    }
    assert found["Job"]["Properties"]["Connections"] == {"Connections": ["BrokersConnection"]}
    for action, arn in WANTED.items():
        assert allows(found["JobRole"], action, arn), action
    others = {
        "kafka-cluster:Connect": ARN.format("cluster/other/0a1b"),
        "kafka-cluster:ReadData": ARN.format("topic/main/0a1b/payments"),
        "secretsmanager:GetSecretValue": OF_BROKERS.replace("compactor", "others"),
        "kafka-cluster:WriteData": ARN.format("topic/main/0a1b/orders"),
    }
    assert [action for action, arn in others.items() if allows(found["JobRole"], action, arn)] == []
    assert [*permission_faults(found, current_code())] == []


@pytest.mark.parametrize("parameters", [TOPICS, NETWORK], ids=["msk", "network"])
def test_the_stack_is_created_and_changed(parameters: dict[str, str]) -> None:
    """Also from one without topics, and back."""
    deployment = Deployment()
    for given in ({}, parameters, {}, parameters):
        deployment.deploy(parameters=given)
    assert deployment.status == "UPDATE_COMPLETE"


def test_what_follows_from_the_settings() -> None:
    """Names of topics and secrets, and how long a record may wait."""
    properties = {
        "sasl.username": f"secretsmanager:{OF_BROKERS}#username",
        "sasl.password": f"secretsmanager:{OF_BROKERS}#p",
    }
    settings = settings_with({"properties": properties}, ("kafka://main/orders",))
    found = settings_parameters(settings)
    assert (found["KafkaTopics"], found["KafkaSecrets"]) == ("orders", OF_BROKERS)
    assert float(found["LogLateSeconds"]) == settings.landing_late_seconds
    assert found["InputBucketName"] == parameters_of("prod")["InputBucketName"]
    several = settings_with({}, ("kafka://main/orders-a", "kafka://main/orders-b"))
    assert settings_parameters(several)["KafkaTopics"] == "orders-a,orders-b"
    assert secrets_of(several) == set()


def test_a_secret_that_glue_does_not_have() -> None:
    """Its processes get no variables, and have no files of a deployment."""
    for reference in ("env:PASSWORD", "file:/run/secrets/password"):
        settings = settings_with({"properties": {"sasl.password": reference}}, ("kafka://main",))
        with pytest.raises(SettingsError, match="secretsmanager:ARN: Glue offers neither variables"):
            settings_parameters(settings)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"JobSubnet": "subnet-0a1b2c3d"}, "JobSubnet, JobSubnetZone, JobSecurityGroup -> expected all three"),
        ({}, "KafkaClusterName -> expected the MSK cluster"),
    ],
)
def test_parameters_that_contradict_the_settings(given: dict[str, str], expected: str) -> None:
    """They are named before anything is deployed."""
    settings = settings_with({"properties": {"sasl.mechanism": "AWS_MSK_IAM"}}, ("kafka://main",))
    with pytest.raises(SettingsError, match=expected):
        stack_parameters(template(), {**parameters_of("prod"), **given}, settings=settings)


def test_the_alarm_watches_the_age_of_what_is_not_landed() -> None:
    """By the same time as `status` and the notices of the control plane."""
    found = resources(template(), {**parameters_of("prod"), "LogLateSeconds": "1050"})
    alarm = found["LogBehindAlarm"]["Properties"]
    assert (alarm["MetricName"], alarm["Statistic"], float(alarm["Threshold"])) == (
        "LandingAgeSeconds", "Maximum", 1050.0,
    )  # fmt: skip
