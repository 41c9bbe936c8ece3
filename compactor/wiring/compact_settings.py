"""The settings of one folder's compaction, kept beside its state from call to call."""

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from compactor.adapters.stores import StoreSpec
from compactor.core.errors import CompactorError, ObjectNotFound, SettingsError
from compactor.core.ports import ObjectStore
from compactor.ledger.heartbeat import Runs
from compactor.settings.compact_paths import (
    CompactPaths,
    Document,
    Options,
    is_new_source,
    settings_document,
    variables_beside,
)
from compactor.settings.settings import Settings, parse_settings, parse_toml
from compactor.settings.toml import toml_of

_COMMENT = (
    "Made by `compactor compact`, which reads it again for the same DST. May be edited; what is not here has its",
    "default. All other commands take it by --config.",
)


@dataclass(frozen=True, slots=True)
class FolderSettings:
    """What holds for this call.

    Attributes:
        paths: The places.
        options: What was asked for.
        settings: All settings, with what variables say.
        document: What is to be kept of them.
        kept: What an earlier call has kept; None for the first one.
    """

    paths: CompactPaths
    options: Options
    settings: Settings
    document: Document
    kept: Document | None

    def keep(self, store: ObjectStore, runs: Runs) -> None:
        """Write the settings beside the state, unless they are there.

        Raises:
            CompactorError: Another run is at work there that does not know of this source.
        """
        kept, document = self.kept, self.document
        if kept is None:
            if store.create(self.paths.settings_file, _toml(document)):
                return
            # Another first call was faster, perhaps for another source, which is not to be forgotten.
            kept = _read(self.paths, store)
            document = settings_document(self.paths, self.options, kept)
        if document == kept:
            return
        # A job that runs by these settings would take manifests of files elsewhere for wrong, and set them aside.
        if is_new_source(self.paths.source, kept) and (living := runs.living()):
            raise CompactorError(
                f"{self.paths.output}: run {living[0].run_id} is at work on other sources; expected to wait for its end"
            )
        store.put(self.paths.settings_file, _toml(document))

    def with_threads(self, threads: int) -> Settings:
        """The settings for work in so many threads of this machine, which need not be those of the next call."""
        stream = self.settings.stream.model_copy(update={"manifests_in_flight": threads})
        return dataclasses.replace(self.settings, stream=stream)


def folder_settings(paths: CompactPaths, options: Options, env: Mapping[str, str]) -> FolderSettings:
    """Make the settings of a call.

    What is said in the call goes first, then variables, then what earlier calls kept, then the defaults.

    Args:
        paths: The places.
        options: What was asked for.
        env: Environment variables.

    Raises:
        SettingsError: With every fault.
        AccessError: The place of the settings may not be read.
    """
    beside = variables_beside(env, options)
    first = parse_settings(settings_document(paths, options, None), beside)
    aws = first.aws
    kept = _read(paths, StoreSpec(aws.region or None, aws.endpoint_url or None, aws.timeout_seconds).open())
    document = settings_document(paths, options, kept)
    return FolderSettings(paths, options, parse_settings(document, beside), document, kept)


def _read(paths: CompactPaths, store: ObjectStore) -> Document | None:
    try:
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
