"""Builds what rebuilds manifests: with all their rows, with new file versions, or without some lines."""

from collections.abc import Callable
from dataclasses import replace
from functools import cache, partial
from tempfile import gettempdir
from threading import Lock

from compactor.adapters.local.durable import remove_temporaries
from compactor.adapters.local.native.kernel import NativeGrok
from compactor.adapters.local.native.threads import ThreadBinWorkers, usable_threads
from compactor.adapters.local.sqlite.seen_files import LocalSeenFiles
from compactor.core.documents.changes import Commit, Inputs
from compactor.core.errors import SettingsError
from compactor.core.layout import canonical, folder, is_s3
from compactor.core.logs.names import is_log
from compactor.engines.engine import Engine, EngineRules
from compactor.ledger.sizing_history import SizingHistory, summarised
from compactor.ledger.visible import Visible
from compactor.ndjson.files.scratch import remove_scratch_folders
from compactor.ndjson.kinds.formats import Formats
from compactor.ndjson.lines import Limits, scratch_bytes
from compactor.ops.erase.eraser import Eraser
from compactor.ops.erase.erasing_stager import ErasingStager
from compactor.ops.erase.inputs import InputEraser
from compactor.ops.erase.scan import EraseScanner
from compactor.ops.erase.search import RowSearch
from compactor.ops.erase.wanted import Wanted, beyond_value, compared_type, path_of
from compactor.ops.rebuild.rebuilder import Rebuilder, Stage
from compactor.ops.rebuild.replacing import Replacer
from compactor.ops.table.maintainer import erase_metadata
from compactor.ops.table.removing import remove_leftovers
from compactor.table.merging.committed_rows import CommittedRows
from compactor.wiring import engines, operating, planning, streaming, table_sink
from compactor.wiring.app import App
from compactor.wiring.engine_choice import installed_engine, is_in_place

NewEngine = Callable[[EngineRules], Engine]


def rebuilder(app: App, new_engine: NewEngine | None = None) -> Rebuilder:
    """Create the rebuilder of manifests, which applies each commit's own limits. Connects to no engine before use.

    Args:
        app: The ports.
        new_engine: Creates engines; by default native ones in threads of this process if possible, else on Spark.
    """
    new_engine = new_engine or _engine_here(app)
    one_at_a_time = Lock()

    def stager_for(commit: Commit) -> Stage:
        limits = replace(
            Limits.of(app.settings),
            max_line_bytes=commit.max_line_bytes,
            max_decompressed_bytes=commit.max_decompressed_bytes,
            max_scratch_bytes=scratch_bytes(commit.max_decompressed_bytes),
            task_bytes=None,
        )
        rules = engines.engine_rules(app)
        formats = Formats(
            "recorded",
            {file.uri: file.place for file in commit.files if file.place is not None},
            lines_folder=app.layout.redriven_folder,
            grok=NativeGrok(commit.grok) if commit.grok else None,
            new_scanner=rules.formats.new_scanner,
        )
        rules = replace(rules, limits=limits, formats=formats, on_changed_file="skip")
        # With the commit's own sizes, the rows are spread over as many files as before.
        target = app.settings.output.target_file_bytes
        history = SizingHistory(app.ledger, target, [summarised(commit, target_file_bytes=target)])
        with one_at_a_time:  # the first one starts threads or Spark
            made = new_engine(rules)
        compaction_rules = replace(streaming.compaction_rules(app), limits=limits, grok=commit.grok)
        stager = streaming.stager(app, made, compaction_rules, history)
        return lambda accepted, attempt: stager.stage(accepted, attempt)[0]

    return _rebuilder_with(app, stager_for)


def _engine_here(app: App) -> NewEngine:
    """Create configured engines: native ones in threads of this process if possible, else on Spark."""
    workers = cache(lambda: ThreadBinWorkers(app.store, threads=usable_threads()))

    def new_engine(rules: EngineRules) -> Engine:
        if installed_engine(app.settings) == "native":
            return engines.native_engine(app, workers(), rules)
        return engines.engine(app, rules)

    return new_engine


def _rebuilder_with(app: App, stager_for: Callable[[Commit], Stage]) -> Rebuilder:
    """Create a rebuilder, given the stager for each commit."""
    return Rebuilder(
        state=app.state,
        stager_for=stager_for,
        publisher=streaming.publisher(app),
        verifier=operating.verifier(app),
        digest_of=LocalSeenFiles(app.store, "").digest,
        threads=app.settings.stream.manifests_in_flight,
        on_crash_point=app.on_crash_point,
    )


def replacer(app: App, new_engine: NewEngine | None = None) -> Replacer:
    """Create the replacer, which rebuilds manifests with new versions of their files; see `rebuilder`."""
    return Replacer(state=app.state, rebuilder=rebuilder(app, new_engine), claimer=planning.claimer(app))


def _wanted(app: App, key: str, values: frozenset[str]) -> Wanted:
    path = path_of(key)
    column = next((each for each in app.registry.latest().columns if each.key == path[0]), None)
    if column is not None and beyond_value(column, path):
        raise SettingsError([f"{key}: goes on after a value of type {column.type} -> expected the key of the value"])
    wanted = Wanted(path, values, compared_type(column, path))
    if column is not None and column.is_nested and wanted.has_containers:
        raise SettingsError([f"{key}: an array or object in a column of type {column.type} -> expected plain values"])
    return wanted


def eraser(app: App, *, key: str, values: frozenset[str], inputs: Inputs, by: str) -> Eraser:
    """Create the eraser of lines with some values. It starts no engine.

    Raises:
        SettingsError: A value is an array or object, and the key's column has a nested type; or the key is that of a
            wrapping in extended JSON.
    """
    wanted = _wanted(app, key, values)
    rows = CommittedRows(app.store, Visible(app.state))
    search = RowSearch(rows=rows, registry=app.registry, wanted=wanted)
    settings = app.settings

    def rebuilder_for(erasure: str) -> Rebuilder:
        def stager_for(commit: Commit) -> Stage:
            stager = ErasingStager(
                state=app.state,
                search=search,
                commit=commit,
                erasure=erasure,
                compression=app.layout.compression,
                in_place=is_in_place(settings),
                on_crash_point=app.on_crash_point,
            )
            return stager.stage

        return _rebuilder_with(app, stager_for)

    def after() -> list[str]:
        """Expire everything in the table that names replaced files, except leftovers of failed commits."""
        if not settings.has_table:
            return []
        maintainer = table_sink.maintainer(app, keep_days=0, keep_snapshots=1)
        kept = erase_metadata(replace(maintainer, always_merges=True, committer=None))
        remove_leftovers(table_sink.committer(app))
        return kept

    layout = app.layout
    own = dict.fromkeys(folder(canonical(each)) for each in (layout.output, layout.state, layout.manifests_folder))
    limits = Limits.of(settings)
    prefixes = [place for place in settings.input.allowed_prefixes if not is_log(place)]
    return Eraser(
        state=app.state,
        scanner=EraseScanner(state=app.state, search=search, prefixes=prefixes),
        inputs=InputEraser(state=app.state, wanted=wanted, limits=limits, inputs=inputs, decoder_of=NativeGrok),
        rebuilder_for=rebuilder_for,
        key=key,
        by=by,
        after=after,
        table=settings.table.name if settings.has_table else "",
        leftovers={
            **{place: partial(remove_temporaries, place) for place in own if not is_s3(place)},
            folder(gettempdir()): remove_scratch_folders,
        },
    )
