"""Checks before a deployment what would make it fail: quotas, names, buckets, the region, and what was packaged."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from botocore.exceptions import BotoCoreError, ClientError

from compactor.cost.price_table import AS_OF, REGIONS
from compactor.cost.prices import HOURS_A_MONTH, JobSize, prices_of
from deploy.artefacts import Artefact
from deploy.existing_names import Client, Known, arn_of, is_taken, planned_names
from deploy.job_wheels import wheel_faults
from deploy.named import State, named
from deploy.pip import PackagingError
from deploy.policy_size import policy_faults
from deploy.resolved import pseudo_parameters
from deploy.stack import Stack
from deploy.wheel import glibc_line

UNRESERVED_CONCURRENCY = 100
"""What Lambda keeps unreserved: "You can reserve concurrency for as many functions as you like, as long as you leave at
least 100 simultaneous executions unreserved" [Lambda API, PutFunctionConcurrency]."""

OTHER_CALLS = 2
"""Calls at once beside the builder's: of the sealer and of the control plane."""

SHOWN_CHARACTERS = 200  # of an error of AWS, which may quote a page

DEAD_STATES = {"CREATE_FAILED", "ROLLBACK_COMPLETE", "ROLLBACK_FAILED", "DELETE_FAILED"}
"""States of a stack that CloudFormation does not update."""


