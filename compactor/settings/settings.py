"""The settings: read once, validated together, then frozen."""

import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any, get_type_hints

from compactor.core import layout
from compactor.core.documents.manifest_parsing import ManifestRules
from compactor.core.errors import SettingsError
from compactor.core.inputs.record_place import AUTO, RecordPlace
from compactor.core.inputs.source_places import Routes, path_columns
from compactor.core.logs.names import KAFKA, KINESIS, LogName, logs_among
from compactor.core.logs.names import input_place as log_place
from compactor.core.partitions import PartitionField, parse_field, parse_fields
from compactor.core.rules.attempts import RetryRules
from compactor.core.rules.sharding import Shard
from compactor.core.text.formatting import shown
from compactor.core.text.safe_text import Suggestions, reading_lines
from compactor.settings import compact_paths, places, sections
from compactor.settings.control_policy import JobService
from compactor.settings.grok import GrokPattern, check_grok, pattern_of
from compactor.settings.streams import Entry, Member, OneStream, crossing, merged, read_entries
from compactor.settings.validation import Source, read_document, read_environment, validate

LEASE_SECONDS = 300.0
"""How long a claim without a manifest is valid: longer than the time limit of a function, which claims and then writes
manifests."""

CLAIM_DAYS = 30
"""Days until a claim in DynamoDB expires: longer than S3 may delay or repeat an event."""


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, validated. `load_settings` and `parse_settings` create them, and check keys against each other.

    With `[[streams]]` in the file, `streams` has complete settings for each stream.

    Attributes:
        folder: The name in commands of a folder of `compact` with these settings; empty for a job.
        claim_lease_seconds: The time after which a different planner may take over a claim without a manifest.
        retry_pause_seconds: The pause after the first failed attempt; it doubles after each further one.
        in_place: Whether a job writes the files of a table under their final names; None if its engine and place
            decide.
        shard: The shard of this job; None if one job processes all manifests.
        member: The stream of these settings; None unless the file has `[[streams]]`.
        streams: The settings of each stream, if the file has `[[streams]]`.
    """

    paths: sections.Paths
    input: sections.Input
    schema: sections.Schema
    output: sections.Output
    table: sections.Table
    convert: sections.Convert
    stream: sections.Stream
    builder: sections.Builder
    control: sections.Control
    emr: sections.Emr
    ecs: sections.Ecs
    retention: sections.Retention
    aws: sections.Aws
    metrics: sections.Metrics
    spark: sections.Spark
    kafka: sections.Kafka
    kinesis: sections.Kinesis
    folder: str = ""
    claim_lease_seconds: float = LEASE_SECONDS
    retry_pause_seconds: float = 1.0
    in_place: bool | None = None
    shard: Shard | None = None
    member: Member | None = None
    streams: tuple["Settings", ...] = ()

    @property
    def name(self) -> str:
        """The name of the stream; empty unless the file has `[[streams]]`."""
        return self.member.stream.name if self.member else ""

    @property
    def logs(self) -> tuple[LogName, ...]:
        """The topics and streams that the job lands: those in its input, excluding complete clusters and sources."""
        return logs_among(self.input.allowed_prefixes)

    @property
    def landing_late_seconds(self) -> float:
        """How late the job may land a record of a topic or stream before an operator should look."""
        return self.builder.max_wait_seconds + self.control.sla_seconds

    def of_stream(self, name: str) -> "Settings":
        """The settings of one stream.

        Raises:
            SettingsError: There is no stream with that name. The message lists the existing ones.
        """
        for each in self.streams:
            if each.name == name:
                return each
        names = ", ".join(each.name for each in self.streams)
        known = f"one of {names}" if names else "none, as there are no [[streams]]"
        raise SettingsError([f"--stream: {name!r} -> expected {known}"])

    @property
    def shard_text(self) -> str:
        """The shard of this job, such as `2/4`; empty if one job processes all manifests."""
        return str(self.shard or "")

    @property
    def run_name(self) -> str:
        """The name of the job on Glue, or of its runs elsewhere.

        The first shard has the name of a single job, so a deployment can get more shards without a stop.
        """
        number = self.shard.number if self.shard else 1
        return self.control.job_name if number == 1 else f"{self.control.job_name}-shard-{number}"

    def of_all_shards(self) -> "Settings":
        """These settings without their shard."""
        return replace(self, shard=None)

    @property
    def most_shards(self) -> int:
        """The most shards that run: only on ECS their number changes."""
        return max(self.control.shards, self.ecs.max_shards if self.ecs.cluster else 1)

    @property
    def by_shard(self) -> tuple["Settings", ...]:
        """The settings of each shard; only these if the job has no shards. A stream with its own job has none."""
        of, own = self.control.shards, self.member is not None and self.member.stream.job == "own"
        if max(of, self.most_shards) == 1 or own or self.shard:
            return (self,)
        return tuple(self.with_shard(Shard(number, of)) for number in range(1, of + 1))

    def scaled_to(self, shards: int) -> tuple["Settings", ...]:
        """The settings of as many shards, and of those up to the limit that are drained, which are home to nothing."""
        if self.by_shard == (self,) or self.most_shards <= self.control.shards:
            return self.by_shard
        drained = replace(self, control=self.control.model_copy(update={"mode": "never"}))
        return tuple(
            (self if number <= shards else drained).with_shard(Shard(number, shards))
            for number in range(1, self.most_shards + 1)
        )

    def require_shard(self) -> "Settings":
        """Return these settings, which belong to one job.

        Raises:
            SettingsError: There are several jobs, and none was given.
        """
        if len(self.by_shard) > 1:
            of = self.control.shards
            raise SettingsError([f"--shard: not given, and there are {of} jobs -> expected 1/{of} to {of}/{of}"])
        return self.by_shard[0]

    def of_shard(self, text: str) -> "Settings":
        """The settings of one of several jobs that share the manifests.

        Raises:
            SettingsError: The text is not a shard.
        """
        try:
            shard = Shard.parse(text)
        except ValueError as exc:
            raise SettingsError([f"--shard: {shown(text)} -> expected {exc}"]) from exc
        return self.with_shard(shard)

    def with_shard(self, shard: Shard) -> "Settings":
        """The same for a shard, which may be one of those that are drained."""
        return replace(self, shard=shard, streams=tuple(each.with_shard(shard) for each in self.streams))

    @property
    def routes(self) -> Routes:
        """The routes from objects to streams."""
        return Routes({each.name: each.input.allowed_prefixes for each in self.streams})

    @property
    def sharing(self) -> tuple["Settings", ...]:
        """The streams of the shared job."""
        return tuple(each for each in self.streams if each.member and each.member.stream.job == "shared")

    @property
    def canary(self) -> "Settings | None":
        """The stream whose job gets a release first; None if no stream is marked."""
        return next((each for each in self.streams if each.member and each.member.stream.canary), None)

    @property
    def jobs(self) -> tuple["Settings", ...]:
        """The settings of each job: only these, unless each stream has its own job, and those of streams with one."""
        own = tuple(each for each in self.streams if each not in self.sharing)
        return own if self.streams and not self.sharing else (self, *own)

    def require_one_stream(self) -> "Settings":
        """Return these settings, which belong to one stream, or to a file without streams.

        Raises:
            SettingsError: There are several streams, and none was given.
        """
        if self.streams:
            names = ", ".join(each.name for each in self.streams)
            raise SettingsError([f"--stream: not given, and there are several streams -> expected one of {names}"])
        return self

    def require_job(self) -> None:
        """Check that there is one job for exactly these settings.

        Raises:
            SettingsError: The job also works on other streams, or the streams have no common job.
        """
        if self.member and self.member.stream.job == "shared":
            why = f"the job of {self.name} also works on other streams"
            raise SettingsError([f"--stream {self.name}: {why} -> expected none, which means all of these streams"])
        if self.streams and not self.sharing:
            names = ", ".join(each.name for each in self.streams)
            raise SettingsError([f"--stream: not given, and each stream has its own job -> expected one of {names}"])

    @property
    def retry_rules(self) -> RetryRules:
        """When and how often a manifest is retried."""
        return RetryRules(self.stream.max_attempts, self.retry_pause_seconds)

    def of_folder(self, folder: str) -> "Settings":
        """The settings kept for a folder by `compact`, as other commands refer to it."""
        return replace(self, folder=folder, claim_lease_seconds=compact_paths.LEASE_SECONDS)

    @property
    def claims_layout(self) -> layout.Layout:
        """The layout of the claims, shared by all streams of a file."""
        return self.member.shared if self.member else self.layout()

    @property
    def sla_seconds(self) -> float | None:
        """How long a file may wait; None for a folder that a user compacts without an SLA."""
        is_agreed = not self.folder or "sla_seconds" in self.control.model_fields_set
        return self.control.sla_seconds if is_agreed else None

    @property
    def metadata_columns(self) -> tuple[str, ...]:
        """The metadata columns of the output.

        Excludes columns that readers get from the folder of a file: most readers refuse a column that is both in the
        folder and the file. None by default where a user compacts a folder, so that rows match the input.
        """
        columns = self.schema.metadata_columns
        if self.folder and "metadata_columns" not in self.schema.model_fields_set:
            columns = ()
        of_folder = {name.lower() for name in path_columns(f"/{self.output.folder}/file")}
        return tuple(name for name in columns if name not in of_folder)

    @property
    def grok(self) -> GrokPattern | None:
        """The pattern that parses lines; None for JSON."""
        return pattern_of(self.input.grok) if self.input.format == "grok" else None

    @property
    def record_place(self) -> RecordPlace:
        """Where records are in JSON documents; without a path if each file's has to be found."""
        records = self.input.records
        try:
            return RecordPlace.parse("" if records == AUTO else records, tuple(self.input.keep))
        except ValueError as exc:  # an option that was added to valid settings
            raise SettingsError([f"input.records: {records!r} -> expected {exc}"]) from exc

    @property
    def partition_fields(self) -> tuple[PartitionField, ...]:
        """The fields that partition the files of a date."""
        return parse_fields(self.output.partition_by)

    @property
    def suggestions(self) -> Suggestions:
        """How messages suggest commands to the users of these settings."""
        again = compact_paths.compact_again(self.folder, self.paths.output, self.input.sources)
        prefixes, failed = self.input.allowed_prefixes, self.layout().failed_folder
        prefix = prefixes[0] if len(prefixes) == 1 else ""
        return Suggestions(self.folder, again, stream=self.name, prefix=prefix, failed=failed)

    @property
    def service(self) -> JobService:
        """The service that runs the job."""
        if self.ecs.cluster:
            return "ECS"
        return "EMR Serverless" if self.emr.application_id else "Glue"

    @property
    def has_table(self) -> bool:
        return bool(self.table.name)

    def reading_lines(self) -> tuple[str, ...]:
        """How tools read the complete output. Empty with a table, as its readers do not list folders."""
        if self.has_table:
            return ()
        return reading_lines(self.layout(), has_partitions=bool(self.output.partition_by))

    def layout(self) -> layout.Layout:
        """The layout of all places."""
        return layout.Layout(
            manifests=self.paths.manifests,
            output=self.paths.output,
            state=self.paths.state,
            staging=self.paths.staging,
            pending=self.member.layout_of(self.name).pending if self.member else "",
            output_folder=self.output.folder,
            compression=self.output.compression,
        )

    def manifest_rules(self) -> ManifestRules:
        """The rules for the contents of a manifest."""
        return ManifestRules(hive_keys=self.input.hive_keys, exclude=self.input.exclude)

    @property
    def refused_types(self) -> dict[str, str]:
        """The types that are not allowed for columns, each with the settings that it needs.

        Neither Spark nor version 2 of Iceberg's format writes nanoseconds.
        """
        if self.has_table:
            return {"timestamp_ns": "no table.name"}
        return {"timestamp_ns": 'a convert.engine other than "spark"'} if self.convert.engine == "spark" else {}

    def require_claims(self) -> None:
        """Check that there is a place for claims. Only planning needs one.

        Raises:
            SettingsError: The state is on S3, where SQLite cannot be, and no table is given.
        """
        if layout.is_s3(self.paths.state) and not self.builder.claims:
            where = f"paths.state ({self.paths.state}) is on S3"
            raise SettingsError(
                [f'builder.claims: "" -> expected a DynamoDB table, or "@journal" for back-fills only, because {where}']
            )


