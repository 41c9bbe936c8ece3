"""Short pauses for all tests of the job."""

import pytest

from compactor.job import service
from compactor.ndjson.files import patient_reads


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "FIRST_PAUSE_SECONDS", 0.0)
    monkeypatch.setattr(service, "ONCE_SECONDS", 0.5)
    monkeypatch.setattr(patient_reads, "PAUSES_SECONDS", tuple(each / 100 for each in patient_reads.PAUSES_SECONDS))
