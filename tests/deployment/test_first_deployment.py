"""A first deployment that fails can be tried again, and a stack keeps what holds data, as CloudFormation does it."""

import pytest
from botocore.exceptions import ClientError

from deploy.order import CALLS
from deploy.resolved import Document
from deploy.stack import DeploymentError
from tests.deployment.deployments import NAME, Deployment
from tests.deployment.resolving import template
from tests.support.aws_account.account import Account
from tests.support.aws_account.clients import CloudFormation
from tests.support.aws_account.stacks import Stacks

LAKE = "example-lake-dev"
WITHOUT_GLUE = ("5.0", "5.1")


def retaining() -> Document:
    """The template as it was first: what holds data is retained, also by a creation that failed."""
    document = template()
    for each in document["Resources"].values():
        if each.get("DeletionPolicy") == "RetainExceptOnCreate":
            each["DeletionPolicy"] = "Retain"
    return document


def test_a_failed_creation_can_be_tried_again() -> None:
    """The region lacks the version of Glue at first; nothing is left, and the second try succeeds."""
    deployment = Deployment(Account(glue_versions=WITHOUT_GLUE))
    with pytest.raises(DeploymentError, match=r"Job: .*Glue version 6\.0"):
        deployment.deploy()
    assert (deployment.status, deployment.account.resources) == ("ROLLBACK_COMPLETE", [])
    deployment.account.glue_versions = ("6.0",)
    with pytest.raises(ClientError, match="ROLLBACK_COMPLETE state and can not be updated"):
        deployment.deploy()
    deployment.delete()
    deployment.deploy()
    assert deployment.status == "CREATE_COMPLETE"


@pytest.mark.parametrize(
    "failing",
    [
        "ClaimsTable",
        "ControlSchedulePermission",
        "Dashboard",
        "Database",
        "InputBucket",
        "Job",
        "JobStatePermission",
        "OperatorPolicy",
        "RejectsTable",
        "BuilderEventSource",
    ],
)
def test_wherever_a_first_deployment_fails_it_can_be_tried_again(failing: str) -> None:
    """Nothing is left that has a name: also not the work bucket, in which no function has written yet."""
    deployment = Deployment(Account(failing=failing))
    with pytest.raises(DeploymentError, match=f"{failing}: .*Service unavailable"):
        deployment.deploy()
    assert (deployment.status, deployment.account.resources) == ("ROLLBACK_COMPLETE", [])
    deployment.account.failing = ""
    deployment.delete()
    deployment.deploy()
    assert deployment.status == "CREATE_COMPLETE"
    assert deployment.bucket("example-compactor-dev").contents == []


def test_a_schedule_that_begins_too_early_leaves_its_bucket() -> None:
    """Without the order, the control plane writes while the job is still created, and the roll-back cannot end."""
    deployment = Deployment(Account(failing="Job"))
    with pytest.raises(DeploymentError, match="Service unavailable"):
        deployment.deploy(template())
    assert deployment.status == "ROLLBACK_FAILED"
    assert [each.kind for each in deployment.account.resources] == ["AWS::S3::Bucket"]


def test_all_that_calls_a_function_is_in_the_order() -> None:
    """Permissions and event sources of the template, and no others."""
    kinds = {"AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping"}
    assert {name for name, each in template()["Resources"].items() if each["Type"] in kinds} == set(CALLS)


def test_retained_names_block_the_second_try() -> None:
    """With Retain the names of buckets, queues and claims stay taken after a failed creation."""
    deployment = Deployment(Account(glue_versions=WITHOUT_GLUE))
    with pytest.raises(DeploymentError, match="Glue version"):
        deployment.deploy(retaining())
    assert {each.kind for each in deployment.account.resources} == {
        "AWS::S3::Bucket",
        "AWS::SQS::Queue",
        "AWS::DynamoDB::Table",
    }
    deployment.account.glue_versions = ("6.0",)
    deployment.delete()
    with pytest.raises(DeploymentError, match=r"already exists \[name is taken\]"):
        deployment.deploy(retaining())


