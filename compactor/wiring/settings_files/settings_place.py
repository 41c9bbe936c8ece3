"""Finds the settings of a command: those of a destination, of a named file, or of the current folder."""

from collections.abc import Callable, Mapping
from pathlib import Path

from compactor.core.errors import AccessError, SettingsError
from compactor.core.layout import MANIFEST_ID, folder, is_s3
from compactor.settings.compact_paths import HOME_SUFFIX, SETTINGS_NAME
from compactor.settings.places import parse_own_place, real_place
from compactor.wiring.settings_files.remote_settings import store_of_settings


def settings_place(config: str | None, destination: str | None, env: Mapping[str, str]) -> str:
    """Where the settings of a call are: a path or `s3://bucket/key`; empty if variables alone have them.

    The most specific one counts: `--config`, else DST, else COMPACTOR_CONFIG, else `compactor.toml` in the current
    folder.

    Raises:
        SettingsError: There are none. The message says where they were looked for.
        AccessError: The place of DST may not be read.
    """
    if config:
        return config
    if destination is not None:
        return _of_destination(destination, env)
    if named := env.get("COMPACTOR_CONFIG"):
        return named
    if Path(SETTINGS_NAME).is_file():
        return SETTINGS_NAME
    if any(name.startswith("COMPACTOR_") and "__" in name for name in env):
        return ""
    here = f"{folder(str(Path.cwd()))}{SETTINGS_NAME}"
    found = f"no settings: no DST, no --config, no $COMPACTOR_CONFIG, and no {here}"
    expected = "the DST of an earlier `compactor compact`, or a settings file: run `compactor init`"
    raise SettingsError([f"{found} -> expected {expected}"])


def is_destination(word: str, env: Mapping[str, str]) -> bool:
    """Return whether a word of a command is meant as DST: it cannot be a manifest's id, or settings are there."""
    if not MANIFEST_ID.fullmatch(word):
        return True
    return _found(_candidates(word), env) is not None


def is_output(word: str, env: Mapping[str, str]) -> bool:
    """Return whether a word names the local DST of an earlier `compact`, whose settings are there."""
    try:
        return not is_s3(word) and _found(_candidates(word), env) is not None
    except SettingsError:  # a pattern, for example
        return False


def _of_destination(destination: str, env: Mapping[str, str]) -> str:
    candidates = _candidates(destination)
    found = _found(candidates, env)
    if found is None:
        looked = f"DST: {destination}: no settings there; looked for {' and '.join(candidates)}"
        raise SettingsError(
            [f"{looked} -> expected the DST of an earlier `compactor compact`, or the place of its --state"]
        )
    return found


def _candidates(destination: str) -> tuple[str, ...]:
    """Where the settings of a destination may be: beside it, in it (the place of --state), or it is the file itself."""
    try:
        # As `compact` does: a folder that is reached by another link has the same settings.
        place = real_place(parse_own_place(destination))
    except ValueError as exc:
        raise SettingsError([f"DST: {destination!r} -> expected {exc}"]) from exc
    if place.endswith(".toml"):
        return (place,)
    return f"{place}{HOME_SUFFIX}/{SETTINGS_NAME}", f"{folder(place)}{SETTINGS_NAME}"


def _found(candidates: tuple[str, ...], env: Mapping[str, str]) -> str | None:
    return next(filter(_exists(candidates[0], env), candidates), None)


def _exists(place: str, env: Mapping[str, str]) -> Callable[[str], bool]:
    if not is_s3(place):
        return _is_local_file
    store = store_of_settings(env)
    return lambda uri: store.stat(uri) is not None


def _is_local_file(path: str) -> bool:
    try:
        return Path(path).is_file()
    except PermissionError as exc:
        raise AccessError(f"cannot read {path}: permission denied") from exc
