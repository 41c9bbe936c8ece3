"""Turns announced files of several streams into manifests: each file goes to the stream of its longest prefix."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import CompactorError
from compactor.core.inputs.source_places import Routes
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import Clock
from compactor.manifests.building.builder import BUILD_SECONDS, Builder, BuildReport
from compactor.manifests.data_files import not_data_reason
from compactor.manifests.s3_events import Announcement, EventError, parse_body
from compactor.telemetry.logs import log_event


@dataclass(slots=True)
class RoutedReport:
    """The result of a batch of messages for several streams.

    Attributes:
        messages: How many there were.
        skipped: Objects and records that are no input of any stream, by reason.
        unrouted: Files below the watched places that no stream has; no manifest names them.
        first_unrouted: The URI of one of them; empty if there is none.
        failed: The reason for each message that has to be delivered again, by message id.
        streams: The report of each stream, by its name.
    """

    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unrouted: int = 0
    first_unrouted: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    streams: dict[str, BuildReport] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class RoutedBuilder:
    """Works through batches of messages for several streams.

    The streams of a batch are built at the same time, so that a flood of one takes no time from the others. A stream
    whose store or records are in trouble fails its own messages only.

    Attributes:
        routes: Which stream an object belongs to.
        builder_of: Makes the builder of a stream.
        clock: Says when no further groups are begun.
        watched: The folders whose objects are announced, routed or not.
    """

    routes: Routes
    builder_of: Callable[[str], Builder]
    clock: Clock
    watched: Sequence[str]

    def build(self, messages: Mapping[str, str | bytes]) -> RoutedReport:
        """Take in a batch of messages; see `Builder.build`. Errors of a stream are in the report."""
        report = RoutedReport(messages=len(messages))
        routed: dict[str, dict[str, Announcement]] = {}  # stream → message → its files of that stream
        for message_id, body in messages.items():
            for stream, files in self._routed(message_id, body, report).items():
                routed.setdefault(stream, {})[message_id] = Announcement(tuple(files))
        if report.unrouted:
            log_event("files.unrouted", files=report.unrouted, first=report.first_unrouted)
        begins_until = self.clock.now() + timedelta(seconds=BUILD_SECONDS)
        report.streams = dict(zip(routed, map_ordered(partial(self._built, routed, begins_until), routed), strict=True))
        for of_stream in report.streams.values():
            report.failed |= of_stream.failed
        return report

    def _routed(self, message_id: str, body: str | bytes, report: RoutedReport) -> dict[str, list[ManifestFile]]:
        """The files of one message by stream; counts what belongs to none."""
        try:
            announcement = parse_body(body)
        except EventError as exc:
            log_event("message.unreadable", message_id=message_id, error=exc)
            report.failed[message_id] = str(exc)
            return {}
        report.skipped.update(announcement.ignored)
        found: dict[str, list[ManifestFile]] = {}
        for file in announcement.files:
            stream = self.routes.stream_of(file.uri)
            if stream is not None:
                found.setdefault(stream, []).append(file)
            elif reason := not_data_reason(file.uri, file.size_bytes or 0, self.watched):
                report.skipped[reason] += 1
            else:
                report.unrouted += 1
                report.first_unrouted = report.first_unrouted or file.uri
        return found

    def _built(
        self, routed: Mapping[str, Mapping[str, Announcement]], begins_until: datetime, stream: str
    ) -> BuildReport:
        announced, at_once = routed[stream], max(1, THREADS // len(routed))
        try:
            builder = replace(
                self.builder_of(stream),
                read_body=lambda message_id: announced[str(message_id)],
                groups_at_once=at_once,
            )
            return builder.build({message_id: message_id for message_id in announced}, begins_until)
        except CompactorError as exc:  # the other streams need not wait until a person has acted
            log_event("stream.not_built", stream=stream, messages=len(announced), error=exc)
            failed = dict.fromkeys(announced, f"stream {stream}: {exc}")
            return BuildReport(messages=len(announced), failed=failed)
