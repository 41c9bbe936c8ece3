"""Puts together what suggests a schema file, with settings or without."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from compactor.adapters.source_listing import SourceListing
from compactor.adapters.stores import StoreSpec
from compactor.core.errors import SettingsError
from compactor.core.inputs.source_places import SourcePlace, in_words
from compactor.core.ports import ObjectStore
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits
from compactor.ops.suggest.suggester import SchemaSuggester, Survey
from compactor.schema.suggestion import SuggestionRules
from compactor.settings import compact_paths
from compactor.settings.compact_paths import CompactPaths, Options
from compactor.settings.settings import Settings, parse_settings
from compactor.sources.folders.planning import Listing, source_files
from compactor.sources.plan import Plan
from compactor.wiring.engine_choice import engine_of
from compactor.wiring.grok_reader import grok_reader
from compactor.wiring.settings_files import check_sources


@dataclass(frozen=True, slots=True)
class Suggesting:
    """Suggests a schema file for some sources."""

    sources: tuple[SourcePlace, ...]
    listing: Listing
    excludes: Callable[[str], bool]
    suggester: SchemaSuggester
    rules: SuggestionRules

    def schema_file(self, max_records: int | None) -> str:
        """Read records, or all of them, and return the suggested file.

        Raises:
            SettingsError: No file has a record with a key.
        """
        met = Plan()
        files = source_files(self.listing, self.sources, met, excludes=self.excludes)
        survey = self.suggester.survey(in_words(self.sources), files, max_records=max_records)
        survey.unreadable += [(each.uri, each.detail) for each in met.left_out]
        return schema_file_of(survey, self.rules)


def schema_file_of(survey: Survey, rules: SuggestionRules) -> str:
    """The schema file that a survey suggests.

    Raises:
        SettingsError: There is no record with a key.
    """
    if survey.profile.columns:
        return survey.schema_file(rules)
    if not survey.files:
        raise SettingsError([f"SRC: {survey.source} holds no files with data -> expected NDJSON files"])
    found = f"SRC: {survey.source}: no record with a key in {len(survey.read):,} of {survey.files:,} files"
    why = f"; {survey.unreadable[0][0]}: {survey.unreadable[0][1]}" if survey.unreadable else ""
    raise SettingsError([f"{found}{why} -> expected lines that are one JSON object each"])


def suggesting_from(
    texts: Sequence[str], options: Options, kept: Settings | None, on_file: Callable[[int], None]
) -> Suggesting:
    """Make what suggests a schema file.

    Args:
        texts: SRC... as the user typed them.
        options: What the call names.
        kept: The settings of the user; None for those that `compact` would begin with.
        on_file: Called after each file, with how many were read so far.

    Raises:
        SettingsError: A SRC is not there, or an option has a fault.
    """
    sources = compact_paths.parse_sources(texts)
    check_sources(sources)
    settings = kept or _settings(sources[0].folder, options)
    if given := options.given().get("input"):
        settings = replace(settings, input=settings.input.model_copy(update=given))
    spec = StoreSpec.of(settings.aws, [place.folder for place in sources])
    store = spec.open()
    suggester = suggester_of(settings, store, on_file)
    listing, excludes = SourceListing(store, spec.confined), settings.manifest_rules().excludes
    return Suggesting(sources, listing, excludes, suggester, rules_of(settings, options))


def suggester_of(settings: Settings, store: ObjectStore, on_file: Callable[[int], None]) -> SchemaSuggester:
    """Make what reads the files, within the limits of the settings."""
    limits = Limits(settings.input.max_line_bytes, settings.input.max_decompressed_bytes)
    reader = grok_reader(settings)
    return SchemaSuggester(
        store=store,
        limits=limits,
        max_keys=2 * settings.schema.max_columns,
        formats=Formats(settings.input.format, grok=reader.decoder if reader else None),
        hive_keys=settings.input.hive_keys,
        on_file=on_file,
    )


def rules_of(settings: Settings, options: Options) -> SuggestionRules:
    """What the suggested file may hold."""
    schema = settings.schema
    match options.names:
        case "safe" | "exact" as names:
            pass
        case _:
            names = schema.names
    reader = grok_reader(settings)
    return SuggestionRules(
        names,
        schema.max_columns,
        schema.max_key_characters,
        reader.types if reader else {},
        has_nanoseconds="timestamp_ns" not in settings.refused_types and engine_of(settings.convert) == "native",
    )


def _settings(source: str, options: Options) -> Settings:
    """The settings that a first call of `compact` would have; its other places do not matter."""
    beside = source + "-parquet" if source != "/" else "/parquet"
    paths = CompactPaths(source, beside, beside + compact_paths.HOME_SUFFIX)
    document = compact_paths.settings_document(paths, options, None)
    return parse_settings(document, compact_paths.variables_beside(os.environ, options))
