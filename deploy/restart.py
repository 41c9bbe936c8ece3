"""Replaces the running job by one of the deployed release, without killing what it has begun.

The runs that send heartbeats are asked to stop. They finish the manifests in flight, and the control plane starts the
next run within a minute. What does not end in `drain_seconds`, the control plane has the service stop; its
manifests are taken up again, and no line is lost or doubled by it.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from compactor.core.documents.records import RunHeartbeat
from compactor.core.errors import TryAgainError
from compactor.core.text.formatting import shown_seconds
from compactor.ledger.heartbeat import Runs
from compactor.settings.control_policy import Policy
from deploy.stack import DeploymentError

T = TypeVar("T")

POLL_SECONDS = 2.0

FORCED_SECONDS = 480.0
"""How long a run may still live after `drain_seconds`: a check of the control plane, the service's stop of the run, and
the life of its last heartbeat, which is longest if it was idle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Restart:
    """One restart.

    Attributes:
        runs: The runs that work on the state of the deployment.
        policy: The settings of its control plane.
        release: The deployed release; empty if it is not known, and any will do.
        seconds: A clock that only goes forward.
        pause: Sleeps for some seconds.
        echo: Prints a line.
    """

    runs: Runs
    policy: Policy
    release: str
    seconds: Callable[[], float]
    pause: Callable[[float], None]
    echo: Callable[[str], None]

    def go(self) -> None:
        """Ask every run to stop, and wait until they have ended and the next one works.

        Raises:
            DeploymentError: A run did not end, the next one did not come, or it is of another release.
        """
        ended = self._drained(self.runs.living())
        if self.policy.mode == "never":
            return self.echo('No run is started while control.mode is "never".')
        if self.policy.mode == "on_work":
            return self.echo('The next run starts when work waits, as control.mode is "on_work".')
        started = self._started(ended)
        if early := self._of_others(started):
            self.echo(f"run {_all(early)}: has a different release; it probably started before the deployment")
            started = self._started(ended | self._drained(early))
        if other := self._of_others(started):
            raise DeploymentError(
                f"run {_all(other)} has started, expected release {self.release}: the job's package in dist/ has "
                "a different release; run make package, then deploy again"
            )
        return None

    def _of_others(self, beats: Sequence[RunHeartbeat]) -> list[RunHeartbeat]:
        return [beat for beat in beats if self.release and beat.release != self.release]

    def _drained(self, old: Sequence[RunHeartbeat]) -> frozenset[str]:
        """Ask runs to stop, and wait until they have ended; returns their ids."""
        began, limit = self.seconds(), self.policy.drain_seconds
        for beat in old:
            self.runs.ask_to_stop(beat.run_id)
            self.echo(f"run {_all([beat])}: asked to stop; it finishes the manifests in flight")
        if not old:
            self.echo("No run sends a heartbeat, so there is none to stop.")
        left = list(old)
        while left:
            living = self._known(partial(self.runs.living_among, [beat.run_id for beat in left]))
            waited = self.seconds() - began
            for beat in [beat for beat in left if living is not None and beat.run_id not in living]:
                left.remove(beat)
                self.echo(f"run {_all([beat])}: ended after {shown_seconds(waited)}")
            if left:
                limit = self._late(left, waited, limit)
                self.pause(POLL_SECONDS)
        return frozenset(beat.run_id for beat in old)

    def _late(self, left: Sequence[RunHeartbeat], waited: float, limit: float) -> float:
        """Say once that runs are late, and give them until the control plane has had them stopped; the next limit."""
        if waited < limit:
            return limit
        late = f"run {_all(left)}: still at work {shown_seconds(waited)} after it was asked to stop"
        if limit > self.policy.drain_seconds:
            raise DeploymentError(f"{late}; read the control plane's log, and see compactor job check --dry-run")
        self.echo(f"{late}; the control plane now stops it, and the next run resumes its manifests")
        return limit + FORCED_SECONDS

    def _started(self, old: frozenset[str]) -> Sequence[RunHeartbeat]:
        """Wait for runs other than these."""
        began = self.seconds()
        longest = self.policy.backoff_longest_seconds + self.policy.start_grace_seconds
        self.echo(f"Waiting up to {shown_seconds(longest)} for the control plane to start the next run.")
        while not (new := [beat for beat in self._known(self.runs.living) or () if beat.run_id not in old]):
            if self.seconds() - began >= longest:
                raise DeploymentError(
                    f"no run sent a heartbeat within {shown_seconds(longest)}; see compactor job check --dry-run, "
                    "and the end of the job's log"
                )
            self.pause(POLL_SECONDS)
        self.echo(f"run {_all(new)}: running after {shown_seconds(self.seconds() - began)}")
        return new

    def _known(self, read: Callable[[], T]) -> T | None:
        """What the state says; None if that cannot be read now. The next poll asks again."""
        try:
            return read()
        except TryAgainError as exc:
            self.echo(f"The runs cannot be read now: {exc}")
            return None


def _all(beats: Sequence[RunHeartbeat]) -> str:
    return ", ".join(f"{beat.run_id} (release {beat.release or 'unknown'})" for beat in beats)
