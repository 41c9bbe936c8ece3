"""Compares the output of the demo with its input."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from compactor.core.documents.changes import Commit
from compactor.core.text.formatting import by_name, count, size
from compactor.demo.commands import Echo
from compactor.demo.events import LATE_KEY, DayCounts
from compactor.ops.verify.report import VerifyResult
from compactor.wiring import operating
from compactor.wiring.app import App

REASON_OF_KIND = {
    "truncated": "invalid_json",
    "trailing_garbage": "invalid_json",
    "broken_utf8": "invalid_utf8",
    "single_quotes": "invalid_json",
    "array": "not_an_object",
}
"""The expected reject reason of each kind in `compactor.demo.events.BAD_LINES`."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The output: verification of all manifests, the schema, and the stored bytes of all inputs."""

    verification: VerifyResult
    input_bytes: int
    output_sizes: tuple[int, ...]
    work_seconds: float  # from the first attempt to the last commit
    columns: tuple[str, ...]


def read_outcome(app: App) -> Outcome:
    """Read the output from the ledger and the footers of the Parquet files."""
    manifests = list(app.ledger.manifests())
    verification = operating.verifier(app).verify_all()
    outcomes = [app.ledger.state(key).outcome for key in manifests]
    commits = [outcome for outcome in outcomes if isinstance(outcome, Commit)]
    begun = min((commit.started_at for commit in commits), default=None)
    ended = max((commit.decided_at for commit in commits), default=None)
    return Outcome(
        verification=verification,
        input_bytes=sum(file.size_bytes for commit in commits for file in commit.files),
        output_sizes=tuple(file.size_bytes for commit in commits for file in commit.outputs),
        work_seconds=(ended - begun).total_seconds() if begun and ended else 0.0,
        columns=tuple(column.name for column in app.registry.latest().columns),
    )


def differences(made: DayCounts, found: Outcome, *, in_files: bool = True) -> list[str]:
    """Each difference between input (files or a topic) and output, in words; empty if there is none."""
    rejects: Counter[str] = Counter()
    for kind, lines in made.bad_lines.items():
        rejects[REASON_OF_KIND[kind]] += lines
    verification = found.verification
    pairs: list[tuple[str, object, object]] = [
        ("lines", made.lines, verification.lines - (0 if in_files else verification.blank_lines)),
        ("rows", made.records, verification.rows),
        ("rejects by reason", dict(sorted(rejects.items())), dict(sorted(verification.rejects_by_reason.items()))),
        ("manifests not done", 0, verification.unfinished),
        ("dead letters", 0, verification.dead_letters),
        ("discrepancies", 0, len(verification.discrepancies)),
        (f"column {LATE_KEY}", True, LATE_KEY in found.columns),
    ]
    if in_files:
        pairs += [
            ("input files", made.files, verification.input_files),
            ("bytes in", made.stored_bytes, found.input_bytes),
            ("blank lines", 0, verification.blank_lines),
        ]
    return [f"{what}: {had} went in, {has} came out" for what, had, has in pairs if had != has]


def rows_out(made: DayCounts, found: Outcome) -> list[tuple[str, str]]:
    """The output next to the expected values."""
    verification = found.verification
    return [
        ("rows", f"{verification.rows:,} of {made.records:,} expected"),
        ("rejects", f"{by_name(verification.rejects_by_reason)}; {sum(made.bad_lines.values()):,} expected"),
        ("output", f"{count(len(found.output_sizes), 'file')}, {size(sum(found.output_sizes))}"),
    ]


def is_exact(
    made: DayCounts, found: Outcome, title: str, rows: Iterable[tuple[str, str]], echo: Echo, *, in_files: bool = True
) -> bool:
    """Show input and output, and return whether they match."""
    echo("", title, *(f"  {name:12}{value}" for name, value in rows))
    faults = differences(made, found, in_files=in_files)
    for fault in faults:
        echo(f"compactor: {fault}", err=True)
    return not faults
