"""What pyproject.toml asks for."""

import re
import tomllib

from compactor.core.extras import DISTRIBUTION
from deploy import ROOT


def required() -> dict[str, list[str]]:
    """The requirements as they are written: under no name for the package, else by extra or group."""
    document = tomllib.loads((ROOT / "pyproject.toml").read_text())
    project = document["project"]
    groups = {"": project["dependencies"], **project["optional-dependencies"], **document["dependency-groups"]}
    return {
        name: [each for each in group if isinstance(each, str) and not each.startswith(DISTRIBUTION)]
        for name, group in groups.items()
    }


def declared() -> dict[str, set[str]]:
    """The names of the required packages: under no name for the package, else by extra or group."""
    return {name: {re.split(r"[\[=<>]", each)[0].lower() for each in packages} for name, packages in required().items()}