_STREAMS = "streams"

SECTIONS: dict[str, type[sections.Section]] = {
    name: kind
    for name, kind in get_type_hints(Settings).items()
    if isinstance(kind, type) and issubclass(kind, sections.Section)
}
"""The sections by name."""


def load_settings(path: Path | None, env: Mapping[str, str]) -> Settings:
    """Read settings from a TOML file, if there is one, and the environment variables that override it.

    `COMPACTOR_<SECTION>__<KEY>` overrides a key: a list as JSON or comma-separated, a table as JSON, which replaces the
    complete table. Other variables are ignored.

    Raises:
        SettingsError: With all faults of the file, the variables and their combination.
    """
    return parse_settings({}, env) if path is None else parse_settings(_read_toml(path), env, str(path.resolve()))


def parse_settings(document: Mapping[str, object], env: Mapping[str, str] | None = None, place: str = "") -> Settings:
    """Create settings from the sections of a TOML document and the variables that override it.

    `place` is the place of the document: an absolute path or `s3://bucket/key`, or empty.

    Raises:
        SettingsError: With all faults.
    """
    common = {name: table for name, table in document.items() if name != _STREAMS}
    source = read_document(common, SECTIONS)
    read_environment(env or {}, SECTIONS, source)
    faults: list[str] = []
    entries = read_entries(document[_STREAMS], SECTIONS, faults) if _STREAMS in document else []
    settings = _validated(source, is_common=_STREAMS in document)
    if settings is None:
        raise SettingsError([*source.faults, *faults])
    if _STREAMS in document:
        return _with_streams(settings, source, entries, faults)
    if faults := list(_faults_of_logs(settings)):
        raise SettingsError(faults)
    folder = compact_paths.folder_kept_at(place, settings.paths, settings.metrics.sink)
    return settings.of_folder(folder) if folder else settings


