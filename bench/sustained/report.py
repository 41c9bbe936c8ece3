"""Reports a run: figures, and whether the job kept up with the load."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any

from bench.sustained.flow import JUDGED_SECONDS, WARM_UP_SECONDS, Flow
from bench.sustained.run import Result

STEP_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether the job kept up with the load.

    Attributes:
        faults: Why it did not; empty if it did.
        backlog: How the backlog changed, in words.
    """

    faults: tuple[str, ...]
    backlog: str


def judge(flow: Flow, result: Result, *, asked_rate: float, manifest_bytes: int) -> Verdict:
    """Judge whether the load was fed in full, and whether the job processed it as fast.

    Args:
        flow: The flow of all files.
        result: The result of the run.
        asked_rate: The load in bytes a second.
        manifest_bytes: The size of a manifest; a smaller change of the backlog is no growth.
    """
    faults = list(result.proved.faults)
    if flow.input_rate < 0.99 * asked_rate:
        faults.append(f"{flow.input_rate / 1e6:.1f} MB/s were fed, expected {asked_rate / 1e6:.1f}")
    if not flow.is_judged:
        return Verdict(
            tuple(faults), f"too short to say whether it grew: feed for {JUDGED_SECONDS / 60:.1f} min or more"
        )
    grew = flow.growth_bytes > manifest_bytes
    words = (
        f"{'grew' if grew else 'did not grow'}: {flow.growth_bytes / 1e6:+,.0f} MB, {flow.growth_rate / 1e6:+.1f} MB/s"
    )
    return Verdict((*faults, f"the backlog {words}") if grew else tuple(faults), words)


def figures(flow: Flow, result: Result, verdict: Verdict) -> dict[str, Any]:
    """All figures, for programs."""
    delays, proved = flow.delays, result.proved
    return {
        "input_megabytes_per_second": flow.input_rate / 1e6,
        "processing_megabytes_per_second": flow.processing_rate / 1e6,
        "files": result.fed.files,
        "bytes": result.fed.bytes,
        "seconds": result.fed.seconds,
        "backlog_bytes": {str(round(at)): flow.backlog(at) for at in _moments(flow)},
        "backlog": verdict.backlog,
        "p50_seconds": delays.percentile(50),
        "p99_seconds": delays.percentile(99),
        "p99_seconds_with_tail": flow.all_delays.percentile(99),
        "drain_seconds": result.drain_seconds,
        "cores": {**result.processor_shares, "machine": result.machine_share},
        "peak_memory_bytes": result.peak_memory_bytes,
        "manifests": proved.manifests,
        "output_files": len(proved.output_sizes),
        "median_output_bytes": median(proved.output_sizes or [0]),
        "hit_rate": proved.right_sized / proved.sized if proved.sized else None,
        "lines": proved.lines,
        "rows": proved.rows,
        "rejected_lines": proved.rejected_lines,
        "blank_lines": proved.blank_lines,
        "kills": result.kills,
        "resizes": result.resizes,
        "builder_calls": result.built.calls,
        "longest_builder_call_seconds": result.built.longest_call_seconds,
        "faults": list(verdict.faults),
    }


def fields(flow: Flow, result: Result, verdict: Verdict) -> Iterator[tuple[str, str]]:
    """All figures, for people: names and values."""
    fed, built, proved, delays = result.fed, result.built, result.proved, flow.delays
    yield "fed", f"{fed.files:,} files, {fed.bytes / 1e9:.2f} GB in {fed.seconds:.0f} s"
    yield "input rate", f"{flow.input_rate / 1e6:.1f} MB/s"
    start = f"from {WARM_UP_SECONDS:.0f} s to" if flow.is_judged else "until"
    yield "processing rate", f"{flow.processing_rate / 1e6:.1f} MB/s became visible, {start} the end of the feeding"
    backlogs = "  ".join(f"{at:.0f} s {flow.backlog(at) / 1e9:.2f}" for at in _moments(flow))
    yield "backlog, GB", f"{backlogs}\n{verdict.backlog}"
    with_tail = (
        f"with the last files, which wait for others that never come, p99 {flow.all_delays.percentile(99):.1f} s"
    )
    seen = f"p50 {delays.percentile(50):.1f} s, p99 {delays.percentile(99):.1f} s"
    yield "arrival to visible", f"{seen}; {with_tail};\ndrained in {result.drain_seconds:.0f} s"
    shares = sorted(result.processor_shares.items(), key=lambda item: -item[1])
    yield (
        "cores in use",
        ", ".join(f"{part} {share:.2f}" for part, share in (*shares, ("machine", result.machine_share))),
    )
    yield "trouble", f"{result.kills} kills, {result.resizes} changes of the number of processes"
    yield "peak memory", f"{result.peak_memory_bytes / 2**20:,.0f} MiB of all processes together"
    calls = f"{built.calls} calls, the longest {built.longest_call_seconds:.1f} s, {built.returned} messages again"
    yield "builder", f"{built.manifests} manifests in {calls}"
    yield (
        "output",
        f"{len(proved.output_sizes)} files, {_sizes(proved.output_sizes)}; {_hits(proved.right_sized, proved.sized)}",
    )
    sums = f"{proved.rows:,} rows + {proved.rejected_lines:,} rejects + {proved.blank_lines:,} blank"
    yield "lines", f"{proved.lines:,} = {sums}, in {proved.manifests} manifests, each verified, then removed"
    yield "held", "yes" if not verdict.faults else "no: " + "\n".join(verdict.faults[:10])


def _moments(flow: Flow) -> Iterator[float]:
    steps = int(flow.fed_seconds // STEP_SECONDS)
    return (step * STEP_SECONDS for step in range(1, steps + 1))


def _sizes(sizes: Sequence[int]) -> str:
    return f"{min(sizes) / 1e6:.1f} to {max(sizes) / 1e6:.1f} MB, median {median(sizes) / 1e6:.1f}" if sizes else "none"


def _hits(hits: int, counted: int) -> str:
    return f"{hits} of {counted} right-sized" if counted else "none had to be of the target's size"
