"""Settings as files: for tests that run commands."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from compactor.settings.toml import toml_of


def folder_settings(root: Path | str, **sections: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Settings on plain folders below `root`: `m`, `o` and `s` are the job's places, `raw` is the input.

    Args:
        root: A folder.
        sections: Added to these, or in place of them.
    """
    paths = {"manifests": f"{root}/m", "output": f"{root}/o", "state": f"{root}/s"}
    return {"paths": paths, "input": {"allowed_prefixes": [f"{root}/raw"]}, "metrics": {"sink": "none"}, **sections}


def write_settings(root: Path, **sections: Mapping[str, Any]) -> Path:
    """Write `folder_settings` into `settings.toml` below `root`; its path."""
    path = root / "settings.toml"
    path.write_text(toml_of(folder_settings(root, **sections)))
    return path
