"""Short pauses for all tests of the job."""

import pytest

from compactor.job import service
from compactor.ndjson.files import object_reading


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(service, "ONCE_SECONDS", 0.5)
    monkeypatch.setattr(object_reading, "PAUSES_SECONDS", tuple(each / 100 for each in object_reading.PAUSES_SECONDS))
