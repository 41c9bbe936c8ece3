"""The operators' pages match the alarms, and the reasons, states and exit codes in the code."""

import json
import re
from typing import get_args

from compactor.cli.ui.failures import ExitCode
from compactor.control.diagnosis.health import Condition, Word
from compactor.core.documents import manifest
from compactor.core.documents.records import FileStatus
from compactor.core.errors import StuckError
from compactor.cost.cost import ALARMS, FUNCTION_GB
from compactor.cost.prices import DPU_PER_WORKER
from compactor.ndjson import inspection
from compactor.ops.status.health import STALE_PENDING
from deploy.template_file import load_template
from tests.deployment.resolving import ROOT, parameters_of, resources, template
from tests.support.document_commands import check_command
from tests.support.statuses import STATUSES

DEPLOYING = (ROOT / "deploy" / "README.md").read_text()
OPERATIONS = "".join((ROOT / "docs" / name).read_text() for name in ("runbook.md", "not-processed.md"))

LIMITS = {
    "stuck": set(),
    "behind": {"control.sla_seconds"},
    "needs_you": {"builder.max_wait_seconds"},
}
"""The settings that decide each state word."""


def table(heading: str) -> dict[str, list[str]]:
    """The rows of the table below a heading: the other cells by the first cell."""
    _, found, rest = OPERATIONS.partition(f"{heading}\n")
    assert found, f"no heading {heading}"
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.MULTILINE)[0]
    rows = [
        [cell.strip() for cell in line.strip("|").split(" | ")] for line in section.splitlines() if line[:2] == "| "
    ]
    return {row[0].strip("`"): row[1:] for row in rows[1:]}


def test_the_table_of_alarms() -> None:
    """Every alarm has one row with the text of its description and the widgets to check."""
    parameters = parameters_of("prod")
    found = resources(template(), parameters).values()
    alarms = [each["Properties"] for each in found if each["Type"] == "AWS::CloudWatch::Alarm"]
    described = {
        alarm["AlarmName"].removeprefix(f"{parameters['JobName']}-"): re.sub(
            rf"(ENV=|/){parameters['Environment']}\b", r"\1<environment>", alarm["AlarmDescription"]
        ).replace(parameters["JobName"], "<job>")
        for alarm in alarms
    }
    rows = table("## Alarms")
    assert {name: f"{means} {do}" for name, (means, _, do) in rows.items()} == described
    dashboards = [each["Properties"] for each in found if each["Type"] == "AWS::CloudWatch::Dashboard"]
    widgets = {each["properties"].get("title") for each in json.loads(dashboards[0]["DashboardBody"])["widgets"]}
    for name, (_, where, _) in rows.items():
        named = set(re.findall(r"\*([^*]+)\*", where))
        assert named, f"{name} names no widget"
        assert named <= widgets, f"{name} names {named - widgets}"
    queues = {each["Properties"]["QueueName"] for each in found if each["Type"] == "AWS::SQS::Queue"}
    for queue in re.findall(r"the queue `<job>-([a-z-]+)`", OPERATIONS):
        assert f"{parameters['JobName']}-{queue}" in queues


def test_every_reason_has_its_next_move() -> None:
    """Each reason for a dead letter, a quarantined file, a reject, a stuck manifest or an exit code has one row."""
    for heading, reasons in (("## Dead letters", manifest.REASONS), ("## Lines", inspection.REASONS)):
        (full,) = re.findall(rf"^{heading}.*$", OPERATIONS, re.MULTILINE)
        rows = table(full)
        assert {reason: cells[0] for reason, cells in rows.items()} == reasons
        assert all(len(cells) == 2 and cells[1] for cells in rows.values())
    (files,) = re.findall(r"^## Files.*$", OPERATIONS, re.MULTILINE)
    assert set(table(files)) == {*FileStatus, "replaced"} - {FileStatus.COMPACTED}
    stuck = (StuckError, *StuckError.__subclasses__())
    assert set(table("## Stuck manifests")) == {each.__name__ for each in stuck}
    assert set(table("## Exit codes")) == {str(code.value) for code in ExitCode}


def test_every_state_has_its_next_move() -> None:
    """Each word of `status` has one row, with the commands of its next action and the settings that decide it."""
    rows = table("## States")
    assert set(rows) == set(get_args(Word))
    for status in STATUSES.values():
        _, move = rows[status.state.word]
        for command in re.findall(r"compactor [a-z]+", status.state.next_move):
            assert command in move, f"{status.state.word}: {command}"
    assert [word for word, (_, move) in rows.items() if move.startswith("none")] == ["stopping", "running", "idle"]
    for word, limits in LIMITS.items():
        assert set(re.findall(r"`([a-z]+\.[a-z_]+)`", rows[word][0])) == limits
    assert f"{STALE_PENDING} times `builder.max_wait_seconds`" in rows["needs_you"][0]


def test_alarms_are_conditions() -> None:
    """Each CloudWatch alarm is named after its condition, except those of a few metrics."""
    conditions = {str(condition).replace("_", "-") for condition in Condition}
    assert set(table("## Alarms")) - conditions == {"long-batches", "control-plane-silent", "files-misdated"}


def test_commands_and_parameters_exist() -> None:
    """The make targets, files and parameters that the page names exist."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", DEPLOYING, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"^deploy/\S+", DEPLOYING, re.MULTILINE):
        assert (ROOT / path).is_file(), path
    known = template()["Parameters"] | load_template(ROOT / "deploy" / "runtime.yaml")["Parameters"]
    for name in re.findall(r"`\"?([A-Z][a-z]+[A-Z][A-Za-z]+)\"?[`:]", DEPLOYING):
        assert name in known, name


def test_what_only_an_account_can_prove() -> None:
    """The commands exist, and so do the tests that prove the rest."""
    _, _, section = DEPLOYING.partition("## What only an account can prove\n")
    lines = re.findall(r"^\| `([^`]+)`", section, re.MULTILINE)
    assert lines
    for line in lines:
        check_command(line)
    tests = "".join(path.read_text() for path in (ROOT / "tests" / "deployment").glob("test_*.py"))
    for name in re.findall(r"`(test_\w+)`", section):
        assert f"def {name}(" in tests, name


def test_every_worker_with_a_price_can_be_deployed() -> None:
    """What `compactor cost estimate` recommends, the template takes, and the other way round."""
    assert set(template()["Parameters"]["WorkerType"]["AllowedValues"]) == set(DPU_PER_WORKER)


def test_costs_go_by_the_template() -> None:
    """`compactor cost estimate` assumes the template's number of alarms and its largest function memory."""
    found = resources(template(), parameters_of("prod")).values()
    assert sum(each["Type"] == "AWS::CloudWatch::Alarm" for each in found) == ALARMS
    sizes = [each["Properties"]["MemorySize"] for each in found if each["Type"] == "AWS::Lambda::Function"]
    assert max(sizes) / 1024 == FUNCTION_GB