def _validated(source: Source, *, is_common: bool = False) -> Settings | None:
    """Validate all sections; None if there are faults, which are then in the source."""
    valid: dict[str, Any] = {name: validate(name, model, source) for name, model in SECTIONS.items()}
    _check_places(source)
    _check_services(source)
    _check_queues(source)
    _check_named(source, KAFKA, "clusters")
    _check_named(source, KINESIS, "sources")
    _check_partitions(source)
    check_grok(source)
    _check_records(source)
    if not is_common:  # else each stream has its own schema file and table, or none
        _check_declared(source)
        _check_table(source)
        _check_table_partitions(source)
    return None if source.faults else Settings(**valid)


def _check_queues(source: Source) -> None:
    """Record a queue of manifests that has the events of files, which the job would delete unread."""
    control = source.values.get("control", {})
    url = source.values.get("stream", {}).get("queue_url")
    if url and url in (control.get("queue_url"), control.get("dead_letter_queue_url")):
        source.fault("stream.queue_url", url, "a queue other than those of control, whose events would be lost")


def _check_records(source: Source) -> None:
    """Record a path without the format that uses it, and keys without a path."""
    given = source.values.get("input", {})
    if given.get("records") and given.get("format") != "json":
        source.fault("input.format", given.get("format", "ndjson"), '"json", because input.records is set')
    if given.get("keep") and not given.get("records"):
        source.fault("input.records", "", "a path to records or auto, because input.keep has keys")