@dataclass(frozen=True, slots=True)
class Result:
    """What a check found."""

    name: str
    state: State
    found: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Preflight:
    """The checks of one deployment.

    Attributes:
        session: A boto3 session.
        client: Makes clients that give up soon.
        account: The id of the account.
        template: The template, whose names a new stack gives.
        is_new: Whether the stack does not exist yet.
        has_native: Whether the deployed job has the native engine, and is to keep it.
    """

    session: Any
    client: Client
    account: str
    template: Mapping[str, Any]
    parameters: Mapping[str, str]
    files: Sequence[Artefact]
    is_new: bool
    has_native: bool = False

    @property
    def _known(self) -> Known:
        return {**pseudo_parameters(self.session.region_name, self.account), **self.parameters}

    def results(self, only: Sequence[str] = ()) -> Iterator[Result]:
        """Run the checks, or only some. One that cannot be made, for want of a right or of an answer, is a warning."""
        checks: dict[str, Callable[[], Iterator[tuple[State, str]]]] = {
            "stack": self._stack,
            "artefacts": self._artefacts,
            "artefact bucket": self._artefact_bucket,
            "input bucket": self._input_bucket,
            "parameters": partial(named, self.client, self.parameters, self.session.region_name),
            "names": self._names,
            "policies": self._policies,
            "alarms": self._alarms,
            "Lake Formation": self._lake_formation,
            "Lambda quota": self._lambda_quota,
            "Glue quota": self._glue_quota,
            "region": self._region,
            "price": self._price,
        }
        for name, check in checks.items():
            if only and name not in only:
                continue
            try:
                yield from (Result(name, state, found) for state, found in check())
            except (ClientError, BotoCoreError) as exc:
                yield Result(name, "warning", f"not checked: {_shown(exc)}")

    def _stack(self) -> Iterator[tuple[State, str]]:
        name = self.parameters["JobName"]
        if self.is_new:
            yield "ok", f"{name} does not exist yet"
            return
        [found] = self.client("cloudformation").describe_stacks(StackName=name)["Stacks"]
        status = found["StackStatus"]
        if status in DEAD_STATES:
            delete = f"aws cloudformation delete-stack --stack-name {name} --region {self.session.region_name}"
            yield "fault", f"{name} is {status}: {delete}, then deploy again"
        elif status.endswith("_IN_PROGRESS"):
            yield "fault", f"{name} is {status}: wait until that ends"
        else:
            yield "ok", f"{name} is {status}"

    def _artefacts(self) -> Iterator[tuple[State, str]]:
        wheels = [each.path for each in self.files if each.is_wheel]
        own = [path for path in wheels if path.name.startswith("ndjson_compactor-")]
        others = [path for path in wheels if path not in own]
        faults = [*wheel_faults(others)] if others else []
        yield from (("fault", f"{fault}: run make glue-environment") for fault in faults)
        for path in own:
            if path.name.endswith("-none-any.whl"):
                without = f"{path.name} has no native engine: the job uses the Spark engine"
                if self.has_native:
                    yield "fault", f"{without}, and it has the native one now: package with cargo, or WITHOUT_NATIVE=1"
                else:
                    yield "warning", without
                continue
            try:
                yield "ok", f"{path.name} {glibc_line(path)}"
            except PackagingError as exc:
                yield "fault", str(exc)
        if others and not faults:
            yield "ok", f"{len(others)} wheels for the Python and the glibc of Glue"

    def _artefact_bucket(self) -> Iterator[tuple[State, str]]:
        yield self._own_bucket(self.parameters["ArtefactBucketName"], "ArtefactBucketName")

    def _own_bucket(self, name: str, key: str) -> tuple[State, str]:
        """Whether a bucket is of this account and region."""
        s3 = self.client("s3")
        try:
            s3.head_bucket(Bucket=name, ExpectedBucketOwner=self.account)
        except ClientError as exc:
            code = exc.response.get("Error", {}).get("Code", "")
            if code in {"404", "NoSuchBucket"}:
                return (
                    "fault",
                    f"{key}: bucket {name} does not exist: aws s3 mb s3://{name} --region {self.session.region_name}",
                )
            return "fault", f"{key}: bucket {name} belongs to another account, or these credentials may not list it"
        region = s3.get_bucket_location(Bucket=name).get("LocationConstraint") or "us-east-1"
        if region != self.session.region_name:
            return "fault", f"{key}: bucket {name} is in {region}, expected {self.session.region_name}"
        return "ok", f"{name} is in this account and region"

    def _input_bucket(self) -> Iterator[tuple[State, str]]:
        if self.parameters["InputBucketIsNew"] == "yes":
            return
        name = self.parameters["InputBucketName"]
        if other := self.parameters.get("InputAccount"):
            yield "ok", f"{name}: bucket of account {other}, not checked"
            return
        state, found = self._own_bucket(name, "input.allowed_prefixes")
        yield state, found
        if state == "ok":
            sent = self.client("s3").get_bucket_notification_configuration(Bucket=name)
            if "EventBridgeConfiguration" not in sent:
                yield "warning", f"{name} sends no events to EventBridge yet: see deploy/README.md"

    def _names(self) -> Iterator[tuple[State, str]]:
        planned = list(planned_names(self.template, self._known, self._owned()))
        free = 0
        for kind, name in planned:
            try:
                is_free = not is_taken(kind, name, self.client, self._known)
            except (ClientError, BotoCoreError) as exc:  # a bucket of another account answers so, too
                yield "warning", f"{kind} {name}: not checked: {_shown(exc)}"
                continue
            free += is_free
            if not is_free and self.is_new:
                yield "fault", f"{kind} {name} exists: import it into the stack, or choose another name"
            elif not is_free:
                yield "warning", f"{kind} {name} exists outside this stack: a change set that adds it fails"
        yield "ok", f"{free} of {len(planned)} new names are free" if planned else "the stack keeps its names"

    def _owned(self) -> dict[str, str]:
        """What the stack has already; nothing if it is new."""
        cloudformation = self.client("cloudformation")
        stack = Stack(cloudformation, self.parameters["JobName"])
        return {} if self.is_new else stack.resources()

    def _policies(self) -> Iterator[tuple[State, str]]:
        faults = list(policy_faults(self.template, self._known))
        yield from (("fault", fault) for fault in faults)
        if not faults:
            yield "ok", "all roles and policies are within IAM's limits"

    def _alarms(self) -> Iterator[tuple[State, str]]:
        """Whether alarms reach a person."""
        address, job = self.parameters["AlarmEmail"], self.parameters["JobName"]
        topic = f"{job}-alarms"
        confirmed, waiting = ([], []) if self.is_new else self._subscriptions(topic)
        if address and address not in (*confirmed, *waiting):
            yield "ok", f"AWS sends a mail to {address}; alarms arrive once its link is opened"
        elif address in waiting:
            yield "warning", f"{address} has not confirmed its subscription: open the link in the mail from AWS"
        elif not confirmed:
            yield "warning", f"no one receives alarms: set AlarmEmail, or subscribe to the topic {topic}"
        else:
            yield "ok", f"{len(confirmed)} confirmed subscriptions of the topic {topic}"

    def _subscriptions(self, topic: str) -> tuple[list[str], list[str]]:
        """The endpoints that confirmed their subscription of the topic, and those that did not."""
        arn = arn_of("AWS::SNS::Topic", topic, self._known)
        pages = self.client("sns").get_paginator("list_subscriptions_by_topic").paginate(TopicArn=arn)
        by_state: dict[bool, list[str]] = {True: [], False: []}
        for each in (each for page in pages for each in page["Subscriptions"]):
            by_state[each["SubscriptionArn"] != "PendingConfirmation"].append(each["Endpoint"])
        return by_state[True], by_state[False]

    def _lake_formation(self) -> Iterator[tuple[State, str]]:
        """Whether Lake Formation decides who may create and query tables; by default IAM does."""
        found = self.client("lakeformation").get_data_lake_settings()["DataLakeSettings"]
        names = ("CreateDatabaseDefaultPermissions", "CreateTableDefaultPermissions")
        if all(found.get(name) for name in names):
            yield "ok", "IAM decides who may create and query tables"
        else:
            database = self.parameters["DatabaseName"]
            rights = "CREATE_DATABASE for you, ALTER for the job's role and SELECT for who queries"
            iceberg = self.parameters["IcebergDatabase"]
            more = f", and {iceberg} CREATE_TABLE for the job's role" if iceberg else ""
            yield "warning", f"it decides here: {database} needs {rights}{more}: see deploy/README.md"

    def _lambda_quota(self) -> Iterator[tuple[State, str]]:
        limits = self.client("lambda").get_account_settings()["AccountLimit"]
        free, reserved = limits["UnreservedConcurrentExecutions"], self.parameters.get("ReserveConcurrency") == "yes"
        if reserved and self.is_new and free - OTHER_CALLS < UNRESERVED_CONCURRENCY:
            yield "fault", f"{free} unreserved executions: set ReserveConcurrency to no, or have the quota raised"
        needed = int(self.parameters["BuilderConcurrency"]) + OTHER_CALLS
        if free < needed:
            yield "warning", f"{free} unreserved executions, up to {needed} are used: lower BuilderConcurrency"
        else:
            yield "ok", f"{free} unreserved executions, up to {needed} are used"

    def _glue_quota(self) -> Iterator[tuple[State, str]]:
        pages = self.client("service-quotas").get_paginator("list_service_quotas").paginate(ServiceCode="glue")
        limits = {each["QuotaName"]: each["Value"] for page in pages for each in page["Quotas"]}
        needed = self._size().dpu
        found = {name: limit for name, limit in limits.items() if "DPU" in name and "per account" in name}
        short = [f"{name} is {limit:g}" for name, limit in found.items() if limit < needed]
        if not found:
            yield "warning", "not checked: Glue's quotas list no DPU limit"
        yield from (
            ("fault", f"{each}, {needed:g} needed: lower MaxWorkers, or have the quota raised") for each in short
        )
        if found and not short:
            yield "ok", f"{needed:g} DPU, at most {min(found.values()):g}"

    def _region(self) -> Iterator[tuple[State, str]]:
        region, version = self.session.region_name, self.parameters["GlueVersion"]
        if region not in self.session.get_available_regions("glue"):
            yield "warning", f"boto3 lists no Glue in {region}"
        yield (
            "ok",
            f"Glue {version}: AWS offers no way to check that {region} has it; if not, creating the job fails first",
        )

    def _price(self) -> Iterator[tuple[State, str]]:
        size, region = self._size(), self.session.region_name
        known = region if region in REGIONS else REGIONS[0]
        hourly = sum(line.dollars_per_hour for line in size.lines_in(prices_of(known)))
        shown = f"{size}: up to ${hourly:.2f} an hour, ${hourly * HOURS_A_MONTH:,.0f} a month"
        yield "ok", f"{shown}, at the prices of {known} of {AS_OF}"
        if known != region:
            yield "warning", f"prices in {region} differ: see the price pages of AWS"

    def _size(self) -> JobSize:
        given = self.parameters
        return JobSize(given["WorkerType"], int(given["MaxWorkers"]), given["GlueVersion"])


def result_lines(results: Sequence[Result]) -> list[str]:
    """Results as lines of text."""
    return ["Checks", *(f"  {each.state:8} {each.name:15}  {each.found}" for each in results), ""]


def faults_of(results: Sequence[Result]) -> list[str]:
    """What a deployment would fail by."""
    return [f"{each.name}: {each.found}" for each in results if each.state == "fault"]


def _shown(error: Exception) -> str:
    return " ".join(str(error).split())[:SHOWN_CHARACTERS]
