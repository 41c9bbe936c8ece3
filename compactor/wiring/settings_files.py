"""Finds and reads the settings of a command, of the functions and of a Glue job, whose arguments override them."""

import argparse
import grp
import os
import pwd
import re
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import AccessError, ObjectNotFound, SettingsError
from compactor.core.inputs.source_places import SourcePlace
from compactor.core.layout import folder, is_s3
from compactor.core.ports import ObjectStore
from compactor.settings.compact_paths import HOME_SUFFIX, SETTINGS_NAME
from compactor.settings.places import parse_own_place, real_place
from compactor.settings.settings import SECTIONS, Settings, load_settings, parse_settings, parse_toml
from compactor.settings.validation import ENV_PREFIX, ENV_SEPARATOR, Source, read_environment


class NoSettingsError(SettingsError):
    """A command was given no settings and found none."""

    next_move = "name DST or a settings file, or run `compactor init`; then run it again"


def settings_at(
    place: str, env: Mapping[str, str], *, timeout_seconds: float = 60, attempts: int | None = None
) -> Settings:
    """Read the settings in S3 or in a local file, and apply overriding environment variables.

    AWS_REGION and the overrides for section `aws` define the connection. The last arguments are fields of `StoreSpec`.

    Raises:
        SettingsError: Lists every fault.
        AccessError: Reading them is not permitted.
    """
    if not is_s3(place):
        return load_settings(Path(place), env)
    try:
        data = store_of_settings(env, timeout_seconds=timeout_seconds, attempts=attempts).read(place)
    except ObjectNotFound as exc:
        raise SettingsError([f"{place}: no such object -> expected a settings file"]) from exc
    return parse_settings(parse_toml(data, place), env, place)


def store_of_settings(
    env: Mapping[str, str], *, timeout_seconds: float = 60, attempts: int | None = None
) -> ObjectStore:
    """Open the store of settings in S3. No settings are known yet, so environment variables define the connection."""
    source = Source()  # its faults are reported when the settings are read
    read_environment(env, {"aws": SECTIONS["aws"]}, source)
    aws = {key: str(value) for key, value in source.values.get("aws", {}).items()}
    region = aws.get("region") or env.get("AWS_REGION")
    return StoreSpec(region, aws.get("endpoint_url"), timeout_seconds=timeout_seconds, attempts=attempts).open()


_KNOWN = re.compile(rf"--(CONFIG|STREAM|SHARD|{ENV_PREFIX}[^=]*)(=.*)?", re.DOTALL)


def job_arguments(argv: Sequence[str]) -> dict[str, str]:
    """The known arguments, by name, in the forms `--NAME value` and `--NAME=value`.

    The first element of `argv` is the script. Glue's own arguments are skipped. Names starting with `COMPACTOR_` are
    checked where environment variables are read.

    Raises:
        SettingsError: `--CONFIG` is missing, an argument has no value, or one cannot be a setting's name.
    """
    present = sorted({found[1] for text in argv[1:] if (found := _KNOWN.fullmatch(text))})
    faults = [
        f"--{name}: not a setting's name -> expected --{ENV_PREFIX}<SECTION>{ENV_SEPARATOR}<KEY>"
        for name in present
        if name.startswith(ENV_PREFIX) and ENV_SEPARATOR not in name
    ]
    if "CONFIG" not in present:
        faults.append("--CONFIG: missing from the job's arguments -> expected the settings' place")
    if faults:
        raise SettingsError(faults)
    parser = _Parser(allow_abbrev=False, add_help=False)
    for name in present:
        parser.add_argument(f"--{name}", dest=name, required=True)
    return vars(parser.parse_known_args(argv[1:])[0])


def overriding(arguments: Mapping[str, str]) -> dict[str, str]:
    """The arguments that override settings, as the equivalent environment variables."""
    return {name: value for name, value in arguments.items() if name.startswith(ENV_PREFIX)}


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError([f"job arguments: {message}"])


