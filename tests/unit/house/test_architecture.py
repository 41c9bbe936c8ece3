"""The walls of the house: who may import what."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).resolve().parents[3] / "compactor"
MODULES = sorted(PACKAGE.rglob("*.py"))

VENDORS = {
    "boto3": ("adapters/aws/",),
    "botocore": ("adapters/aws/",),
    "pyspark": ("adapters/spark/",),
    "moto": ("demo/",),
    "click": ("cli/", "demo/"),
    "rich": ("cli/", "demo/"),
    "sqlite3": ("adapters/",),
    "jinja2": ("report/",),
    "markupsafe": ("report/",),
    "pygal": ("report/",),
}
"""Each vendor's package, and the only folders that may import it."""

PURE = (
    *("attempts", "backoff", "column_types", "distributions", "errors", "inspection", "layout", "manifest", "metrics"),
    *("document_tables", "error_text", "log_events", "data_files", "line_splitting", "lines", "s3_events", "work_time"),
    *("measured_cost", "status.flow", "status.spent", "status.standing", "status.values"),
    "wording",
    *("report.period", "report.tally", "report.figures", "report.charts", "report.verdict"),
    *("control.runs", "control.policy", "control.snapshot", "control.actions", "control.history", "control.symptoms"),
    *("control.decisions", "control.alarms", "control.advice", "doctor.findings"),
    *(
        "one_folder",
        "packing",
        "places",
        "prices",
        "rawjson",
        "records",
        "redrive.selection",
        "schema",
        "sizing",
        "spark_conf",
        "spark_names",
        "steps",
        "toml_text",
    ),
)
NO_INPUT_OUTPUT = {"os", "pathlib", "socket", "subprocess", "tempfile", "time", "threading", "shutil", "random"}


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_each_vendor_is_imported_in_one_place(path: Path) -> None:
    """A vendor's package is imported by its adapter alone."""
    place = path.relative_to(PACKAGE).as_posix()
    for name in imported(path):
        folders = VENDORS.get(name.split(".")[0])
        assert folders is None or place.startswith(folders), f"{place} imports {name}"


@pytest.mark.parametrize("name", PURE)
def test_values_and_decisions_do_no_input_or_output(name: str) -> None:
    """Pure modules import nothing that reads a clock, a disk or a network, and no module that does."""
    modules = imported(PACKAGE.joinpath(*name.split(".")).with_suffix(".py"))
    own = {module.removeprefix("compactor.") for module in modules if module.startswith("compactor.")}
    allowed = {*PURE, "codecs"}
    assert own <= allowed
    assert name == "places" or not {module.split(".")[0] for module in modules} & NO_INPUT_OUTPUT
