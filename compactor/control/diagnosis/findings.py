"""Findings that several commands have, so that all of them say the same of one thing. Decisions, no I/O."""

from collections.abc import Iterable, Iterator, Mapping

from compactor.control.diagnosis.health import Condition, Finding, finding
from compactor.core.documents.closed_dates import are_few_rows
from compactor.core.rules.next_steps import Cause, quarantined_steps
from compactor.core.text.formatting import by_name, count, percent
from compactor.core.text.safe_text import Suggestions
from compactor.ledger.housekeeping import FailingTask
from compactor.manifests.kafka.topics_seen import TopicSeen
from compactor.manifests.kinesis.streams_seen import StreamSeen
from compactor.table.standing import TableSeen


def dead_letters(number: int, latest_id: str, suggest: Suggestions) -> Iterator[Finding]:
    """Whether manifests are dead letters that were not redriven; the latest of them is named."""
    if number:
        what = "1 manifest is a dead letter" if number == 1 else f"{number:,} manifests are dead letters"
        move = f"{suggest.call('trace', latest_id)}, then {suggest.call('redrive manifests')}{suggest.then_again}"
        yield finding(Condition.MANIFESTS_DEAD_LETTERED, what, move)


def quarantined_files(
    by_status: Mapping[str, int], causes: Mapping[Cause, int], suggest: Suggestions
) -> Iterator[Finding]:
    """Whether files are quarantined and not settled, with their number by status and by cause."""
    if number := sum(by_status.values()):
        what = f"{count(number, 'input file')} {'is' if number == 1 else 'are'} quarantined: {by_name(by_status)}"
        yield finding(Condition.FILES_QUARANTINED, what, "; ".join(quarantined_steps(causes, suggest)))


def table_behind(table: TableSeen | None) -> Iterator[Finding]:
    """Whether what is placed waits for the table for too long, or commits to it keep failing."""
    if table is not None and table.is_behind:
        why = f": {table.error}" if table.error else ""
        yield finding(Condition.TABLE_BEHIND, f"table {table.name}: {table.words}{why}")


def manifests_held_back(table: TableSeen | None) -> Iterator[Finding]:
    """Whether manifests are held back from the table."""
    if table is not None and table.held:
        yield finding(Condition.MANIFESTS_HELD_BACK, f"table {table.name}: {table.held_words}")


def housekeeping_fails(tasks: Iterable[FailingTask]) -> Iterator[Finding]:
    """Whether what jobs do beside their work keeps failing: then state, or metadata of the table, grows."""
    for each in tasks:
        reason = f"{each.name} has failed since {each.failing_since:%Y-%m-%d %H:%M} UTC: {each.error}"
        yield finding(Condition.HOUSEKEEPING_FAILS, reason, subject=each.name.replace(" ", "_"))


def topics_behind(topics: Iterable[TopicSeen]) -> Iterator[Finding]:
    """Whether records of topics wait too long for a plan, or topics are not planned."""
    return _behind(Condition.TOPIC_BEHIND, "topic", topics)


def kinesis_behind(streams: Iterable[StreamSeen]) -> Iterator[Finding]:
    """Whether records of streams of Kinesis wait too long for a plan, or streams are not planned."""
    return _behind(Condition.KINESIS_BEHIND, "stream", streams)


def _behind(condition: Condition, kind: str, seen: Iterable[TopicSeen | StreamSeen]) -> Iterator[Finding]:
    for each in seen:
        if each.is_behind:
            why = f": {each.error}" if each.error else ""
            subject = each.name.partition("://")[2]
            yield finding(condition, f"{kind} {subject}: {each.words}{why}", subject=subject)


def few_rows(rows: int, rejected_lines: int, suggest: Suggestions) -> Iterator[Finding]:
    """Whether under half of the lines became rows: the input may not be what it seems."""
    if are_few_rows(rows, rejected_lines):
        share = percent(rejected_lines, rows + rejected_lines)
        what = f"under half of the lines are rows: {share} were rejected" if rows else "no line became a row"
        yield finding(Condition.FEW_ROWS, what, suggest.at(Condition.FEW_ROWS.next_move))