def _with_streams(common: Settings, source: Source, entries: list[Entry], faults: list[str]) -> Settings:
    """The settings with those of each stream. `faults` are those of unreadable entries.

    Raises:
        SettingsError: With the faults of all streams.
    """
    shared, read = common.layout(), list[tuple[OneStream, Settings]]()
    for entry in entries:
        own = merged(entry, source, shared)
        settings = _validated(own)
        faults = [*faults, *(f"streams.{entry.stream.name}.{fault}" for fault in own.faults)]
        if settings is not None:
            read.append((entry.stream, settings))
    routes = Routes({stream.name: settings.input.allowed_prefixes for stream, settings in read})
    streams = tuple(replace(settings, member=Member(stream, shared, routes)) for stream, settings in read)
    of_logs = dict.fromkeys(fault for each in streams for fault in _faults_of_logs(each))
    if faults := [*faults, *crossing(streams, common), *of_logs]:
        raise SettingsError(faults)
    return replace(common, streams=streams)


def _faults_of_logs(settings: Settings) -> Iterator[str]:
    """The faults of topics and streams landed by the job."""
    if settings.kafka.values == "lines" and "offset" not in settings.kafka.record_columns:
        yield 'kafka.values: "lines" -> expected "offset" in kafka.record_columns, so that each row has its record'
    for log in settings.logs if settings.control.mode == "on_work" else ():
        because = f"because only a running job lands {log}, which is in input.allowed_prefixes"
        yield f'control.mode: "on_work" -> expected "always", {because}'


