"""What is tried, how often, and what may be read."""

from tests.guards.guard import Guard

_COMPACTION = "tests/unit/job/test_compaction.py"
_VERIFIED = "tests/unit/job/test_verified_work.py"
_BATCHES = "tests/unit/job/test_batches.py"
_MANIFEST = "tests/unit/core/test_manifest.py"
_PLANNING = "tests/unit/manifests/test_planning.py"
_ATTEMPTS = "tests/unit/core/test_attempts.py"
_SERVICE = "tests/unit/job/test_service.py"
_SELF_TEST = "tests/unit/job/test_self_test.py"

ATTEMPTS = (
    Guard(
        "an attempt is on record before its work starts",
        "ledger/ledger.py",
        "            if self._store.create(self._layout.attempt(key, number), _json(attempt)):\n",
        "            if True:\n",
        (_COMPACTION + "::test_life_in_order",),
    ),
    Guard(
        "a manifest that kills its driver each time runs out of attempts",
        "job/steps/attempt_review.py",
        "        if held >= self.rules.max_attempts:\n            error, refused",
        "        if False:\n            error, refused",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
    Guard(
        "a failure that a wrong clock recorded in the future postpones no attempt",
        "core/rules/attempts.py",
        "    if now is not None:\n        believed_until",
        "    if False:\n        believed_until",
        (_ATTEMPTS + "::test_a_failure_from_the_future",),
    ),
    Guard(
        "only a death alone counts",
        "core/rules/attempts.py",
        "        return state.attempt.alone and state.attempt.run_id not in living_runs\n",
        "        return state.attempt.run_id not in living_runs\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "passing trouble does not count",
        "core/rules/attempts.py",
        "    return state.failure is not None and not state.failure.passing\n",
        "    return True\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "an undecided failure counts once others got through",
        "core/rules/attempts.py",
        "        is_told = got_through or (passed and state.is_experiment)\n",
        "        is_told = passed and state.is_experiment\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "a self-test tells of an attempt alone, with another one before it",
        "core/rules/attempts.py",
        "        return self.attempt.alone and self.attempt.after_self_test and not is_refused\n",
        "        return not is_refused\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "an attempt of a run that lives is no death",
        "core/rules/attempts.py",
        "        return state.attempt.alone and state.attempt.run_id not in living_runs\n",
        "        return state.attempt.alone\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "suspects are kept apart",
        "core/rules/attempts.py",
        "        return Lane.ISOLATED if held >= rules.max_attempts - 1 else Lane.SUSPECT\n",
        "        return Lane.RETRY\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "with each death fewer suspects run together",
        "job/delivery/work_queue.py",
        "        return self.slots >> deaths\n",
        "        return self.slots\n",
        ("tests/unit/job/test_work_queue.py",),
    ),
    Guard(
        "a run that was asked to end has killed no manifest",
        "job/recovery.py",
        '        blamed = "" if was_stopping else "".join(alone)\n',
        '        blamed = "".join(alone)\n',
        ("tests/unit/job/test_recovery.py",),
    ),
    Guard(
        "a failed write of the outcome is never held against the manifest",
        "job/steps/compaction.py",
        "            self.failures.add(accepted.key, attempt, exc, passing=True)\n",
        "            pass\n",
        (_VERIFIED + "::test_a_commit_that_could_not_be_written_leaves_a_passing_failure",),
    ),
    Guard(
        "verified work is not done again",
        "job/steps/compaction.py",
        "        if verified is not None:\n",
        "        if False:\n",
        (_VERIFIED + "::test_a_commit_that_could_not_be_written_is_decided_without_a_second_conversion",),
    ),
    Guard(
        "a verified commit is only decided with all its staged files",
        "job/steps/staging.py",
        "            if commit is not None and all(size_of(file) == file.size_bytes for file in files):\n",
        "            if commit is not None:\n",
        (_VERIFIED + "::test_verified_work_whose_staging_is_gone_is_done_again",),
    ),
    Guard(
        "open manifests are found again after a death",
        "ledger/ledger.py",
        "        self._store.create(self._layout.open_marker(key.id, generation, attempt), _json(marker))\n",
        "        del marker\n",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
    Guard(
        "verified work whose record is damaged is done again",
        "job/steps/staging.py",
        "        except RecordUnreadable as exc:\n",
        "        except ZeroDivisionError as exc:\n",
        (_VERIFIED + "::test_verified_work_whose_record_is_damaged_is_done_again",),
    ),
    Guard(
        "verified work of a newer release waits for that release",
        "job/steps/staging.py",
        "        except RecordTooNew:\n            raise\n",
        "",
        ("tests/unit/job/test_newer_records.py",),
    ),
    Guard(
        "an object under a name that a busy stream has delivered before is taken in",
        "job/service.py",
        "                or info.modified_at <= late\n",
        "",
        (_SERVICE + "::test_what_the_stream_does_not_deliver_again_while_busy",),
    ),
    Guard(
        "a clock that was ahead holds up no sweep and no heartbeat",
        "job/service.py",
        "    return abs((now - since).total_seconds()) >= seconds\n",
        "    return (now - since).total_seconds() >= seconds\n",
        (_SERVICE + "::test_a_clock_that_was_ahead_for_a_moment",),
    ),
    Guard(
        "a pause that a clock ahead has set is no longer than the longest one",
        "core/rules/backoff.py",
        "    return not now < until <= now + timedelta(seconds=longest_seconds)\n",
        "    return until <= now\n",
        ("tests/unit/job/test_retention.py::test_a_clock_that_was_ahead_for_a_moment",),
    ),
    Guard(
        "a run that a wrong clock began in the future postpones no attempt",
        "core/rules/attempts.py",
        "        if run_began_at is not None and run_began_at > believed_until:\n",
        "        if False:\n",
        (_ATTEMPTS + "::test_a_run_that_began_in_the_future",),
    ),
    Guard(
        "a self-test that a clock ahead has dated tells of no failure",
        "job/steps/self_test.py",
        "        return self._passed_at is not None and moment <= self._passed_at <= self.state.clock.now()\n",
        "        return self._passed_at is not None and moment <= self._passed_at\n",
        (_SELF_TEST + "::test_a_clock_that_was_ahead_for_a_moment",),
    ),
)

PLACES = (
    Guard(
        "a manifest cannot name files outside the allowed prefixes",
        "core/documents/manifest_parsing.py",
        "        if not is_gap and not is_allowed(path, manifest.manifest_id, allowed_prefixes, redriven_folder):\n",
        "        if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a manifest of millions of files is refused before it is parsed",
        "core/documents/manifest_parsing.py",
        "    if values > most:\n",
        "    if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a manifest names no more files than it may",
        "core/documents/manifest_parsing.py",
        "    if len(files) > rules.max_files:\n",
        "    if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "an ETag that no request can carry is refused with its manifest",
        "core/documents/manifest_parsing.py",
        "    return _ETAG.fullmatch(text) is not None\n",
        "    return True\n",
        (_MANIFEST,),
    ),
    Guard(
        "a date that cannot be right is not taken from a name",
        "core/inputs/dates.py",
        "        if named is not None and self._holds(named.date, arrived_at):\n",
        "        if named is not None:\n",
        ("tests/unit/core/test_dates.py",),
    ),
    Guard(
        "nothing outside the allowed prefixes is planned",
        "manifests/planning.py",
        "        if not any(is_within(folder(prefix), each) for each in self.allowed_prefixes):\n",
        "        if False:\n",
        (_PLANNING,),
    ),
)
