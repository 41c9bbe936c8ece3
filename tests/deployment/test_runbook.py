"""What operators read is what the alarms say."""

import re

from compactor.cost import Assumptions
from tests.deployment.resolving import ROOT, parameters_of, resources, template

README = (ROOT / "deploy" / "README.md").read_text()
_ROW = re.compile(r"\| `(?P<name>[a-z-]+)` \| (?P<means>.+) \| (?P<do>.+) \|")


def test_the_table_of_alarms() -> None:
    """Every alarm has one row that tells in the alarm's own words what it means and what to do."""
    parameters = parameters_of("prod")
    found = resources(template(), parameters).values()
    alarms = [each["Properties"] for each in found if each["Type"] == "AWS::CloudWatch::Alarm"]
    told = {alarm["AlarmName"].removeprefix(f"{parameters['JobName']}-"): alarm["AlarmDescription"] for alarm in alarms}
    rows = {row["name"]: f"{row['means']} {row['do']}" for row in _ROW.finditer(README)}
    assert rows == told


def test_commands_and_parameters_exist() -> None:
    """Commands of make, files and parameters that the page names are there."""
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"^make ([a-z-]+)", README, re.MULTILINE):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for path in re.findall(r"^deploy/\S+", README, re.MULTILINE):
        assert (ROOT / path).is_file(), path
    known = template()["Parameters"]
    for name in re.findall(r"`\"?([A-Z][a-z]+[A-Z][A-Za-z]+)\"?[`:]", README):
        assert name in known, name


def test_costs_go_by_the_template() -> None:
    """`compactor cost` reckons with as many alarms as there are, and with the memory of the functions."""
    found = resources(template(), parameters_of("prod")).values()
    assert Assumptions().alarms == sum(each["Type"] == "AWS::CloudWatch::Alarm" for each in found)
    sizes = [each["Properties"]["MemorySize"] for each in found if each["Type"] == "AWS::Lambda::Function"]
    assert Assumptions().function_gb == max(sizes) / 1024
