"""Which versions are shipped: those of requirements.txt, for the packages named and all that these need."""

import re
import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[1]

RUNTIME_OF_FUNCTIONS = frozenset({"boto3", "botocore", "urllib3", "s3transfer", "jmespath", "dateutil", "six"})
"""What Lambda's own runtime brings."""

FUNCTION_PACKAGES = ("orjson", "pydantic")

REPORT_PACKAGES = frozenset({"Jinja2", "MarkupSafe", "pygal"})
"""What only `compactor report` imports."""

NOT_IN_THE_JOB = frozenset({"pyspark"}) | REPORT_PACKAGES
"""What Glue's Spark is, and what the job does not import."""

ON_GLUE_5 = frozenset({"pyarrow", "boto3"}) | NOT_IN_THE_JOB
"""What Glue 5.1 brings in versions of its own, and what the job does not import."""


def pins() -> dict[str, str]:
    """The version of every package, by its normalised name."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return {_normalised(name): version for name, _, version in (line.partition("==") for line in lines) if version}


def pinned(names: Iterable[str]) -> list[str]:
    """Packages with their versions, and those of all that they need."""
    versions = pins()
    waiting = [_normalised(name) for name in names]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [_normalised(each.name) for each in map(Requirement, requires(name) or ()) if _holds(each)]
    return [f"{name}=={versions[name]}" for name in sorted(found)]


def job_packages(left_out: frozenset[str]) -> list[str]:
    """What pyproject.toml says that the package needs, but for some."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = (Requirement(each).name for each in project["dependencies"])
    return [name for name in names if name not in left_out]


def job_modules() -> str:
    """What pip is to install on Glue 5.1, as its argument takes it."""
    versions = pins()
    return ",".join(f"{name}=={versions[_normalised(name)]}" for name in job_packages(ON_GLUE_5))


def _holds(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


def _normalised(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


if __name__ == "__main__":
    sys.stdout.write("\n".join(pinned(job_packages(NOT_IN_THE_JOB))) + "\n")