def _read_toml(path: Path) -> dict[str, Any]:
    try:
        data = path.read_bytes()
    except (OSError, ValueError) as exc:
        why = exc.strerror if isinstance(exc, OSError) else exc
        raise SettingsError([f"{path}: cannot be read ({why}) -> expected a settings file"]) from exc
    return parse_toml(data, str(path))


def parse_toml(data: bytes, where: str) -> dict[str, Any]:
    """Parse the bytes of a settings file or a schema file; messages call it `where`.

    Raises:
        SettingsError: The bytes are not TOML in UTF-8.
    """
    try:
        return tomllib.loads(data.decode())
    except UnicodeDecodeError as exc:
        raise SettingsError([f"{where}: byte {exc.start} is not UTF-8 -> expected TOML"]) from exc
    except (ValueError, RecursionError) as exc:  # Python raises a plain ValueError for numbers with too many digits
        raise SettingsError([f"{where}: {exc} -> expected TOML"]) from exc


def _check_places(source: Source) -> None:
    """Record places that overlap, or are on different kinds of storage. Skips those that do not parse."""
    known = sections.Paths.model_fields
    texts = {f"paths.{key}": text for key, text in source.values.get("paths", {}).items() if key in known}
    parsers = {"paths.staging": places.parse_staging}
    parsed = {key: _parsed(text, parsers.get(key, places.parse_own_place)) for key, text in texts.items()}
    own = {key: place for key, place in parsed.items() if place}
    for (one, one_place), (other, other_place) in combinations(own.items(), 2):
        if places.overlap(one_place, other_place):
            source.fault(other, texts[other], _apart_from(one, one_place))
    if len({layout.is_s3(place) for place in own.values()}) > 1:
        source.fault("paths", own, "manifests, output and state to be all on S3 or all local")
    file = source.values.get("schema", {}).get("file")
    for key, place in own.items():
        if (found := _parsed(file, places.parse_place)) and places.overlap(found, place):
            source.fault("schema.file", file, _apart_from(key, place))
    prefixes = source.values.get("input", {}).get("allowed_prefixes")
    for index, text in enumerate(prefixes if isinstance(prefixes, list | tuple) else []):
        prefix = _parsed(text, places.parse_place)
        for key, place in own.items():
            if prefix and places.overlap(prefix, place):
                source.fault(f"input.allowed_prefixes[{index}]", text, _apart_from(key, place))


def _check_named(source: Source, section: str, key: str) -> None:
    """Record topics and streams in the input whose clusters and sources are not configured."""
    named = source.values.get(section, {}).get(key, {})
    prefixes = source.values.get("input", {}).get("allowed_prefixes")
    for index, text in enumerate(prefixes if isinstance(prefixes, list | tuple) else []):
        place = _parsed(text, log_place) or ""
        if place.startswith(f"{section}://") and isinstance(named, dict) and place.split("/")[2] not in named:
            source.fault(f"input.allowed_prefixes[{index}]", text, f"a {key.removesuffix('s')} of {section}.{key}")


def _check_declared(source: Source) -> None:
    discovery = source.values.get("input", {}).get("discovery")
    file = source.values.get("schema", {}).get("file", "")
    if discovery == "declared" and file == "":
        source.fault("schema.file", file, 'a schema file, because input.discovery is "declared"')


def _has_table(source: Source) -> bool:
    return source.values.get("table", {}).get("name", "") != ""


def _check_table(source: Source) -> None:
    given = source.values.get("table", {})
    if not _has_table(source):
        if "name" not in given and given.keys() & {"catalog", "uri", "warehouse"}:
            because = "because [table] has a catalog"
            source.faults.append(f'table.name: not set -> expected namespace.table, or "" for no table, {because}')
        return
    for key in _CATALOG_NEEDS.get(str(given.get("catalog", "rest")), ()):
        if given.get(key, "") == "":
            source.fault(f"table.{key}", "", f"{_TABLE_NEEDS[key]}, because table.name is set")
    columns = source.values.get("schema", {}).get("metadata_columns", ("file_date",))
    if isinstance(columns, list | tuple) and "file_date" not in columns:
        source.fault("schema.metadata_columns", columns, '"file_date" in it, because table.name is set')
    folder = source.values.get("output", {}).get("folder")
    if isinstance(folder, str) and "file_date" in {name.lower() for name in path_columns(f"/{folder}/file")}:
        source.fault(
            "output.folder", folder, 'no folder "file_date=", because the table has it as a column in the files'
        )


