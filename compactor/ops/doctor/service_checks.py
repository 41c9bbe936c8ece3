"""Checks of Kafka topics, Kinesis streams and tables: that they exist, are accessible, and keep records long enough."""

from collections.abc import Callable, Mapping
from itertools import islice

from compactor.core.errors import AccessError, CompactorError, ExtraMissing, TryAgainError
from compactor.core.logs.names import LogName, logs_among
from compactor.core.logs.ports import KafkaLog, Log, TopicFacts
from compactor.core.text.formatting import count, shown_seconds
from compactor.ops.doctor.account_checks import DEPLOY, described
from compactor.ops.doctor.findings import Account, Finding, fault, ok, skipped, warning
from compactor.schema.catalog import drift, table_columns
from compactor.table.standing import ListedTable

_READ_BYTES = 1024 * 1024


def try_stream(kinesis: Callable[[], Log], place: str, *, wait_seconds: float) -> list[Finding]:
    """Describe a stream, list its shards, and read from one as landing does.

    Args:
        kinesis: Opens the client of the streams.
        place: The stream, or a source with all of its streams, which are not tried.
        wait_seconds: The longest time until a record is landed.

    Raises:
        CompactorError: One of these is refused, or does not respond.
    """
    if not (named := logs_among([place])):
        return [skipped(f"{place}: `compactor plan --dry-run` shows its content")]
    [stream], log = named, kinesis()
    live = log.describe(stream)
    if live is None:
        return [fault(f"{stream}: there is no such stream", "create it, or correct input.allowed_prefixes")]
    shards = log.partitions(stream)
    for shard in shards[:1]:
        reading = log.read(stream, shard.partition_id, 0, _READ_BYTES)
        list(islice(reading, 1))
        reading.close()
    found = ok(f"{stream}: can describe, list and read {count(len(shards), 'shard')}")
    return [found, _kept(stream, live.retention.total_seconds(), wait_seconds, "the retention of stream")]


_SHOWN = 3
_PUBLISH = "compactor schema publish"
_MOVES: Mapping[type[CompactorError], str] = {
    ExtraMissing: "install it in the Python of the compactor, and of the job",
    AccessError: "allow reading and committing to the table, or correct the credentials of the catalog",
    TryAgainError: "correct table.uri, or restore the catalog",
}
"""The next action if the catalog cannot be used. For other errors, their text has it."""


def table(account: Account, name: str, wanted: Callable[[], Mapping[str, str]]) -> Finding:
    """Whether the table `database.table` exists, projects its dates, and has the wanted columns."""
    database, _, own_name = name.partition(".")
    found = described(account, name, "schema.table", "glue", "get_table", DatabaseName=database, Name=own_name)["Table"]
    differs = drift(table_columns(found), wanted())
    if differs.other_types:
        column, (has, expected) = next(iter(differs.other_types.items()))
        shown = f"{name}: {count(len(differs.other_types), 'column')} of a different type, such as {column}"
        return fault(f"{shown}: {has}, expected {expected}", "correct the types in the catalog")
    if differs.missing:
        names = ", ".join([*differs.missing][:_SHOWN])
        return warning(f"{name} lacks {count(len(differs.missing), 'column')}, such as {names}", _PUBLISH)
    if found.get("Parameters", {}).get("projection.enabled", "").lower() != "true":
        return warning(f"{name}: partition projection is off, so that new dates are not found", DEPLOY)
    return ok(f"{name} has the columns of the output")


def iceberg_table(listed: ListedTable, owner: str) -> Finding:
    """Whether an Iceberg catalog responds, and the table belongs to this owner or does not exist yet."""
    try:
        head = listed.catalog().head()
    except CompactorError as exc:
        text, _, expected = str(exc).partition(" -> ")
        moves = (move for kind, move in _MOVES.items() if isinstance(exc, kind))
        return fault(text, next(moves, expected or "correct the section [table] of the settings"))
    if head is None:
        return ok(f"{listed.name}: the catalog answers; the first commit makes the table")
    if head.owner != owner:
        return fault(
            f"{listed.name} is of the state {head.owner}, expected {owner}", "set a different table in table.name"
        )
    return ok(f"{listed.name}: up to batch {head.fence:,}")


MARGIN = 4
"""Retention should be this many times a record's longest wait: outages last longer than delays."""


def cluster(kafka: Callable[[], KafkaLog], name: str) -> Finding:
    """Whether a cluster's brokers respond and accept the configured user."""
    try:
        nodes = kafka().nodes(name)
    except ExtraMissing as exc:
        return fault(str(exc), "install it in the Python of the compactor, and of Spark's executors")
    except AccessError as exc:
        return fault(_line(exc), f"correct the user, the password or the certificates in kafka.clusters.{name}")
    except TryAgainError as exc:
        move = (
            "check bootstrap.servers, security.protocol and the network path, also to the brokers' advertised addresses"
        )
        return fault(_line(exc), f"{move}, for kafka.clusters.{name}")
    return ok(f"{count(nodes, 'broker')} {'answers' if nodes == 1 else 'answer'}")


def topic(kafka: Callable[[], KafkaLog], of: LogName, *, wait_seconds: float) -> list[Finding]:
    """Whether a topic exists, may be read, and keeps its records long enough.

    Args:
        kafka: Opens the brokers.
        of: The topic.
        wait_seconds: The longest time until a record is landed.
    """
    try:
        facts = kafka().inspect(of)
    except AccessError as exc:
        return [fault(_line(exc), f"allow Describe and Read on topic {of.name}")]
    if facts is None:
        found = f"{of}: there is no such topic, or it may not be described"
        return [fault(found, f"create it, correct its name, or allow Describe on topic {of.name}")]
    if facts.may_read is False:
        return [fault(f"{of}: may be described, but not read", f"allow Read on topic {of.name}")]
    return [ok(f"{of}: {count(facts.partitions, 'partition')}"), _retention(of, facts, wait_seconds)]


def _retention(of: LogName, facts: TopicFacts, wait_seconds: float) -> Finding:
    if facts.unknown_because:
        move = f"allow DescribeConfigs on topic {of.name}, or check that it keeps records far longer than"
        return warning(
            f"{of}: its retention is unknown: {facts.unknown_because}", f"{move} {shown_seconds(wait_seconds)}"
        )
    found = _kept(of, facts.retention_seconds, wait_seconds, "retention.ms of topic")
    if found.state != "ok" or facts.retention_bytes is None:
        return found
    size = f"up to {facts.retention_bytes:,} bytes a partition"
    move = f"check that this is far above what arrives in {shown_seconds(wait_seconds)}, or unset retention.bytes"
    return warning(f"{found.found}, and {size}", move)


def _kept(of: LogName, seconds: float | None, wait_seconds: float, what: str) -> Finding:
    """Whether records are kept long enough; None is for ever."""
    kept = f"{of}: records are kept {'for ever' if seconds is None else f'for {shown_seconds(seconds)}'}"
    raise_it, waits = f"raise {what} {of.name}", shown_seconds(wait_seconds)
    if seconds is not None and seconds <= wait_seconds:
        return fault(f"{kept}, and may wait for {waits} before they are landed", raise_it)
    if seconds is not None and seconds < MARGIN * wait_seconds:
        return warning(f"{kept}, less than {MARGIN} times the {waits} for which they may wait", raise_it)
    return ok(kept)


def _line(error: Exception) -> str:
    return " ".join(str(error).split())
