"""What a draft of a redriven manifest leaves out."""

from collections.abc import Mapping
from datetime import UTC, datetime

from compactor.core.documents.manifest import ManifestFile
from compactor.core.documents.records import DeadLetter
from compactor.core.layout import ManifestKey
from compactor.ledger.accounts.account import Account
from compactor.ops.redrive.planner import Draft
from compactor.sources.file_search import Naming

DATE = "2026-01-02"


class CountingDraft(Draft):
    """A draft that counts how often it goes through its files."""

    passes = 0

    def refuse(self, refused: Mapping[str, str]) -> None:
        self.passes += 1
        super().refuse(refused)


def test_files_of_other_manifests_are_refused_in_one_pass() -> None:
    """A dead letter may name very many files: each pass goes through all of them."""
    letter = DeadLetter(
        manifest_id="m",
        date=DATE,
        reason="no_files",
        message="",
        source_uri="/m/m.json",
        run_id="run",
        decided_at=datetime(2026, 1, 2, tzinfo=UTC),
    )
    files = [ManifestFile(uri=f"/raw/{number}.ndjson") for number in range(100)]
    key = ManifestKey(DATE, "m")
    draft = CountingDraft(Account(key=key, outcome=letter), key, DATE, files=files)
    found = {file.uri: [Naming("other", file.uri, None, "compacted")] for file in files[1:]}
    draft.refuse_named(files, found)
    assert (draft.files, len(draft.refused), draft.passes) == (files[:1], 99, 1)
