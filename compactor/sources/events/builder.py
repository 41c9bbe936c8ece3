"""Turns announced files into manifests: claims each once, writes full manifests now, leaves the rest pending."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import CompactorError
from compactor.core.inputs.dates import date_of_file
from compactor.core.inputs.source_places import Routes
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import Clock
from compactor.ledger.state import State
from compactor.sources.candidates import Candidate, Group, not_data_reason
from compactor.sources.claiming import Kind, claim_key
from compactor.sources.events.messages import Announcement, EventError, parse_body
from compactor.sources.plan import Plan
from compactor.sources.planner import Planner, Source
from compactor.telemetry.logs import log_event

BUILD_SECONDS = 60.0
"""How long a builder call starts new groups: half of the function's time-out, so that the last groups finish."""


@dataclass(frozen=True, slots=True)
class AnnouncedFiles(Source):
    """The files announced for one stream.

    Attributes:
        files: By claim key.
    """

    state: State
    files: Mapping[str, ManifestFile]
    allowed_prefixes: Sequence[str]
    rest: Kind = field(default="part", init=False)
    fails_alone: bool = field(default=True, init=False)

    def candidates(self, plan: Plan) -> Iterator[Candidate]:
        rules, found = self.state.rules, list[Candidate]()
        for file in self.files.values():
            reason = not_data_reason(file.uri, file.size_bytes or 0, self.allowed_prefixes)
            if reason is None and rules.excludes(file.uri):
                reason = "excluded"
            if reason is not None:
                plan.skip(reason, file.uri)
                continue
            dated = date_of_file(file.uri, file.event_time or self.state.clock.now())
            named = rules.with_path_columns(file.model_copy(update={"dated_by": dated.rule}))
            found.append(Candidate.of_file(dated.date, named))
        yield from sorted(found, key=lambda each: each.date)

    def in_order(self, groups: Sequence[Group]) -> Sequence[Group]:
        """Full groups, then the largest, so that many small ones do not delay the bulk."""
        return sorted(groups, key=lambda each: (not each.is_full, -each.size_bytes))


@dataclass(slots=True)
class Built:
    """The plans for a batch of messages.

    Attributes:
        skipped: Objects and records that are not input of any stream, by reason.
        unrouted: Files in the watched places that belong to no stream; no manifest names them.
        first_unrouted: One of their URIs; empty if there is none.
        failed: Why each failed message has to be redelivered, by message id.
        failed_by: How many messages each stream failed; an empty name counts those of no stream.
    """

    messages: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    unrouted: int = 0
    first_unrouted: str = ""
    failed: dict[str, str] = field(default_factory=dict)
    plans: dict[str, Plan] = field(default_factory=dict)
    failed_by: Counter[str] = field(default_factory=Counter)

    @property
    def figures(self) -> dict[str, dict[str, float]]:
        """Each stream's figures for the metrics; an empty name has those of no stream."""
        found: dict[str, dict[str, float]] = {
            stream: {
                "FilesAnnounced": plan.candidates,
                "BytesAnnounced": plan.candidate_bytes,
                "FilesSkipped": plan.skipped.total(),
                "FilesRepeated": plan.planned_before,
                "FilesMisdated": plan.misdated,
                "MessagesFailed": self.failed_by[stream],
                "ManifestsBuilt": len(plan.manifests),
            }
            for stream, plan in self.plans.items()
        }
        of_none = found.setdefault("", {})
        of_none["FilesSkipped"] = of_none.get("FilesSkipped", 0) + self.skipped.total()
        of_none["MessagesFailed"] = self.failed_by[""]
        return found

    def log(self) -> None:
        plans = self.plans.values()
        log_event(
            "messages.built",
            messages=self.messages,
            files=sum(each.candidates for each in plans),
            repeated=sum(each.planned_before for each in plans),
            skipped=dict(sum((each.skipped for each in plans), start=self.skipped)),
            manifests=sum(len(each.manifests) for each in plans),
            parts=sum(len(each.parts) for each in plans),
            failed=len(self.failed),
        )


