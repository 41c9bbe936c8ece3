"""Reads settings from a local file or from S3, where the functions and the Glue job have theirs."""

from collections.abc import Mapping
from pathlib import Path

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import ObjectNotFound, SettingsError
from compactor.core.layout import is_s3
from compactor.core.ports import ObjectStore
from compactor.settings.settings import SECTIONS, Settings, load_settings, parse_settings, parse_toml
from compactor.settings.validation import Source, read_environment


def settings_at(
    place: str, env: Mapping[str, str], *, timeout_seconds: float = 60, attempts: int | None = None
) -> Settings:
    """Read the settings in S3 or in a local file, and apply the variables that override them.

    AWS_REGION and the overrides of section `aws` say how to reach the place. The last arguments are fields of
    `StoreSpec`.

    Raises:
        SettingsError: With every fault.
        AccessError: The place may not be read.
    """
    if not is_s3(place):
        return load_settings(Path(place), env)
    try:
        data = store_of_settings(env, timeout_seconds=timeout_seconds, attempts=attempts).read(place)
    except ObjectNotFound as exc:
        raise SettingsError([f"{place}: there is no such object -> expected a settings file"]) from exc
    return parse_settings(parse_toml(data, place), env, place)


def store_of_settings(
    env: Mapping[str, str], *, timeout_seconds: float = 60, attempts: int | None = None
) -> ObjectStore:
    """Open the store that has settings in S3. No settings are known yet, so variables say how to reach it."""
    source = Source()  # its faults are told when the settings are read
    read_environment(env, {"aws": SECTIONS["aws"]}, source)
    aws = {key: str(value) for key, value in source.values.get("aws", {}).items()}
    region = aws.get("region") or env.get("AWS_REGION")
    return StoreSpec(region, aws.get("endpoint_url"), timeout_seconds=timeout_seconds, attempts=attempts).open()
