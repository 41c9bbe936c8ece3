"""Builds what suggests a schema file, with settings or without."""

import os
from collections.abc import Sequence
from dataclasses import replace

from compactor.adapters.source_listing import SourceListing
from compactor.adapters.stores import StoreSpec
from compactor.core.inputs.source_places import in_words
from compactor.core.ports import ObjectStore
from compactor.ndjson.lines import Limits
from compactor.ops.suggest import SchemaSuggester
from compactor.schema.schema import Names
from compactor.schema.suggestion import SuggestionRules
from compactor.settings import compact_paths
from compactor.settings.compact_paths import CompactPaths, Options
from compactor.settings.settings import Settings, parse_settings
from compactor.sources.input_files import source_files
from compactor.sources.plan import Plan
from compactor.telemetry.meter import Meter
from compactor.wiring.engine_choice import engine_choice
from compactor.wiring.engines import formats_of
from compactor.wiring.opening import grok_reader
from compactor.wiring.settings_files import check_sources


def suggested_file(
    texts: Sequence[str],
    options: Options,
    kept: Settings | None,
    max_records: int | None,
    meter: Meter,
    *,
    levels: int = 0,
) -> str:
    """Read records from some sources, or all of them, and return the suggested schema file.

    Args:
        texts: SRC... as typed by the user.
        options: The call's options.
        kept: The user's settings; None for those that `compact` would start with.
        max_records: How many records to read; None for all.
        meter: Counts the files that were read.
        levels: How deep arrays and objects get types with parts.

    Raises:
        SettingsError: A SRC does not exist, an option has a fault, or no file has a record with a key.
    """
    sources = compact_paths.parse_sources(texts)
    check_sources(sources)
    settings = kept or _first_settings(sources[0].folder, options)
    if given := options.given().get("input"):
        settings = replace(settings, input=settings.input.model_copy(update=given))
    spec, met = StoreSpec.of(settings.aws, [place.folder for place in sources]), Plan()
    store, excludes = spec.open(), settings.manifest_rules().excludes
    files = source_files(
        SourceListing(store, spec.confined), sources, met, skips=lambda uri: "excluded" if excludes(uri) else ""
    )
    profiler = replace(suggester(settings, store, meter), levels=levels)
    survey = profiler.survey(in_words(sources), files, max_records=max_records)
    survey.unreadable += [(each.uri, each.detail) for each in met.left_out]
    return survey.schema_file(suggestion_rules(settings, options.names))


def suggester(settings: Settings, store: ObjectStore, meter: Meter) -> SchemaSuggester:
    """Make what reads the files, within the limits of the settings."""
    reader = grok_reader(settings)
    return SchemaSuggester(
        store=store,
        limits=Limits(settings.input.max_line_bytes, settings.input.max_decompressed_bytes),
        max_keys=2 * settings.schema.max_columns,
        formats=formats_of(settings, reader),
        hive_keys=settings.input.hive_keys,
        meter=meter,
    )


def suggestion_rules(settings: Settings, names: Names | None) -> SuggestionRules:
    """What the suggested file may contain; without `names`, columns are named as configured."""
    schema, reader = settings.schema, grok_reader(settings)
    return SuggestionRules(
        names or schema.names,
        schema.max_columns,
        reader.types if reader else {},
        has_nanoseconds=(
            "timestamp_ns" not in settings.refused_types and engine_choice(settings.convert).name == "native"
        ),
    )


def _first_settings(source: str, options: Options) -> Settings:
    """The settings of a first call of `compact`; its other places do not matter."""
    output = source + "-parquet" if source != "/" else "/parquet"
    paths = CompactPaths(source, output, output + compact_paths.HOME_SUFFIX)
    document = compact_paths.settings_document(paths, options, None)
    return parse_settings(document, compact_paths.other_variables(os.environ, options))
