"""Reads the parameters of an environment that its settings do not contain, and the tags of its resources."""

import json
from pathlib import Path

from compactor.core.errors import SettingsError

_TAGS = "Tags"
_MOST_TAGS = 49  # CloudFormation takes 50, and one is `application`


def read_parameters(path: Path) -> tuple[dict[str, str], dict[str, str]]:
    """The parameters of a file in `deploy/parameters/`, and the tags under its key `Tags`.

    Raises:
        SettingsError: It cannot be read, or is no object of strings with at most one object of strings in it.
    """
    try:
        given = json.loads(path.read_text())
    except (OSError, ValueError) as exc:
        raise SettingsError([f"{path}: {exc} -> expected an object with one string per parameter"]) from exc
    tags = given.pop(_TAGS, {}) if isinstance(given, dict) else {}
    if not _are_strings(given) or not _are_strings(tags):
        raise SettingsError(
            [f"{path}: expected an object with one string per parameter, and the tags as an object under {_TAGS}"]
        )
    if faults := [f"{path}: {_TAGS}.{key} -> expected {why}" for key in tags for why in _tag_faults(key, tags[key])]:
        raise SettingsError(faults)
    if len(tags) > _MOST_TAGS:
        raise SettingsError([f"{path}: {len(tags)} {_TAGS} -> expected at most {_MOST_TAGS}"])
    return given, tags


def _tag_faults(key: str, value: str) -> list[str]:
    """What is wrong with a tag [CloudFormation API, Tag]."""
    wrong = {
        "1 to 128 characters": not 1 <= len(key) <= 128,  # noqa: PLR2004 - as the text says
        "a value of 1 to 256 characters": not 1 <= len(value) <= 256,  # noqa: PLR2004 - as the text says
        "a key without the prefix aws:": key.lower().startswith("aws:"),
        "a different key: the stack sets application itself": key == "application",
    }
    return [why for why, is_wrong in wrong.items() if is_wrong]


def _are_strings(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(each, str) for each in value.values())
