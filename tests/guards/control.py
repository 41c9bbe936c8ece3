"""Never two runs, and an outage ends."""

from tests.guards.guard import Guard

_CONTROL = "tests/unit/control/test_decisions.py"
_CONTROL_SHELL = "tests/unit/control/test_plane.py"
_UNFINISHED = "tests/unit/control/test_unfinished.py"
_NOTICES = "tests/unit/control/test_notices.py"

CONTROL = (
    Guard(
        "nothing is started while Glue cannot be asked which runs live",
        "control/decisions.py",
        "    if snapshot.runs is None:\n",
        "    if False:\n",
        (_CONTROL,),
    ),
    Guard(
        "a run in an unknown state counts as alive",
        "control/runs.py",
        "JobState.STOPPING, JobState.UNKNOWN}",
        "JobState.STOPPING}",
        ("tests/contract/test_job_runs.py::test_a_state_of_a_later_release",),
    ),
    Guard(
        "nothing is started beside a run that sends heartbeats elsewhere",
        "control/decisions.py",
        "    for each in snapshot.heartbeats.living if snapshot.heartbeats else ():\n        age",
        "    for each in ():\n        age",
        (_CONTROL,),
    ),
    Guard(
        "while Glue may restart a run by itself none is started",
        "control/decisions.py",
        "    if latest and (until := case.awaits_restart_until(latest)):\n",
        "    if latest and (until := case.now) and False:\n",
        (_CONTROL,),
    ),
    Guard(
        "an expired run that Glue restarted is no failure",
        "control/diagnosis/history.py",
        "            return not has_successor(run, self.runs) and self.awaits_restart_until(run) is None",
        "            return True",
        (_CONTROL,),
    ),
    Guard(
        "a trial that failed leaves the breaker open",
        "control/diagnosis/history.py",
        "if is_trial or end > since)",
        "if end > since)",
        (_CONTROL,),
    ),
    Guard(
        "failures far apart do not open the breaker",
        "control/diagnosis/history.py",
        "if is_trial or end > since), run.last_at]",
        "if True), run.last_at]",
        (_CONTROL,),
    ),
    Guard(
        "a rebuild that died once it had decided gets a job",
        "control/diagnosis/symptoms.py",
        "        return is_enough or bool(self.begun(had_chance=False))",
        "        return is_enough",
        (_UNFINISHED,),
    ),
    Guard(
        "no job is started for a rebuild that decided nothing",
        "ledger/backlog.py",
        "        return state.layout.opened_generation(mark.uri) <= (newest_generation(names) or 1)",
        "        return True",
        (_UNFINISHED,),
    ),
    Guard(
        "no job is started for a rebuild that is at work",
        "ledger/backlog.py",
        " and (until is None or at <= until)]",
        "]",
        (_UNFINISHED,),
    ),
    Guard(
        "no job is started again for what one had the time to finish",
        "control/diagnosis/symptoms.py",
        "        return any(seconds >= CHANCE_SECONDS for seconds in lives)",
        "        return False",
        (_CONTROL,),
    ),
    Guard(
        "a run is not idle before it had the time to finish what was begun",
        "control/diagnosis/symptoms.py",
        "        if self.begun(had_chance=False):\n",
        "        if False:\n",
        (_CONTROL,),
    ),
    Guard(
        "the marks of manifests that are delivered are not read",
        "ledger/backlog.py",
        " if each not in but and (",
        " if (",
        (_UNFINISHED,),
    ),
    Guard(
        "a stall is not restarted for ever",
        "control/diagnosis/symptoms.py",
        " and self.runs_without_commit <= STALL_RESTARTS",
        "",
        (_CONTROL,),
    ),
    Guard(
        "a silent run is not stopped while no work is known to wait",
        "control/decisions.py",
        "    if case.is_silent(run) and case.work:",
        "    if case.is_silent(run):",
        (_CONTROL,),
    ),
    Guard(
        "a run that was asked to stop is given time before it is killed",
        "control/decisions.py",
        "        if case.seconds_since(asked_at) >= case.policy.drain_seconds:",
        "        if True:",
        (_CONTROL,),
    ),
    Guard(
        "a start that meets a run is an outcome",
        "adapters/aws/jobs/glue.py",
        '                if error_code(exc) == "ConcurrentRunsExceededException":',
        "                if False:",
        ("tests/contract/test_job_runs.py::test_never_a_second_run",),
    ),
    Guard(
        "one source that fails leaves the others known",
        "control/gathering.py",
        "            except CompactorError as exc:\n",
        "            except ArithmeticError as exc:\n",
        (_CONTROL_SHELL, _NOTICES),
    ),
    Guard(
        "people are notified once per change",
        "control/notices.py",
        "if about not in told]",
        "if True]",
        (_CONTROL_SHELL, _NOTICES),
    ),
    Guard(
        "what cannot be read is told only if it lasts",
        "control/notices.py",
        "if about not in told and about not in record.passing)",
        "if False)",
        (_CONTROL_SHELL, _NOTICES),
    ),
    Guard(
        "no alarm counts as over while its source cannot be read",
        "control/notices.py",
        " if about in unseen} | alarms",
        " if False} | alarms",
        (_CONTROL_SHELL, _NOTICES),
    ),
    Guard(
        "refused starts are over with the start that is accepted",
        "control/plane.py",
        "        if seen.refusals is not None:\n",
        "        if False:\n",
        (_CONTROL_SHELL, _NOTICES),
    ),
    Guard(
        "a deployment that repairs the job closes the breaker",
        "control/gathering.py",
        "self.job.defined_at) if has_failures else None",
        "self.job.defined_at) if False else None",
        (_CONTROL_SHELL, _NOTICES),
    ),
)
