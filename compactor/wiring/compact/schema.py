"""The schema file of `compactor compact`: checked before any work, and kept beside the state for later calls."""

from collections.abc import Callable, Iterable

from compactor.core.errors import AccessError, ObjectNotFound, SettingsError
from compactor.core.inputs.source_places import in_words
from compactor.core.ports import ObjectInfo
from compactor.settings import places
from compactor.settings.compact_paths import has_schema_file
from compactor.wiring.compact.folder import FolderSettings
from compactor.wiring.job.app import App

INFERRED_RECORDS = 100_000
"""How many records `--types infer` reads at most, spread over the files. Later values that do not fit are rescued."""


def checked_schema(folder: FolderSettings, app: App) -> bytes | None:
    """Read and check the schema file that the call or an earlier one names.

    Returns:
        What to keep; None if there is no file, or if a variable names one, which is not kept.

    Raises:
        SettingsError: It is missing, has faults, or contradicts the columns that DST has.
    """
    copy = folder.paths.schema_file
    if folder.settings.schema.file not in {"", copy}:
        app.job_registry.check_declared()
        return None
    named = folder.options.schema or (folder.kept or {}).get("schema", {}).get("file")
    if not named:
        return None
    where = "--schema" if folder.options.schema else "schema.file"
    try:
        place = places.parse_place(named)
    except ValueError as exc:
        raise SettingsError([f"{where}: {named!r} -> expected {exc}"]) from exc
    try:
        data = app.store.read(place)
    except ObjectNotFound as exc:
        raise SettingsError([f"{where}: {place} does not exist -> expected a schema file"]) from exc
    except AccessError as exc:
        raise SettingsError([f"{where}: {exc} -> expected a schema file"]) from exc
    app.check_schema_file(data, place)
    return data


def infers_types(folder: FolderSettings) -> bool:
    """Whether this call chooses the types: the first one with `--types infer`."""
    return folder.options.types == "infer" and not has_schema_file(folder.kept or {})


def check_inferable(folder: FolderSettings, app: App) -> None:
    """Check that the columns have no types yet.

    Raises:
        SettingsError: There are rows; a column never changes its type.
    """
    version = app.registry.latest().version
    if version and app.store.stat(folder.paths.schema_file) is None:
        raise SettingsError(
            [f"--types: {folder.paths.output} has columns since schema version {version} -> expected a new DST"]
        )


def inferred_schema(
    folder: FolderSettings, app: App, files: Iterable[ObjectInfo], on_file: Callable[[int], None]
) -> bytes:
    """Make a schema file from the input.

    Args:
        folder: The places and settings.
        app: The components.
        files: The input.
        on_file: Called after each file that was read, with how many these were.

    Raises:
        SettingsError: There is no record with a key.
    """
    from compactor.wiring.compact.suggesting import (  # noqa: PLC0415 - most calls infer no types
        rules_of,
        schema_file_of,
        suggester_of,
    )

    suggester = suggester_of(app.settings, app.store, on_file)
    survey = suggester.survey(in_words(folder.paths.sources), files, max_records=INFERRED_RECORDS)
    return schema_file_of(survey, rules_of(app.settings, folder.options)).encode()


def keep_schema(folder: FolderSettings, app: App, data: bytes) -> None:
    """Keep a schema file, before the settings that name it. Of two first calls that infer types, the faster one counts.

    Raises:
        SettingsError: The file of the faster call has faults.
    """
    copy = folder.paths.schema_file
    if infers_types(folder):
        if not app.store.create(copy, data):
            app.check_schema_file(app.store.read(copy), copy)
        return
    try:
        is_kept = app.store.read(copy) == data
    except ObjectNotFound:
        is_kept = False
    if not is_kept:
        app.store.put(copy, data)
