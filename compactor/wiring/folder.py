"""The folders of `compactor compact`: settings and schema file kept with the state, and checks before any work."""

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import CompactorError, ObjectNotFound, SettingsError
from compactor.core.layout import Layout, base_name, folder, is_data, is_s3
from compactor.core.ports import ObjectStore
from compactor.ledger.heartbeat import Runs
from compactor.settings import compact_paths
from compactor.settings.compact_paths import CompactPaths, Document, Options
from compactor.settings.settings import Settings, parse_settings, parse_toml
from compactor.settings.toml import toml_of
from compactor.wiring.settings_files import check_sources, check_trusted

_COMMENT = (
    "Written by `compactor compact`, which reads it again for the same DST. You may edit it; missing keys have their",
    "defaults. All other commands find it by DST, as in `compactor status DST`.",
)


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """The settings for one call with these places and options.

    Attributes:
        settings: All settings, with environment variables applied.
        document: The settings to keep, without environment variables.
        kept: The settings kept by an earlier call; None on the first call.
    """

    paths: CompactPaths
    options: Options
    settings: Settings
    document: Document
    kept: Document | None

    @property
    def remembered(self) -> list[str]:
        """This call's changes to the settings of an earlier one, each as a key with its value."""
        return [] if self.kept is None else compact_paths.remembered(self.options, self.kept, self.document)

    def keep(self, store: ObjectStore, runs: Runs) -> None:
        """Write the settings next to the state if they are new.

        Raises:
            SettingsError: A concurrent first call was faster, with different options.
            CompactorError: A run is active there that does not know this source.
        """
        kept, document = self.kept, self.document
        if kept is None:
            if store.create(self.paths.settings_file, _toml(document)):
                return
            # A concurrent first call was faster. Its source, possibly a different one, must stay in the settings.
            kept = _read(self.paths, store)
            _check_lasting(self.paths, self.options, kept)
            document = compact_paths.settings_document(self.paths, self.options, kept)
        if document == kept:
            return
        # A running job refuses manifests with files outside its known sources.
        if compact_paths.has_new_source(self.paths, kept) and (living := runs.living()):
            raise CompactorError(
                f"{self.paths.output}: run {living[0].run_id} is compacting other sources; wait until it has ended"
            )
        store.put(self.paths.settings_file, _toml(document))

    def with_threads(self, threads: int) -> Settings:
        """The settings with one manifest in flight per thread of this machine. Not kept."""
        stream = self.settings.stream.model_copy(update={"manifests_in_flight": threads})
        return dataclasses.replace(self.settings, stream=stream)


def folder_settings(paths: CompactPaths, options: Options, env: Mapping[str, str]) -> FolderSettings:
    """Build the settings for a call.

    The call's options override environment variables, which override earlier calls' kept settings, which override the
    defaults.

    Raises:
        SettingsError: Lists every fault.
        AccessError: Reading the kept settings is not permitted.
    """
    variables = compact_paths.other_variables(env, options)
    first = dataclasses.replace(options, keep=None)  # which needs a path that may be in the kept settings
    aws = parse_settings(compact_paths.settings_document(paths, first, None), variables).aws
    kept = _read(paths, StoreSpec.of(aws).open())
    _check_lasting(paths, options, kept)
    document = compact_paths.settings_document(paths, options, kept)
    settings = parse_settings(document, variables).of_folder(paths.handle)
    return FolderSettings(paths, options, settings, document, kept)


def _check_lasting(paths: CompactPaths, options: Options, kept: Document | None) -> None:
    if kept is not None and (faults := compact_paths.contradictions(paths, options, kept)):
        raise SettingsError(faults)


def _read(paths: CompactPaths, store: ObjectStore) -> Document | None:
    try:
        if not is_s3(paths.settings_file) and Path(paths.settings_file).exists():
            check_trusted(Path(paths.settings_file), "choose another --state")
        document = parse_toml(store.read(paths.settings_file), paths.settings_file)
    except ObjectNotFound:
        return None
    if not all(isinstance(table, dict) for table in document.values()):
        raise SettingsError(
            [f"{paths.settings_file}: has keys outside sections -> expected the sections of a settings file"]
        )
    return document


def _toml(document: Document) -> bytes:
    return toml_of(document, _COMMENT).encode()


def check_folders(paths: CompactPaths) -> None:
    """Check that the sources exist and that the others are writable; a `SettingsError` has the first fault.

    S3 is checked on use.
    """
    check_sources(paths.sources)
    for each in paths.sources:
        if not (each.names or each.pattern or is_s3(each.folder)) and Path(_settings_of(each.folder)).is_file():
            found = f"SRC: {each.folder} is the output of an earlier `compactor compact`"
            raise SettingsError([f"{found} -> expected input; the output is the last argument, DST"])
    _check_writable("DST", paths.output)
    _check_writable("--state", paths.home)


def _settings_of(output: str) -> str:
    return f"{output}{compact_paths.HOME_SUFFIX}/{compact_paths.SETTINGS_NAME}"


def _check_writable(name: str, place: str) -> None:
    if is_s3(place):
        return
    path = Path(place)
    above = next(each for each in (path, *path.parents) if each.exists())
    if not above.is_dir():
        where = f"{above} is a file" if above == path else f"{place}: {above} is a file"
        raise SettingsError([f"{name}: {where} -> expected a folder"])
    if not os.access(above, os.W_OK | os.X_OK):
        raise SettingsError([f"{name}: cannot write to {above}: permission denied"])


def check_rows_are_known(paths: CompactPaths, layout: Layout, store: ObjectStore) -> None:
    """Check, on a first call, that the output holds no rows yet. This call would write them a second time.

    Raises:
        SettingsError: There are rows, but the ledger is empty.
    """
    listed = store.list(folder(paths.output))
    rows = next((info.uri for info in listed if is_data(info.uri) and layout.output_owner(info.uri)), None)
    # The ledger is listed last: a concurrent first call writes its records before its rows.
    if rows is not None and next(iter(store.list(layout.ledger_folder)), None) is None:
        found = f"DST: {paths.output} holds rows ({base_name(rows)}) that are not on record in {paths.home}"
        raise SettingsError([f"{found} -> expected an empty folder, or --state with the place of their records"])