def test_a_deleted_stack_leaves_what_holds_data() -> None:
    """Buckets, event queues, claims and the key stay; with them there, a new stack of this name is refused."""
    deployment = Deployment()
    deployment.deploy(parameters={"KmsKey": "new"})
    deployment.bucket(LAKE).contents.append("rows.parquet")
    deployment.delete()
    left = {each.kind for each in deployment.account.resources}
    assert left == {"AWS::S3::Bucket", "AWS::SQS::Queue", "AWS::DynamoDB::Table", "AWS::KMS::Key"}
    assert deployment.bucket(LAKE).contents == ["rows.parquet"]
    with pytest.raises(DeploymentError, match=r"\[name is taken\]"):
        deployment.deploy()


def test_a_bucket_with_objects_is_not_deleted() -> None:
    """Without a policy that retains it, the deletion of the stack fails rather than the data."""
    document = template()
    del document["Resources"]["LakeBucket"]["DeletionPolicy"]
    deployment = Deployment()
    deployment.deploy(document)
    deployment.bucket(LAKE).contents.append("rows.parquet")
    deployment.delete()
    assert deployment.status == "DELETE_FAILED"
    assert "[bucket is not empty]" in str(deployment.cloudformation.stacks.stacks[NAME].failures)
    assert deployment.bucket(LAKE).contents == ["rows.parquet"]


def test_a_named_resource_cannot_be_replaced() -> None:
    """A change that needs another resource of the same name is refused, and the stack stays as it was."""
    deployment = Deployment()
    deployment.deploy()
    changed = template()
    changed["Resources"]["AlarmTopic"]["Properties"]["FifoTopic"] = True
    before = [each.properties for each in deployment.account.resources]
    with pytest.raises(DeploymentError, match=r"Rename compactor-dev-alarms .*\[replacement of a named resource\]"):
        deployment.deploy(changed)
    assert deployment.status == "UPDATE_ROLLBACK_COMPLETE"
    assert [each.properties for each in deployment.account.resources] == before
    deployment.deploy()
    assert deployment.status == "UPDATE_COMPLETE"


def test_an_update_that_fails_is_undone() -> None:
    """A resource that the update added goes again, also one whose policy would retain it later."""
    deployment = Deployment()
    deployment.deploy()
    before = len(deployment.account.resources)
    deployment.account.glue_versions = WITHOUT_GLUE
    with pytest.raises(DeploymentError, match="Glue version"):
        deployment.deploy(parameters={"KmsKey": "new", "BuilderConcurrency": "4"})
    assert len(deployment.account.resources) == before
    source = next(deployment.account.of_kind("AWS::Lambda::EventSourceMapping"))
    assert source.properties["ScalingConfig"] == {"MaximumConcurrency": "2"}


def test_another_name_replaces_the_resource() -> None:
    """A renamed bucket is another one; the old one stays with its data, by UpdateReplacePolicy."""
    deployment = Deployment()
    deployment.deploy()
    deployment.bucket(LAKE).contents.append("rows.parquet")
    deployment.deploy(parameters={"LakeBucketName": "example-lake-two"})
    assert deployment.bucket("example-lake-two").contents == []
    assert deployment.bucket(LAKE).contents == ["rows.parquet"]


def test_two_environments_in_one_account() -> None:
    """Their names differ, so that both stacks can be created; two of one name cannot."""
    account = Account()
    Deployment(account).deploy()
    renamed = {
        "JobName": "compactor-two",
        "WorkBucketName": "two-work",
        "StagingBucketName": "two-staging",
        "LakeBucketName": "two-lake",
        "InputBucketName": "two-raw",
        "ClaimsTableName": "two-claims",
        "DatabaseName": "two",
    }
    Deployment(account).deploy(parameters=renamed)
    with pytest.raises(DeploymentError, match=r"\[name is taken\]"):
        Deployment(account).deploy()


def test_names_of_roles_need_the_capability() -> None:
    """A change set that does not say so is refused."""
    client = CloudFormation(Stacks(Account()), {"url": template()})
    with pytest.raises(ClientError, match="CAPABILITY_NAMED_IAM"):
        client.create_change_set(
            StackName="s", ChangeSetName="c", ChangeSetType="CREATE", TemplateURL="url", Parameters=[]
        )
