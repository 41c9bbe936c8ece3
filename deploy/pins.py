"""The versions that are shipped: those of requirements.txt, for the named packages and all their dependencies."""

import sys
import tomllib
from collections.abc import Iterable
from importlib.metadata import requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import ROOT

FUNCTION_PACKAGES = ("orjson", "pydantic")

RUNTIME_OF_FUNCTIONS = frozenset({"boto3", "botocore", "urllib3", "s3transfer", "jmespath", "dateutil", "six"})
"""Part of Lambda's Python runtime."""

ON_GLUE_5 = frozenset({"pyarrow", "boto3"})
"""Packages that Glue 5.1 brings in versions of its own."""


def pins() -> dict[str, str]:
    """The version of every package in requirements.txt, by its normalised name."""
    lines = (ROOT / "requirements.txt").read_text().splitlines()
    return {
        canonicalize_name(name): version for name, _, version in (line.partition("==") for line in lines) if version
    }


def pinned(names: Iterable[str]) -> list[str]:
    """Requirements such as `orjson==3.10.0` for packages and their dependencies, sorted."""
    versions = pins()
    waiting = [canonicalize_name(name) for name in names]
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += [canonicalize_name(each.name) for each in map(Requirement, requires(name) or ()) if _holds(each)]
    return [f"{name}=={versions[name]}" for name in sorted(found)]


def job_packages(left_out: frozenset[str] = frozenset()) -> list[str]:
    """What the job needs by pyproject.toml beside Spark, which is part of Glue, without those left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["aws"]]
    names = (Requirement(each).name for each in wanted)
    return [name for name in names if name not in left_out]


def job_modules() -> str:
    """What pip installs on Glue 5.1, in the form of `--additional-python-modules`."""
    versions = pins()
    return ",".join(f"{name}=={versions[canonicalize_name(name)]}" for name in job_packages(ON_GLUE_5))


def _holds(requirement: Requirement) -> bool:
    return requirement.marker is None or requirement.marker.evaluate({"extra": ""})


if __name__ == "__main__":
    sys.stdout.write("\n".join(pinned(job_packages())) + "\n")
