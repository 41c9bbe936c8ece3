"""The exact versions that are installed and shipped: the files of locks/, which `make lock` writes, with hashes."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from deploy import ROOT

LOCKS = ROOT / "locks"

ON_GLUE_5 = frozenset({"pyarrow", "boto3"})
"""Packages that Glue 5.1 brings in versions of its own."""

_PIN = re.compile(r"^([\w.-]+)==([^\s;\\]+)", re.MULTILINE)


def lock_file(name: str) -> Path:
    """The lock file `base`, `job`, `functions`, `development` or `release`."""
    return LOCKS / f"{name}.txt"


def locked(name: str) -> dict[str, str]:
    """The version of every package in a lock file, by its normalised name."""
    return {canonicalize_name(package): version for package, version in _PIN.findall(lock_file(name).read_text())}


def job_packages(left_out: frozenset[str] = frozenset()) -> list[str]:
    """What the job needs by pyproject.toml beside Spark, which is part of Glue, without those left out."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = [*project["dependencies"], *project["optional-dependencies"]["aws"]]
    names = (Requirement(each).name for each in wanted)
    return [name for name in names if name not in left_out]


def job_modules() -> list[str]:
    """What pip installs from an index on Glue 5.1, as `package==version`."""
    versions = locked("job")
    return [f"{name}=={versions[canonicalize_name(name)]}" for name in job_packages(ON_GLUE_5)]