def settings_place(
    config: str | None, destination: str | None, env: Mapping[str, str], *, hint: str = "", dst: str = "DST"
) -> str:
    """The place of a call's settings: a path or `s3://bucket/key`; empty if environment variables have all of them.

    The most specific one counts: `--config`, else DST, else COMPACTOR_CONFIG, else `compactor.toml` in the current
    folder. `dst` is how the call takes DST, for the message.

    Raises:
        SettingsError: There are none, and the message says where they were looked for; or others may have written
            those that were found and not named.
        AccessError: The place of DST may not be read.
    """
    if config:
        return config
    if destination is not None:
        return _of_destination(destination, env, hint)
    if named := env.get("COMPACTOR_CONFIG"):
        return named
    if Path(SETTINGS_NAME).is_file():
        check_trusted(Path(SETTINGS_NAME), "name them by --config")
        return SETTINGS_NAME
    if any(name.startswith("COMPACTOR_") and "__" in name for name in env):
        return ""
    here = f"{folder(str(Path.cwd()))}{SETTINGS_NAME}"
    found = f"no settings: no {dst}, no --config, no $COMPACTOR_CONFIG, and no {here}"
    expected = "the DST of an earlier `compactor compact`, or a settings file: run `compactor init`"
    raise NoSettingsError([f"{found} -> expected {expected}"])


def _of_destination(destination: str, env: Mapping[str, str], hint: str) -> str:
    candidates = _candidates(destination)
    found = _found(candidates, env)
    if found is None:
        missing = "" if is_s3(candidates[-1]) or Path(candidates[-1]).parent.exists() else "no such folder; "
        looked = f"DST: {destination}: {missing}no settings there; looked for {' and '.join(candidates)}"
        raise SettingsError(
            [f"{looked} -> expected the DST of an earlier `compactor compact`, or the place of its --state{hint}"]
        )
    if len(candidates) > 1 and not is_s3(found):
        check_trusted(Path(found), "name them by --config")
    return found


def check_trusted(path: Path, way_out: str) -> None:
    """Check that only this user or root can have written a local settings file that was found, not named.

    Settings can run code, by `spark.conf` for example. The file and its folder must be this user's or root's, and
    no other user may write them; a link must be theirs as well. A group may write if it is the user's own, as with a
    umask of 002. Under sudo, the user is the one who called it. The folder may be one such as /tmp, where users can
    only remove files of their own.

    Args:
        path: The file, or a link to it.
        way_out: What the user can do instead of changing owners and modes.

    Raises:
        SettingsError: Another user may have written it.
    """
    users = {os.geteuid(), 0}
    if os.geteuid() == 0 and os.environ.get("SUDO_UID", "").isdecimal():
        users.add(int(os.environ["SUDO_UID"]))
    named, real = path.absolute(), path.resolve()
    for each in dict.fromkeys([named.parent, named, real.parent, real]):
        facts = each.lstat() if each == named else each.stat()
        is_kept = stat.S_ISLNK(facts.st_mode) or (stat.S_ISDIR(facts.st_mode) and facts.st_mode & stat.S_ISVTX)
        may_write = stat.S_IWOTH if _is_own_group(facts.st_gid, users) else stat.S_IWOTH | stat.S_IWGRP
        if facts.st_uid not in users or (facts.st_mode & may_write and not is_kept):
            found = f"{path}: other users may write {each} (owner {facts.st_uid}, mode {stat.S_IMODE(facts.st_mode):o})"
            raise SettingsError([f"{found} -> expected settings that only you or root can change; or {way_out}"])


def _is_own_group(gid: int, users: set[int]) -> bool:
    """Whether a group is named like one of the users and has no other members, or is unnamed and this process's."""
    try:
        group = grp.getgrgid(gid)
        names = {pwd.getpwuid(user).pw_name for user in users}
    except KeyError:  # in a container, user and group may be numbers alone
        return gid == os.getegid()
    return group.gr_name in names and set(group.gr_mem) <= names


def _candidates(destination: str) -> tuple[str, ...]:
    """Possible places of a destination's settings: next to it, in it (the place of --state), or the file itself."""
    try:
        # As in `compact`: a folder reached through a different link has the same settings.
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


def check_sources(sources: Sequence[SourcePlace], argument: str = "SRC") -> None:
    """Check that the local sources of an argument exist; a `SettingsError` has the first fault."""
    for place in sources:
        if not is_s3(place.folder) and not Path(place.folder).is_dir():
            raise SettingsError(
                [f"{argument}: {place.folder} does not exist -> expected a file, or a folder with NDJSON files"]
            )
