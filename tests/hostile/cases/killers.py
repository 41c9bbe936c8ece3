"""Manifests whose conversion fails each time: they kill their workers, or fill the scratch disk."""

from collections.abc import Callable
from functools import partial

from compactor.core.errors import EngineFailed, StagingError
from compactor.engines.engine import Engine, Staged, StageRequest
from tests.hostile.attack import Attack, Seen
from tests.hostile.payloads import LINE
from tests.hostile.scene import ATTACK, Scene


class _Failing:
    """An engine that fails for the attacker's manifests and stages all others."""

    def __init__(self, engine: Engine, error: Callable[[], Exception]) -> None:
        self.name = engine.name
        self._engine = engine
        self._error = error

    def is_healthy(self) -> bool:
        return self._engine.is_healthy()

    def stage(self, request: StageRequest) -> Staged:
        if request.manifest.manifest_id.startswith(ATTACK):
            raise self._error()
        return self._engine.stage(request)


def of_failures(name: str, count: int, error: Callable[[], Exception], *, quick: bool = False) -> Attack:
    """So many manifests of good lines, each of which fails in every attempt.

    Several that fail at once may have a common cause outside them: that others get through tells, or that the job can
    convert a sample of its own around an attempt with nothing else in flight.
    """

    def make(scene: Scene) -> None:
        for number in range(count):
            manifest_id = f"{ATTACK}-{number:02}"
            scene.deliver(manifest_id, [scene.named(scene.write(f"{manifest_id}.ndjson", LINE))])

    return Attack(
        name=name,
        kind="killers",
        make=make,
        expected=Seen(letters={"retries_exhausted": count}),
        engine=partial(_Failing, error=error),
        quick=quick,
    )


def _killed() -> Exception:
    return EngineFailed("a worker was killed")


def _staged_wrongly() -> Exception:
    return StagingError("3 rows written, expected 4")


ATTACKS = (
    of_failures("a-worker-killer", 1, _killed, quick=True),
    of_failures("3-worker-killers", 3, _killed),
    of_failures("24-worker-killers", 24, _killed),
    of_failures("rows-that-never-add-up", 3, _staged_wrongly),
)
