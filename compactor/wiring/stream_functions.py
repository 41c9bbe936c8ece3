"""The bodies of builder and sealer for several streams: each stream has its own manifests and figures."""

from collections.abc import Mapping
from dataclasses import replace

from compactor.core.errors import CompactorError
from compactor.core.map_ordered import THREADS, map_ordered
from compactor.core.ports import FLUSH_SECONDS
from compactor.manifests.building.reports import build_metrics, log_built, log_sealed, seal_counts, seal_metrics
from compactor.manifests.building.routing import RoutedBuilder
from compactor.manifests.building.sealer import SealReport
from compactor.telemetry.logs import log_event
from compactor.wiring.components import Components


def routed_builder(components: Components) -> RoutedBuilder:
    """Make what turns announced files of all streams into manifests."""
    settings, of_streams = components.settings, components.of_streams
    return RoutedBuilder(
        routes=settings.routes,
        builder_of=lambda stream: of_streams[stream].builder(),
        clock=components.clock,
        watched=settings.input.allowed_prefixes,
    )


def build_streams(components: Components, messages: Mapping[str, str | bytes]) -> Mapping[str, str]:
    """Take in a batch of messages for all streams; returns why each message that failed has to come again."""
    report = routed_builder(components).build(messages)
    of_streams = report.streams
    skipped = sum((each.skipped for each in of_streams.values()), start=report.skipped)
    log_built([*of_streams.values()], messages=report.messages, skipped=skipped, failed=len(report.failed))
    for name, of_stream in of_streams.items():
        components.of_streams[name].metrics.emit(build_metrics(of_stream))
    failed_before = report.failed.keys() - {message_id for each in of_streams.values() for message_id in each.failed}
    components.metrics.emit(
        {
            "FilesUnrouted": report.unrouted,
            "FilesSkipped": report.skipped.total(),
            "MessagesFailed": len(failed_before),
        }
    )
    _flush(components)
    return report.failed


def seal_streams(components: Components) -> dict[str, int]:
    """Seal the pending parts of all streams; returns counts, for the caller's log.

    Raises:
        CompactorError: The first error of a stream, once the others were sealed.
    """
    errors: list[CompactorError] = []
    at_once = max(1, THREADS // len(components.of_streams))

    def seal(name: str) -> SealReport:
        try:
            return replace(components.of_streams[name].sealer(), groups_at_once=at_once).seal()
        except CompactorError as exc:
            log_event("stream.not_sealed", stream=name, error=exc)
            errors.append(exc)
            return SealReport()

    reports = dict(zip(components.of_streams, map_ordered(seal, components.of_streams), strict=True))
    log_sealed([*reports.values()])
    for name, report in reports.items():
        components.of_streams[name].metrics.emit(seal_metrics(report))
    _flush(components)
    if errors:
        raise errors[0]
    return seal_counts([*reports.values()])


def _flush(components: Components) -> None:
    for each in components.of_streams.values():
        each.metrics.flush(FLUSH_SECONDS)
    components.metrics.flush(FLUSH_SECONDS)
