"""Proves from what is stored that every line of a manifest is where the ledger says: `compactor verify`."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from compactor.errors import StagingError
from compactor.layout import Layout
from compactor.ledger import Ledger
from compactor.parquet_files import parquet_facts
from compactor.ports import ObjectStore
from compactor.records import NEEDS_OPERATOR, Commit, DeadLetter, StagedFile
from compactor.registry import SchemaRegistry
from compactor.rejects import REJECTS_SCHEMA
from compactor.schema import METADATA_COLUMNS


@dataclass(frozen=True, slots=True)
class Discrepancy:
    """One thing that is not as the ledger says.

    Attributes:
        manifest_id: The manifest it belongs to; empty where none is known.
        where: The file or record.
        expected: What the ledger says.
        found: What is there.
    """

    manifest_id: str
    where: str
    expected: str
    found: str


@dataclass(slots=True)
class AuditReport:
    """What was proved.

    `rows + rejected_lines + blank_lines == lines` holds for every file, or there is a discrepancy that says where not.

    Attributes:
        manifests: Committed manifests that were looked at.
        dead_letters: Manifests that were set aside.
        unfinished: Manifests on record that are not done; their input is still to be done.
        files: Input files of the committed manifests.
        files_by_status: The same, by what became of them.
        inputs_gone: Inputs that a deep audit could not read again, because they are gone or another version by now.
        inputs_compared: Inputs whose every value a deep audit compared.
        discrepancies: Empty if all is well.
    """

    manifests: int = 0
    dead_letters: int = 0
    unfinished: int = 0
    files: int = 0
    files_by_status: Counter[str] = field(default_factory=Counter)
    lines: int = 0
    rows: int = 0
    rejected_lines: int = 0
    blank_lines: int = 0
    rejects_by_reason: Counter[str] = field(default_factory=Counter)
    output_files: int = 0
    output_bytes: int = 0
    inputs_gone: int = 0
    inputs_compared: int = 0
    discrepancies: list[Discrepancy] = field(default_factory=list)

    @property
    def needs_operator(self) -> bool:
        """Whether a person has to look: something does not add up, or was set aside whole."""
        set_aside = sum(self.files_by_status[status] for status in NEEDS_OPERATOR)
        return bool(self.discrepancies or self.dead_letters or set_aside)


DeepCheck = Callable[[Commit, AuditReport], None]
"""Compares the contents of a commit's inputs and outputs, and adds to the report."""


class Auditor:
    """Holds the ledger against output and rejects.

    Args:
        store: Where everything is.
        layout: The places.
        ledger: What should be.
        registry: The schema versions.
    """

    def __init__(self, store: ObjectStore, layout: Layout, ledger: Ledger, registry: SchemaRegistry) -> None:
        self._store = store
        self._layout = layout
        self._ledger = ledger
        self._registry = registry

    def audit(
        self,
        manifests: Iterable[tuple[str, str]],
        *,
        whole_days: bool,
        deep_check: DeepCheck | None = None,
        on_manifest: Callable[[str], None] = lambda _: None,
    ) -> AuditReport:
        """Check manifests.

        Args:
            manifests: Their dates and ids.
            whole_days: These are all manifests of their days, so any other file in the days' folders is one too many.
            deep_check: Compares contents as well.
            on_manifest: Told of each manifest that was checked.
        """
        report = AuditReport()
        expected: dict[str, set[str]] = {}
        decided: set[str] = set()
        for day, manifest_id in manifests:
            outputs = expected.setdefault(day, set())
            state = self._ledger.state(day, manifest_id)
            if state.outcome is not None:
                decided.add(manifest_id)
            if state.outcome is None or not state.is_done:
                report.unfinished += 1
                if isinstance(state.outcome, Commit):
                    outputs.update(file.final for file in state.outcome.outputs)
            elif isinstance(state.outcome, DeadLetter):
                report.dead_letters += 1
            else:
                outputs.update(file.final for file in state.outcome.outputs)
                self._check_commit(state.outcome, report)
                if deep_check is not None:
                    deep_check(state.outcome, report)
            on_manifest(manifest_id)
        if whole_days:
            for day, names in expected.items():
                report.discrepancies.extend(self._surplus(day, names, decided))
        return report

    def _check_commit(self, commit: Commit, report: AuditReport) -> None:
        report.manifests += 1
        for file in commit.files:
            report.files += 1
            report.files_by_status[file.status] += 1
            report.lines += file.lines
            report.rows += file.records
            report.rejected_lines += file.rejected_lines
            report.blank_lines += file.blank_lines
            report.rejects_by_reason.update(file.rejects)
            accounted = file.records + file.rejected_lines + file.blank_lines
            if accounted != file.lines:
                report.discrepancies.append(
                    Discrepancy(commit.manifest_id, file.uri, f"{file.lines} lines", f"{accounted} accounted for")
                )
        columns = [column.name for column in self._registry.version(commit.schema_version).columns]
        for output in commit.outputs:
            report.output_files += 1
            report.output_bytes += output.size_bytes
            report.discrepancies.extend(self._check_file(commit, output, columns))
        for rejects in commit.rejects:
            report.discrepancies.extend(self._check_file(commit, rejects, list(REJECTS_SCHEMA.names)))
        report.discrepancies.extend(_check_sums(commit))

    def _check_file(self, commit: Commit, file: StagedFile, columns: list[str]) -> Iterator[Discrepancy]:
        try:
            facts = parquet_facts(self._store, file.final)
        except StagingError as exc:
            yield Discrepancy(commit.manifest_id, file.final, f"{file.rows} rows, {file.size_bytes} bytes", str(exc))
            return
        if (facts.rows, facts.size_bytes) != (file.rows, file.size_bytes):
            yield Discrepancy(
                commit.manifest_id,
                file.final,
                f"{file.rows} rows, {file.size_bytes} bytes",
                f"{facts.rows} rows, {facts.size_bytes} bytes",
            )
        found = [name for name in facts.columns if name not in METADATA_COLUMNS]
        if found != columns:
            yield Discrepancy(commit.manifest_id, file.final, f"columns {columns}", f"columns {found}")

    def _surplus(self, day: str, expected: set[str], decided: set[str]) -> Iterator[Discrepancy]:
        found = [
            info
            for info in self._store.list(self._layout.output_day(day))
            if info.uri not in expected and info.uri.endswith(".parquet")
        ]
        named = self._named_since(day, decided) if found else set()
        for info in found:
            if info.uri not in named:
                yield Discrepancy("", info.uri, "no such file: no commit names it", f"{info.size_bytes} bytes")

    def _named_since(self, day: str, decided: set[str]) -> set[str]:
        """The outputs of manifests that a job decided on while the audit was looking at others."""
        states = (self._ledger.state(day, each) for _, each in self._ledger.manifests(day) if each not in decided)
        commits = (state.outcome for state in states if isinstance(state.outcome, Commit))
        return {file.final for commit in commits for file in commit.outputs}


def _check_sums(commit: Commit) -> Iterator[Discrepancy]:
    for what, files, expected in (
        ("outputs", commit.outputs, sum(file.records for file in commit.files)),
        ("rejects", commit.rejects, sum(file.reject_rows for file in commit.files)),
    ):
        found = sum(file.rows for file in files)
        if found != expected:
            yield Discrepancy(commit.manifest_id, f"{what} of the commit", f"{expected} rows", f"{found} rows")
