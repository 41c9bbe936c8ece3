"""CONTRIBUTING shows the layers that import-linter enforces."""

import re
import tomllib

from tests.support.housekeeping import ROOT


def test_contributing_shows_the_layers() -> None:
    """The table has the folders of the contract, in its order."""
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(each["layers"] for each in contracts if each["name"] == "Layers")
    table = (
        (ROOT / "CONTRIBUTING.md").read_text().partition("<!-- layers, top down -->")[2].partition("<!-- layers end")[0]
    )
    shown = [re.findall(r"`(\w+)`", row.split("|")[1]) for row in table.splitlines() if row.startswith("| `")]
    assert shown == [layer.split(" | ") for layer in layers]
