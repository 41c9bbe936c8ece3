"""The faults of the first template and of the code of its time, each with what reintroduces it and what shows it."""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from unittest.mock import patch

from compactor.adapters.memory.glue import MemoryGlue
from deploy.resolved import Document
from tests.deployment.looks import (
    World,
    environment,
    lost_builder,
    metrics,
    new_account,
    new_key,
    page,
    real_bucket,
    refused_starts,
    repaired,
    restored,
    second_try,
    spark_ui,
    window,
)


def _job_role(world: World, sid: str) -> Document:
    [policy] = world.document["Resources"]["JobRole"]["Properties"]["Policies"]
    [found] = [each for each in policy["PolicyDocument"]["Statement"] if each.get("Sid") == sid]
    statement: Document = found
    return statement


def _old_environment(world: World) -> None:
    arguments = world.document["Resources"]["Job"]["Properties"]["DefaultArguments"]
    modules = arguments["--additional-python-modules"]
    arguments["--additional-python-modules"] = modules.replace("2_28", "2_35")


def _old_modules(world: World) -> None:
    arguments = world.document["Resources"]["Job"]["Properties"]["DefaultArguments"]
    world.parameters["JobModules"] = arguments["--additional-python-modules"]
    world.document["Parameters"]["JobModules"] = {"Type": "String"}
    arguments["--additional-python-modules"] = {"Ref": "JobModules"}


def _old_retention(world: World) -> None:
    for each in world.document["Resources"].values():
        if each.get("DeletionPolicy") == "RetainExceptOnCreate":
            each["DeletionPolicy"] = "Retain"


def _old_concurrency(world: World) -> None:
    reserved = {"BuilderFunction": {"Ref": "BuilderConcurrency"}, "SealerFunction": 1, "ControlFunction": 1}
    for name, number in reserved.items():
        world.document["Resources"][name]["Properties"]["ReservedConcurrentExecutions"] = number


def _old_page(world: World) -> None:
    world.page = world.page.replace("/output", "/error").replace(
        "config/prod.toml", "s3://lake/compactor/settings.toml"
    )


def _old_bucket(world: World) -> None:
    del world.document["Resources"]["WorkBucket"]["Properties"]["VersioningConfiguration"]


def _old_tables(world: World) -> None:
    _job_role(world, "AddColumns")["Action"] = "glue:GetTable"


def _old_window(world: World) -> None:
    world.document["Conditions"]["StatesTimeout"] = {"Fn::Not": [{"Fn::Equals": [{"Ref": "JobTimeoutMinutes"}, 0]}]}


def _old_lease(world: World) -> None:
    world.document["Resources"]["EventQueue"]["Properties"]["VisibilityTimeout"] = 900
    world.lease_seconds = 900


def _old_refusals(world: World) -> None:
    world.code = lambda: patch("compactor.control.diagnosis.alarms._of_refusals", lambda _: iter(()))


def _old_metrics(world: World) -> None:
    arguments = world.document["Resources"]["Job"]["Properties"]["DefaultArguments"]
    arguments |= {"--enable-metrics": "true", "--enable-observability-metrics": "true"}


class Undated(MemoryGlue):
    """A job whose definition is not asked for."""

    def defined_at(self) -> None:
        return None


def _old_breaker(world: World) -> None:
    world.glue = Undated


def _old_spark_ui(world: World) -> None:
    for sid in ("Read", "Delete"):
        places = _job_role(world, sid)["Resource"]
        places[:] = [each for each in places if "spark-ui" not in json.dumps(each)]


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault.

    Attributes:
        reintroduce: Makes the world as it was.
        shown: What shows the fault, as a line for each thing that is wrong.
        words: Words of such a line.
        given: Parameters that it needs to show.
    """

    name: str
    reintroduce: Callable[[World], None]
    shown: Callable[[World], Iterator[str]]
    words: str
    given: tuple[tuple[str, str], ...] = ()


FAULTS = (
    Fault("an environment of another machine", _old_environment, environment, "needs glibc 2.35"),
    Fault("a parameter with all wheels", _old_modules, real_bucket, "[size of a parameter]"),
    Fault("names that a failed creation keeps", _old_retention, second_try, "already exists [name is taken]"),
    Fault("reserved concurrency in a new account", _old_concurrency, new_account, "[unreserved executions]"),
    Fault("a log group that is empty", _old_page, page, "Glue writes nothing to the log group error"),
    Fault("settings that nothing writes", _old_page, page, "nothing writes s3://lake/compactor/settings.toml"),
    Fault("a state bucket without versions", _old_bucket, restored, "there is no older version"),
    Fault("tables without new columns", _old_tables, new_key, "not authorized: glue:UpdateTable"),
    Fault(
        "a window beside a timeout",
        _old_window,
        window,
        "a run ends after 10079 minutes, and Glue restarts none",
        (("MaintenanceWindow", "Sun:10"),),
    ),
    Fault("a lease that outlives the message", _old_lease, lost_builder, "the file waits for 1800 s"),
    Fault("refused starts that no one hears of", _old_refusals, refused_starts, "no alarm"),
    Fault(
        "metrics that are bought and not read", _old_metrics, metrics, "nothing reads the metrics of --enable-metrics"
    ),
    Fault("a breaker that outlives its repair", _old_breaker, repaired, "the breaker stays open"),
    Fault("a Spark UI that may only write", _old_spark_ui, spark_ui, "the role may not s3:DeleteObject"),
)
