"""Commits as sizing and cost remember them."""

from datetime import datetime
from typing import Any

from compactor.core.documents.records import RecentCommit


def recent_commit(decided_at: datetime, **changes: Any) -> RecentCommit:
    """A commit of one file with one record, of one byte each way, that took a second.

    Args:
        decided_at: When it was committed.
        changes: Fields with other values.
    """
    fields = {
        "manifest_id": "m",
        "date": "2026-01-02",
        "decoded_bytes": 1,
        "input_bytes": 1,
        "output_bytes": 1,
        "output_files": 1,
        "input_files": 1,
        "records": 1,
        "rejected_lines": 0,
        "seconds": 1,
        "target_file_bytes": 0,
        "right_sized_bytes": 0,
        "small_bytes": 0,
    }
    return RecentCommit(**{**fields, "decided_at": decided_at, **changes})