_Announced = dict[str, tuple[ManifestFile, list[str]]]
"""Files by claim key, each with the messages that announced it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Builder:
    """Processes batches of messages.

    The streams of a batch are built concurrently, so that a flood in one does not delay the others. A stream whose
    store or records fail only fails its own messages.

    Attributes:
        watched: The folders whose objects are announced, routed or not.
        routes: Which stream an object belongs to; None without streams: the only one then has an empty name.
        read_body: Parses a message body; raises `EventError` if it cannot.
    """

    planner_of: Callable[[str], Planner]
    allowed_prefixes_of: Callable[[str], Sequence[str]]
    clock: Clock
    watched: Sequence[str]
    routes: Routes | None = None
    read_body: Callable[[str | bytes], Announcement] = parse_body

    def build(self, messages: Mapping[str, str | bytes]) -> Built:
        """Process a batch of messages.

        A message succeeds once each announced file is in a manifest or a pending part, whichever builder wrote it. Any
        other message fails and has to be redelivered.

        Raises:
            OperatorError: An operator must act, and there are no streams. No message may be acknowledged.
        """
        report = Built(messages=len(messages))
        streams: dict[str, _Announced] = {} if self.routes is not None else {"": {}}
        for message_id, body in messages.items():
            for stream, file in self._announced(message_id, body, report):
                of_stream = streams.setdefault(stream, {})
                of_stream.setdefault(claim_key(file), (file, []))[1].append(message_id)
        if report.unrouted:
            log_event("files.unrouted", files=report.unrouted, first=report.first_unrouted)
        until = self.clock.now() + timedelta(seconds=BUILD_SECONDS)
        build = partial(self._built, streams, until)
        for stream, (plan, failed) in zip(streams, map_ordered(build, streams), strict=True):
            report.failed |= failed
            report.failed_by[stream] += len(failed)
            report.plans[stream] = plan
        return report

    def _announced(self, message_id: str, body: str | bytes, report: Built) -> Iterable[tuple[str, ManifestFile]]:
        """The files of one message, each with its stream; counts those of no stream."""
        try:
            announcement = self.read_body(body)
        except EventError as exc:
            log_event("message.unreadable", message_id=message_id, error=exc)
            report.failed[message_id] = str(exc)
            report.failed_by[""] += 1
            return
        report.skipped.update(announcement.ignored)
        for file in announcement.files:
            stream = self.routes.stream_of(file.uri) if self.routes is not None else ""
            if stream is not None:
                yield stream, file
            elif reason := not_data_reason(file.uri, file.size_bytes or 0, self.watched):
                report.skipped[reason] += 1
            else:
                report.unrouted += 1
                report.first_unrouted = report.first_unrouted or file.uri

    def _built(self, streams: Mapping[str, _Announced], until: datetime, stream: str) -> tuple[Plan, Mapping[str, str]]:
        """The plan for a stream's files, and why each of its failed messages has to be redelivered."""
        announced = streams[stream]
        try:
            plan = self._planned(stream, announced, until, groups_at_once=max(1, THREADS // len(streams)))
        except CompactorError as exc:
            if self.routes is None:
                raise
            # The other streams need not wait for the operator.
            failed = {id_: f"stream {stream}: {exc}" for _, ids in announced.values() for id_ in ids}
            log_event("stream.not_built", stream=stream, messages=len(failed), error=exc)
            return Plan(), failed
        if plan.left_manifests:
            log_event("groups.left", groups=plan.left_manifests, seconds=BUILD_SECONDS)
        if plan.held:
            log_event("files.held", files=plan.held, first=plan.first_held, until=plan.held_until)
        return plan, {id_: why for key, why in plan.failed.items() for id_ in announced[key][1]}

    def _planned(self, stream: str, announced: _Announced, until: datetime, *, groups_at_once: int) -> Plan:
        planner = self.planner_of(stream)
        planner = replace(
            planner, groups_at_once=min(planner.groups_at_once, groups_at_once), page_files=len(announced)
        )
        files = {key: file for key, (file, _) in announced.items()}
        source = AnnouncedFiles(planner.state, files, self.allowed_prefixes_of(stream))
        return planner.plan(source, begins_until=until)