_CATALOG_NEEDS = {"rest": ("uri",), "sql": ("uri", "warehouse"), "s3tables": ("warehouse",)}
_TABLE_NEEDS = {
    "uri": "the catalog's address",
    "warehouse": "the warehouse of the catalog",
}


def _check_partitions(source: Source) -> None:
    """Record partition folders with the name of the date folder."""
    folder = source.values.get("output", {}).get("folder")
    taken = {name.lower() for name in path_columns(f"/{folder}/file")} if isinstance(folder, str) else set()
    for text, field in _partition_fields(source):
        if field.name.lower() in taken:
            source.fault("output.partition_by", text, "a name other than that of the date folder")


def _check_table_partitions(source: Source) -> None:
    """Record missing requirements of a table: it finds partition columns through the schema file, which types them."""
    if _has_table(source) and source.values.get("schema", {}).get("file", "") == "":
        for text, _ in _partition_fields(source):
            source.fault("output.partition_by", text, "a schema file that declares its key, because table.name is set")


def _partition_fields(source: Source) -> Iterator[tuple[str, PartitionField]]:
    """The fields that can be parsed. The section's own check has recorded the other ones."""
    texts = source.values.get("output", {}).get("partition_by", ())
    for text in texts if isinstance(texts, list | tuple) else ():
        try:
            yield text, parse_field(text)
        except (ValueError, TypeError, AttributeError):
            continue


def _check_services(source: Source) -> None:
    """Record what the job lacks where Glue does not run it.

    EMR Serverless has Spark 4.0, on which only the native engine is exact, and the image for ECS has no Spark.
    """
    on = {
        name: because for name, because in _BECAUSE.items() if any(map(source.values.get(name, {}).get, _NEEDS[name]))
    }
    for name, because in on.items():
        given = source.values.get(name, {})
        for key, expected in _NEEDS[name].items():
            value = given.get(key, "")
            if not value or (key in _EMR_FILES and isinstance(value, str) and not layout.is_s3(value)):
                source.fault(f"{name}.{key}", value, f"{expected}, {because}")
        engine = source.values.get("convert", {}).get("engine", "auto")
        if engine != "native":
            source.fault("convert.engine", engine, f'"native", {because}')
    if len(on) > 1:
        source.fault("ecs", "a section", "either [ecs] or [emr], because one service runs the job")
    if "ecs" in on and source.values.get("stream", {}).get("source") == "spark":
        source.fault("stream.source", "spark", f'"auto" or "listing", {on["ecs"]}')
    conf = source.values.get("emr", {}).get("spark_conf", {}) if "emr" in on else {}
    for key, value in conf.items() if isinstance(conf, dict) else ():
        if any(character.isspace() or character in "\"'\\" for character in f"{key}{value}"):
            source.fault(f"emr.spark_conf.{key}", value, "neither spaces nor quotes, because it becomes an option")


_EMR_FILES = ("entry_point", "archive")
_NEEDS = {
    "emr": {
        "application_id": "the id of an application",
        "role_arn": "the role of the job",
        "entry_point": "glue_entry.py on S3",
        "archive": "the archive from `make emr-archive`, on S3",
    },
    "ecs": {
        "cluster": "the name of a cluster",
        "task_definition": "the family of a task definition",
        "subnets": "the ids of subnets",
        "security_groups": "the ids of security groups",
    },
}
_BECAUSE = {
    "emr": "because [emr] runs the job on EMR Serverless",
    "ecs": "because [ecs] runs the job on ECS",
}


def _apart_from(key: str, place: str) -> str:
    return f"a place that does not overlap {key} ({place})"


def _parsed(text: object, parse: Callable[[str], str]) -> str | None:
    try:
        return parse(text) if isinstance(text, str) else None
    except ValueError:
        return None  # already recorded by the section's own check
