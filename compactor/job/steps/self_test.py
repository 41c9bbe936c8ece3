"""Converts a sample of the job's own: whether it can tells manifests that always fail from an environment that does."""

from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from threading import Lock

from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import FileStatus
from compactor.core.errors import CompactorError, EngineLost, OperatorError
from compactor.core.rules.backoff import is_over
from compactor.engines.engine import Engine, StageRequest
from compactor.engines.staged_files import verify_staged
from compactor.ledger.state import State
from compactor.schema.schema import Column, KeyLimits, SchemaVersion
from compactor.telemetry.logs import log_event

SAMPLE = b'{"sample": "1"}\n{"sample": "2"}\n'

PAUSE_SECONDS = 10.0
"""The pause after a self-test that failed."""

_NAME = "self-test"


@dataclass(slots=True, kw_only=True)
class SelfTest:
    """Takes the sample through reading, conversion and verification. Publishes nothing, and leaves nothing behind.

    Attributes:
        engine: The engine of the job.
        metadata_columns: Metadata columns of the output.
    """

    state: State
    engine: Engine
    metadata_columns: tuple[str, ...]
    _passed_at: datetime | None = None
    _failed_at: datetime | None = None
    _lock: Lock = field(default_factory=Lock)

    def has_passed_since(self, moment: datetime) -> bool:
        """Return whether the sample was converted after a moment; try now if it was not, unless it just failed.

        Raises:
            OperatorError: A person must act.
            EngineLost: The engine is gone.
        """
        with self._lock:
            if not self._passed_since(moment) and not self._has_just_failed():
                self._run()
            return self._passed_since(moment)

    def _passed_since(self, moment: datetime) -> bool:
        # A time in the future is of a clock that was ahead, and tells nothing.
        return self._passed_at is not None and moment <= self._passed_at <= self.state.clock.now()

    def _has_just_failed(self) -> bool:
        if self._failed_at is None:
            return False
        until = self._failed_at + timedelta(seconds=PAUSE_SECONDS)
        return not is_over(until, self.state.clock.now(), longest_seconds=PAUSE_SECONDS)

    def _run(self) -> None:
        begun_at = self.state.clock.now()
        folder = self.state.layout.self_test(self.state.ledger.run_id)
        try:
            self._convert(folder, begun_at)
        except (OperatorError, EngineLost):
            raise
        except Exception as exc:  # noqa: BLE001 - whatever it is, manifests fail of it as well
            self._failed_at = self.state.clock.now()
            log_event("self_test.failed", error=exc)
        else:
            self._passed_at = begun_at
        finally:
            with suppress(CompactorError):
                self.state.store.delete([info.uri for info in self.state.store.list(folder)])

    def _convert(self, folder: str, begun_at: datetime) -> None:
        store, uri = self.state.store, f"{folder}sample.ndjson"
        store.put(uri, SAMPLE)
        date = f"{begun_at:%Y-%m-%d}"
        file = ManifestFile(uri=uri, size_bytes=len(SAMPLE))
        manifest = Manifest(manifest_id=_NAME, date=date, created_at=begun_at, files=(file,))
        column = Column(key="sample", name="sample", added_in=1)
        schema = SchemaVersion(version=1, created_at=begun_at, manifest_id=_NAME, columns=(column,))
        staged = self.engine.stage(
            StageRequest(
                manifest=manifest,
                staging=f"{folder}staging/",
                schema=schema,
                declared_keys=frozenset(),
                columns_for=lambda _, *, rescued_from="": schema,  # noqa: ARG005 - of the port
                key_limits=KeyLimits(),
                ratio=1.0,
                stored_ratio=1.0,
                manifests_in_flight=1,
                processed_at=begun_at,
                on_inspected=lambda: None,
            )
        )
        verify_staged(store, manifest, staged, self.metadata_columns)
        if [report.status for report in staged.reports] != [FileStatus.COMPACTED]:
            raise CompactorError(f"{uri}: {staged.reports[0].detail}; expected to be able to read the sample")
