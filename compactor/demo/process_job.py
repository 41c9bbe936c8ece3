"""Runs the job in place of Glue: each run is a process, which can be killed."""

import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from compactor.control.runs import JobRun, JobState, newest_first
from compactor.core.errors import CompactorError

END_SECONDS = 60.0  # a run that is told to end finishes its batch first


@dataclass(frozen=True, slots=True)
class ProcessJob:
    """`compactor.control.ports.JobRuns` for one job with one run at a time; all runs write to one log."""

    environment: Mapping[str, str]
    log: Path
    _runs: dict[str, tuple[datetime, "subprocess.Popen[bytes]"]] = field(default_factory=dict)
    _ended: dict[str, datetime] = field(default_factory=dict)

    @property
    def is_running(self) -> bool:
        return any(process.poll() is None for _, process in self._runs.values())

    def list(self, since: datetime) -> Sequence[JobRun]:
        runs = [self._run(run_id) for run_id, (started_at, _) in self._runs.items() if started_at >= since]
        return newest_first(runs)

    def defined_at(self) -> datetime | None:
        return None

    def start(self) -> str | None:
        if self.is_running:
            return None
        run_id = f"jr_{len(self._runs) + 1}"
        with self.log.open("ab") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "compactor", "--log-format", "json", "run"],
                env=dict(self.environment),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,  # so that its JVM is killed with it
            )
        self._runs[run_id] = (datetime.now(UTC), process)
        return run_id

    def stop(self, run_id: str) -> None:
        self._runs[run_id][1].terminate()

    def kill(self) -> None:
        """Kill the latest run with all of its processes, as the loss of a machine would."""
        process = [*self._runs.values()][-1][1]
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def wait(self) -> int:
        """Wait for the end of the latest run; returns its exit code.

        Raises:
            CompactorError: It does not end.
        """
        run_id, (_, process) = [*self._runs.items()][-1]
        try:
            return process.wait(END_SECONDS)
        except subprocess.TimeoutExpired as exc:
            raise CompactorError(
                f"run {run_id} was asked to end {END_SECONDS:.0f} s ago and still runs; its log: {self.log}"
            ) from exc

    def end(self) -> None:
        """End all runs, by force if they do not end in time."""
        for _, process in self._runs.values():
            if process.poll() is None:
                process.terminate()
                try:
                    process.wait(END_SECONDS)
                except (subprocess.TimeoutExpired, KeyboardInterrupt):
                    os.killpg(process.pid, signal.SIGKILL)
                    process.wait()

    def _run(self, run_id: str) -> JobRun:
        started_at, process = self._runs[run_id]
        code = process.poll()
        if code is None:
            return JobRun(run_id, JobState.RUNNING, started_at, started_at)
        ended_at = self._ended.setdefault(run_id, datetime.now(UTC))
        state, why = (JobState.FAILED, f"the process ended with {code}") if code else (JobState.SUCCEEDED, "")
        return JobRun(run_id, state, started_at, ended_at, ended_at, why)
