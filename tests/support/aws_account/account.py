"""The account: its resources by type and name, and what it says to a new one."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from tests.support.aws_account import kinds
from tests.support.aws_account.resource import Resource, has_own_name
from tests.support.aws_account.rights import Rights, calls
from tests.support.aws_account.rules import Refused
from tests.support.aws_account.schedules import call_functions
from tests.support.aws_account.services import SERVICES


@dataclass(slots=True)
class Account:
    """An account with its quotas.

    Attributes:
        concurrency: Lambda's quota of concurrent executions.
        glue_versions: The versions of Glue that the region has.
        buckets_of_others: Names of buckets that other accounts have.
        objects: Places `bucket/key` in buckets that are no resources here, such as that of the artefacts.
        has_lake_formation: Whether Lake Formation instead of IAM decides who may create databases and query tables.
        subscriptions: Whether each address has confirmed its subscription of the topic for alarms.
        failing: The name in its template of a resource that its service does not create now.
        grants: What Lake Formation lets the deployer do.
        runs: The runs that live, by the name of their job.
        abandoned: The runs that live, though their job is deleted. No call finds them.
        disabled: The names of the rules that call nothing.
        networks: The VPCs, each with its subnets.
        images: The repositories of ECR, each with the digests of its images.
        deployer: What those who deploy may do; None if that is not asked.
    """

    concurrency: int = 1000
    glue_versions: tuple[str, ...] = ("5.0", "5.1", "6.0")
    buckets_of_others: set[str] = field(default_factory=set)
    objects: set[str] = field(default_factory=set)
    has_lake_formation: bool = False
    subscriptions: dict[str, bool] = field(default_factory=dict)
    failing: str = ""
    grants: set[str] = field(default_factory=set)
    runs: dict[str, set[str]] = field(default_factory=dict)
    abandoned: set[str] = field(default_factory=set)
    disabled: set[str] = field(default_factory=set)
    networks: dict[str, set[str]] = field(default_factory=dict)
    images: dict[str, set[str]] = field(default_factory=dict)
    deployer: Rights | None = None
    resources: list[Resource] = field(default_factory=list)

    def of_kind(self, kind: str) -> Iterator[Resource]:
        return (each for each in self.resources if each.kind == kind)

    def named(self, kind: str, name: str) -> Resource | None:
        """The resource of a type and name."""
        return next((each for each in self.of_kind(kind) if each.name == name), None)

    def create(self, new: Resource) -> None:
        """Create a resource, after schedules have called their functions; `Refused` if a service refuses it."""
        call_functions(self)
        self.authorize("create", new)
        self.check(new)
        if new.logical == self.failing:
            raise Refused("service error", f"{new.logical}: Service unavailable")
        if new.kind == "AWS::S3::Bucket" and new.name in self.buckets_of_others:
            raise Refused("bucket is taken", f"bucket {new.name} is another account's")
        if has_own_name(new) and self.named(new.kind, new.name):
            raise Refused("name is taken", f"{new.kind} {new.name} already exists")
        self.resources.append(new)

    def check(self, new: Resource) -> None:
        """Ask the service of a resource that is created or changed; `Refused` with its reason."""
        for fault in kinds.faults(new.kind, new.properties):
            raise Refused("property", f"{new.logical}: {fault}")
        for rule, message in SERVICES[new.kind](self, new) if new.kind in SERVICES else ():
            raise Refused(rule, f"{new.logical}: {message}")

    def authorize(self, operation: str, resource: Resource) -> None:
        """Refuse what the deployer may not do; `operation` is `create`, `update` or `delete`."""
        if self.deployer is not None:
            for call in calls(operation, resource, self.resources):
                try:
                    self.deployer.require(*call)
                except Refused as exc:
                    raise Refused(exc.rule, f"{resource.logical}: {exc}") from exc

    def delete(self, old: Resource) -> None:
        """Delete a resource; `Refused` if it holds something. The runs of a job live on, and belong to none."""
        self.authorize("delete", old)
        if old.kind == "AWS::S3::Bucket" and old.contents:
            raise Refused("bucket is not empty", f"bucket {old.name} has {len(old.contents)} objects")
        self.resources.remove(old)
        if old.kind == "AWS::Glue::Job":
            self.abandoned |= self.runs.pop(old.name, set())

    def minute(self) -> None:
        """A minute passes: the control plane starts the jobs that do not run, unless its schedule is disabled."""
        for schedule in self.of_kind("AWS::Events::Rule"):
            is_of_control = "ScheduleExpression" in schedule.properties and "ControlFunction" in str(
                schedule.properties
            )
            if is_of_control and schedule.name not in self.disabled:
                for job in (each for each in self.of_kind("AWS::Glue::Job") if each.stack == schedule.stack):
                    if not self.runs.get(job.name):
                        self.runs[job.name] = {f"jr_of_{job.name}"}
