"""Ten million records of topics, and every one of them accounted for."""

from pathlib import Path

import pytest

from tests.support.extras import KAFKA, NATIVE

KAFKA.need()
NATIVE.need()

from tests.soak import topics  # noqa: E402 - it needs the client


@pytest.mark.large
@pytest.mark.timeout(4 * 3600)
def test_ten_million_records(tmp_path: Path) -> None:
    """While fifty jobs are killed, and planners and brokers beside them; and retention overtakes a partition."""
    assert topics.run(tmp_path, records=10_000_000, kills=50, seed=7) == []
