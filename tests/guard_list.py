"""The guards that keep the promises: the code that is each one, the same code without it, and who must notice."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guard:
    """One guard.

    Attributes:
        name: What it keeps from happening, or makes sure of.
        module: Where it is, below the package.
        text: The code that is it; it is there exactly once.
        without: The same code without it.
        tests: Where at least one test must fail without it.
    """

    name: str
    module: str
    text: str
    without: str
    tests: tuple[str, ...]


_COMPACTION = "tests/unit/test_compaction.py"
_BATCHES = "tests/unit/test_batches.py"
_INTAKE = "tests/unit/test_intake.py"
_MANIFEST = "tests/unit/test_manifest.py"
_PLANNING = "tests/unit/test_planning.py"
_INPUT_FILES = "tests/unit/test_input_files.py"
_STAGED_FILES = "tests/unit/test_staged_files.py"
_ATTEMPTS = "tests/unit/test_attempts.py"
_CREATE = "tests/contract/test_object_store.py::test_create_leaves_another_object_alone"
_CLAIM = "tests/contract/test_claims.py::test_the_first_to_claim_holds_a_key"
_TAKE_OVER = "tests/contract/test_claims.py::test_taking_over"
_BUILDING = "tests/unit/test_building.py"
_BUILDING_RACES = "tests/unit/test_building_races.py"
_CONTROL = "tests/unit/test_control_decisions.py"
_CONTROL_SHELL = "tests/unit/test_control_plane.py"
_CLOUDWATCH = "tests/contract/test_cloudwatch.py"
_REQUESTS = "tests/unit/test_cloudwatch_requests.py"
_METRICS = "tests/unit/test_metrics.py"
_CRASHES = "tests/faults/test_crash_points.py"
_DRIVERS = "tests/faults/test_two_drivers.py"
_BIN_TASK = "tests/unit/test_bin_task.py"
_LATE_KEYS = "tests/unit/test_late_keys.py"

CREATE_ONLY = (
    Guard(
        "a record on a local disk is created once, never overwritten",
        "adapters/local.py",
        "place(path, lambda temporary: _write(temporary, data), os.link)",
        "place(path, lambda temporary: _write(temporary, data))",
        (_CREATE,),
    ),
    Guard(
        "two drivers on local folders cannot both decide",
        "adapters/local.py",
        "place(path, lambda temporary: _write(temporary, data), os.link)",
        "place(path, lambda temporary: _write(temporary, data))",
        (_DRIVERS,),
    ),
    Guard(
        "a record in memory is created once, never overwritten",
        "adapters/memory.py",
        "            if found is None:\n"
        "                self.put(uri, data)\n"
        "            return found is None or found.data == data",
        "            self.put(uri, data)\n            return True",
        (_CREATE,),
    ),
    Guard(
        "a record in S3 is created once, never overwritten",
        "adapters/aws/s3.py",
        ', IfNoneMatch="*")',
        ")",
        (_CREATE,),
    ),
    Guard(
        "the outcome that holds is read back by the driver that lost",
        "ledger.py",
        "        return self.outcome(outcome.date, outcome.manifest_id)",
        "        return outcome",
        (_DRIVERS,),
    ),
    Guard(
        "an id is tied to its first manifest for good",
        "ledger.py",
        "            return record\n        return _parsed(Accepted, uri, self._store.read(uri))",
        "            return record\n        return record",
        (_INTAKE,),
    ),
    Guard(
        "another manifest under a used id is set aside, not taken for a repeat",
        "intake.py",
        'if record.kind == "manifest" and record.digest == fingerprint:',
        'if record.kind == "manifest":',
        (_INTAKE,),
    ),
)

VERSIONS = (
    Guard(
        "a file whose ETag is another one is not read in its place",
        "object_reading.py",
        "        if found.etag != file.etag:\n",
        "        if False:\n",
        (_INPUT_FILES,),
    ),
    Guard(
        "a file whose size is another one is not read in its place",
        "object_reading.py",
        "    elif file.size_bytes is not None and found.size_bytes != file.size_bytes:\n",
        "    elif False:\n",
        (_INPUT_FILES,),
    ),
    Guard(
        "the ranges of a file are all of one version",
        "object_reading.py",
        "store.read_range(opened.uri, start, length, etag=opened.etag)",
        "store.read_range(opened.uri, start, length)",
        (_INPUT_FILES,),
    ),
    Guard(
        "a local file is read at the version that was asked for",
        "adapters/local.py",
        "    if etag is not None and _etag(status) != etag:\n",
        "    if False:\n",
        ("tests/contract/test_object_store.py::test_a_replaced_object_is_another_version",),
    ),
    Guard(
        "an object in S3 is read at the version that was asked for",
        "adapters/aws/s3.py",
        """more = {**more, "IfMatch": f'"{etag}"'}""",
        "more = {**more}",
        ("tests/contract/test_object_store.py::test_a_replaced_object_is_another_version",),
    ),
    Guard(
        "what Spark converts is what was inspected",
        "adapters/spark/engine.py",
        "strict=True) if not is_same]",
        "strict=True) if False]",
        ("tests/spark/test_changed_files.py",),
    ),
)

VERIFICATION = (
    Guard(
        "the rows in the footers are the records that were inspected",
        "staged_files.py",
        "    found = sum(file.facts.rows for file in files)\n    if found != expected:\n",
        "    found = sum(file.facts.rows for file in files)\n    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "the columns in the footers are those of the schema",
        "staged_files.py",
        "    if facts.columns != columns:\n",
        "    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "the types in the footers are those of the schema",
        "staged_files.py",
        '        if found != expected:\n            raise StagingError(f"{where} has column {name!r} of type',
        '        if False:\n            raise StagingError(f"{where} has column {name!r} of type',
        (_STAGED_FILES,),
    ),
    Guard(
        "rows, rejects and blank lines of each file are its lines",
        "staged_files.py",
        "        if accounted != report.lines:\n",
        "        if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "every file of the manifest is reported on",
        "staged_files.py",
        "    if named != reported:\n",
        "    if False:\n",
        (_STAGED_FILES,),
    ),
    Guard(
        "nothing is decided, and so published, before it was verified",
        "compaction.py",
        "outputs, rejects = verify_staged(self._store, manifest, staged, self._rules.metadata_columns)",
        "from compactor.staged_files import parquet_facts as facts\n"
        "        outputs = [VerifiedFile(uri, facts(self._store, uri)) for uri in staged.outputs]\n"
        "        rejects = [VerifiedFile(uri, facts(self._store, uri)) for uri in staged.rejects]",
        (_COMPACTION + "::test_staging_that_does_not_add_up",),
    ),
    Guard(
        "done is put on record after all is in its final place, not before",
        "publication.py",
        "        if isinstance(outcome, Commit):\n            self._publish(outcome)\n",
        "        if isinstance(outcome, Commit):\n"
        "            self._ledger.finish(outcome.date, outcome.manifest_id)\n"
        "            self._publish(outcome)\n",
        (_COMPACTION + "::test_death_at_each_step",),
    ),
    Guard(
        "a death between publication and done loses nothing, with real processes",
        "publication.py",
        "        if isinstance(outcome, Commit):\n            self._publish(outcome)\n",
        "        if isinstance(outcome, Commit):\n"
        "            self._ledger.finish(outcome.date, outcome.manifest_id)\n"
        "            self._publish(outcome)\n",
        (_CRASHES,),
    ),
)

ONCE = (
    Guard(
        "a URI that comes twice in a batch is worked on once",
        "batches.py",
        "dict.fromkeys(uris)",
        "list(uris)",
        (_BATCHES,),
    ),
    Guard(
        "a manifest that comes under two names in a batch is worked on once",
        "batches.py",
        "            if accepted.manifest_id in seen:\n",
        "            if False:\n",
        (_BATCHES,),
    ),
    Guard(
        "a file that a manifest names twice is not compacted twice",
        "manifest.py",
        "        if path in seen:\n",
        "        if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "a done manifest is a no-op",
        "compaction.py",
        "        if state.outcome is not None and state.is_done:\n",
        "        if False:\n",
        (_BATCHES,),
    ),
    Guard(
        "a decided manifest is rolled forward, not worked on again",
        "compaction.py",
        "        if state.outcome is not None:\n"
        "            return self._finished(accepted, state.outcome, attempts=0)\n",
        "",
        (_COMPACTION + "::test_decided_is_not_worked_on_again",),
    ),
    Guard(
        "a driver whose staging was cleaned up under it finds that it lost",
        "compaction.py",
        "            if decided is not None:\n",
        "            if False:\n",
        (_COMPACTION + "::test_two_drivers",),
    ),
    Guard(
        "a driver that finds staging gone looks for done",
        "publication.py",
        "            if self._ledger.is_done(commit.date, commit.manifest_id):\n",
        "            if False:\n",
        ("tests/unit/test_publication.py",),
    ),
    Guard(
        "a manifest object that says something else by now is not removed",
        "publication.py",
        "        if self._still_says(uri, fingerprint):\n",
        "        if True:\n",
        ("tests/unit/test_publication.py",),
    ),
)

ATTEMPTS = (
    Guard(
        "an attempt is on record before its work starts",
        "ledger.py",
        "            if self._store.create(self._layout.attempt(day, manifest_id, number), _json(attempt)):\n",
        "            if True:\n",
        (_COMPACTION + "::test_life_in_order",),
    ),
    Guard(
        "a manifest that kills its driver each time runs out of attempts",
        "compaction.py",
        "        if held >= self._rules.max_attempts:\n",
        "        if False:\n",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
    Guard(
        "only a death alone counts",
        "attempts.py",
        "    if not state.attempt.alone:\n        return False\n",
        "",
        (_ATTEMPTS,),
    ),
    Guard(
        "passing trouble does not count",
        "attempts.py",
        "        return not state.failure.passing\n",
        "        return True\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "an attempt of a run that lives is no death",
        "attempts.py",
        "    return state.attempt.run_id not in living_runs\n",
        "    return True\n",
        (_ATTEMPTS,),
    ),
    Guard(
        "suspects are tried alone",
        "batches.py",
        "            elif is_suspect(state.attempts):\n",
        "            elif False:\n",
        (_BATCHES,),
    ),
    Guard(
        "open manifests are found again after a death",
        "ledger.py",
        "        self._store.create(self._layout.open_marker(manifest_id), _json(marker))\n",
        "        del marker\n",
        (_COMPACTION + "::test_killer_runs_out_of_attempts",),
    ),
)

PLACES = (
    Guard(
        "a manifest cannot name files outside the allowed prefixes",
        "manifest.py",
        "        if not is_allowed(file.uri, manifest.manifest_id, allowed_prefixes, redriven_folder):\n",
        "        if False:\n",
        (_MANIFEST,),
    ),
    Guard(
        "nothing outside the allowed prefixes is planned",
        "planning.py",
        "        if not any(is_within(folder(prefix), each) for each in self._allowed_prefixes):\n",
        "        if False:\n",
        (_PLANNING,),
    ),
)

CLAIMS = (
    Guard(
        "a claim in memory is not overwritten",
        "adapters/memory.py",
        "self._claims.setdefault(key, fresh)",
        "self._claims.__setitem__(key, fresh) or fresh",
        (_CLAIM, _PLANNING),
    ),
    Guard(
        "a claim in SQLite is not overwritten",
        "adapters/sqlite_claims.py",
        "INSERT INTO claims (key, holder, lease_until, expires_at) VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
        "INSERT OR REPLACE INTO claims (key, holder, lease_until, expires_at) VALUES (?, ?, ?, ?)",
        (_CLAIM,),
    ),
    Guard(
        "a claim in DynamoDB is not overwritten",
        "adapters/aws/dynamo_claims.py",
        '"attribute_not_exists(pk)"',
        '"attribute_not_exists(pk) OR attribute_exists(pk)"',
        (_CLAIM,),
    ),
    Guard(
        "a claim in SQLite is taken over from the holder that was named alone",
        "adapters/sqlite_claims.py",
        "WHERE key = ? AND holder = ?\n",
        "WHERE key = ? AND holder <> ?\n",
        (_TAKE_OVER,),
    ),
    Guard(
        "a claim in DynamoDB is taken over from the holder that was named alone",
        "adapters/aws/dynamo_claims.py",
        '"holder = :from"',
        '"holder = :from OR attribute_exists(pk)"',
        (_TAKE_OVER,),
    ),
    Guard(
        "files that another planner claimed are left to it while its lease lasts",
        "claiming.py",
        'if fate == "unwritten" and claim.lease_until > now:',
        "if False:",
        (_PLANNING,),
    ),
    Guard(
        "a late manifest whose files were taken over never takes effect",
        "claiming.py",
        "            self._void(other, now)\n            fates[other] = self._fate(other)\n",
        '            fates[other] = "void"\n',
        (_PLANNING,),
    ),
    Guard(
        "a planner that is held up beyond its lease doubles nothing, with real processes",
        "claiming.py",
        "            self._void(other, now)\n            fates[other] = self._fate(other)\n",
        '            fates[other] = "void"\n',
        (_DRIVERS,),
    ),
)

BUILDING = (
    Guard(
        "a part that was given up is never sealed",
        "building/sealer.py",
        "        return is_tied\n",
        "        return True\n",
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "a part is sealed into one manifest",
        "building/sealer.py",
        "if part_key(part.manifest_id) in claimed.won]\n        if won:",
        "if True]\n        if won:",
        (_BUILDING_RACES,),
    ),
    Guard(
        "what a builder could not claim is left to who holds it",
        "building/builder.py",
        "if claim_key(file) in claimed.won]",
        "if True]",
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "a message whose file another one may still write comes again",
        "building/builder.py",
        'UTC" for key, until in claimed.held.items()}\n',
        'UTC" for key, until in ()}\n',
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "no manifest names two versions of one object",
        "grouping.py",
        "layered(files, lambda file: (canonical(file.uri),))",
        "[list(files)]",
        (_BUILDING,),
    ),
    Guard(
        "a builder that was given up promises nothing",
        "building/builder.py",
        '        if not self._claimer.tie(manifest, "manifest" if is_full else "part"):\n',
        "        if False:\n",
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "a sealer that was given up removes nothing",
        "building/sealer.py",
        '            if not self._claimer.tie(manifest, "manifest"):\n',
        "            if False:\n",
        (_BUILDING, _BUILDING_RACES),
    ),
    Guard(
        "what is written is not taken for safe before it is tied",
        "claiming.py",
        '            return self._tied(read(expected=f"a {kind} of the id {holder}"), data, kind)\n',
        '            return "exists"\n',
        (_BUILDING,),
    ),
)

CONTROL = (
    Guard(
        "nothing is started while Glue cannot be asked which runs live",
        "control/decisions.py",
        "    if snapshot.runs is None:\n",
        "    if False:\n",
        (_CONTROL,),
    ),
    Guard(
        "a run in a state that nobody knows counts as living",
        "control/runs.py",
        "JobState.STOPPING, JobState.UNKNOWN}",
        "JobState.STOPPING}",
        ("tests/contract/test_job_runs.py::test_a_state_of_a_later_release",),
    ),
    Guard(
        "nothing is started beside a run that gives signs of life elsewhere",
        "control/decisions.py",
        "    for each in snapshot.signs.living if snapshot.signs else ():\n        age",
        "    for each in ():\n        age",
        (_CONTROL,),
    ),
    Guard(
        "while Glue may restart a run by itself none is started",
        "control/decisions.py",
        "    if latest and (until := history.awaits_restart_until(latest)):\n",
        "    if latest and (until := now) and False:\n",
        (_CONTROL,),
    ),
    Guard(
        "an expired run that Glue restarted is no failure",
        "control/history.py",
        "            return not has_successor(run, self._runs) and self._waited_for_successor(run)",
        "            return True",
        (_CONTROL,),
    ),
    Guard(
        "a trial that failed leaves the breaker open",
        "control/history.py",
        "if is_trial or end > since)",
        "if end > since)",
        (_CONTROL,),
    ),
    Guard(
        "failures far apart do not open the breaker",
        "control/history.py",
        "if is_trial or end > since), _end(run)]",
        "if True), _end(run)]",
        (_CONTROL,),
    ),
    Guard(
        "a stall is not restarted for ever",
        "control/symptoms.py",
        " and runs_without_commit(snapshot) <= STALL_RESTARTS",
        "",
        (_CONTROL,),
    ),
    Guard(
        "a silent run is not stopped while no work is known to wait",
        "control/decisions.py",
        "    if is_silent(run, snapshot, policy, now) and waiting_work(snapshot):",
        "    if is_silent(run, snapshot, policy, now):",
        (_CONTROL,),
    ),
    Guard(
        "a run that was asked to end is given time before it is killed",
        "control/decisions.py",
        "        if asked >= policy.drain_seconds:",
        "        if True:",
        (_CONTROL,),
    ),
    Guard(
        "a start that meets a run is an outcome",
        "adapters/aws/glue_job.py",
        '                if error_code(exc) == "ConcurrentRunsExceededException":',
        "                if False:",
        ("tests/contract/test_job_runs.py::test_never_a_second_run",),
    ),
    Guard(
        "one source that fails leaves the others known",
        "control/gathering.py",
        "            except CompactorError as exc:\n",
        "            except ArithmeticError as exc:\n",
        (_CONTROL_SHELL,),
    ),
    Guard(
        "people are told once a change",
        "control/notices.py",
        "if about not in told]",
        "if True]",
        (_CONTROL_SHELL,),
    ),
)

MEASUREMENTS = (
    Guard(
        "measurements that CloudWatch did not take are sent again",
        "adapters/aws/cloudwatch_metrics.py",
        "                self._queue.extendleft(reversed(batch))\n",
        "                self._queue.extendleft(())\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that wait keep their order",
        "adapters/aws/cloudwatch_metrics.py",
        "                self._queue.extendleft(reversed(batch))\n",
        "                self._queue.extendleft(batch)\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that wait for CloudWatch are bounded",
        "adapters/aws/cloudwatch_metrics.py",
        "        while len(self._queue) > self._max_queued:\n",
        "        while False:\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that went are counted once",
        "adapters/aws/cloudwatch_metrics.py",
        "self._lost_values_told += 0 if untold is None else round(untold.counts[0][0])",
        "pass",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that CloudWatch refuses do not hold up those behind them",
        "adapters/aws/cloudwatch_metrics.py",
        "return _Answer.REFUSED if refused else _Answer.NONE",
        "return _Answer.NONE",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that became too old do not make CloudWatch refuse new ones",
        "adapters/aws/cloudwatch_metrics.py",
        "            self._forget_until(now - timedelta(seconds=MAX_AGE_SECONDS))\n",
        "",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements without sense never cost a batch",
        "adapters/aws/cloudwatch_metrics.py",
        "        except Exception as exc:  # noqa: BLE001 - no measurement is worth a batch\n",
        "        except ZeroDivisionError as exc:\n",
        (_CLOUDWATCH,),
    ),
    Guard(
        "measurements that are no numbers never leave",
        "adapters/aws/cloudwatch_requests.py",
        "return abs(value) <= _GREATEST",
        "return True",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a request stay below the size that CloudWatch takes",
        "adapters/aws/cloudwatch_requests.py",
        "        if size_bytes > MAX_REQUEST_BYTES:\n",
        "        if False:\n",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a request are as few metrics as CloudWatch takes",
        "adapters/aws/cloudwatch_requests.py",
        "in islice(data, MAX_DATA):",
        "in data:",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of one metric are as few values as CloudWatch takes",
        "adapters/aws/cloudwatch_requests.py",
        "tuple(islice(pairs, MAX_VALUES))",
        "tuple(pairs)",
        (_REQUESTS,),
    ),
    Guard(
        "measurements of a run have left before it ends",
        "service.py",
        "                self._metrics.flush(FLUSH_SECONDS)\n",
        "",
        (_METRICS + "::test_a_run_ends_with_its_figures_sent",),
    ),
    Guard(
        "measurements of latency are those of files that became visible alone",
        "compaction.py",
        " for file in manifest.files if file.uri in compacted]",
        " for file in manifest.files]",
        (_METRICS + "::test_arrival_to_visible",),
    ),
    Guard(
        "measurements of latency are few enough for one value of a metric",
        "batch_metrics.py",
        ".coarsened(MAX_DISTINCT_LATENCIES)",
        "",
        (_METRICS + "::test_arrivals_of_many_files",),
    ),
)

ONE_PASS = (
    Guard(
        "rows of a file that turns out broken are withdrawn, or the pass is done again",
        "bin_task.py",
        "            self._is_spoilt |= not kernel.withdraw_file()\n",
        "",
        (_BIN_TASK + "::test_a_file_that_ends_too_early_leaves_nothing_behind",),
    ),
    Guard(
        "a pass with rows of a file that is not taken in counts for nothing",
        "bin_task.py",
        "            if self._is_spoilt:\n                return None\n",
        "",
        (_BIN_TASK + "::test_a_file_that_ends_too_early_leaves_nothing_behind",),
    ),
    Guard(
        "rows without the column of a key that they have are not staged",
        "bin_task.py",
        "                if self._kernel.lacks_columns:\n                    raise _OfNoUseError\n",
        "",
        (_BIN_TASK + "::test_a_bin_that_lacks_a_column_stages_no_rows",),
    ),
    Guard(
        "a bin with a key that has no column is written again",
        "native_engine.py",
        "if each.is_lacking]:\n",
        "if False]:\n",
        ("tests/unit/test_native_engine.py::test_a_late_key_has_its_bin_alone_written_again",),
    ),
    Guard(
        "a line that inspection takes cannot be refused by the kernel alone",
        "bin_task.py",
        "            if reason is None:\n                raise StagingError(",
        "            if False:\n                raise StagingError(",
        (_BIN_TASK + "::test_a_kernel_that_refuses_a_record_is_found_out",),
    ),
    Guard(
        "a file of an older schema version is on record as such",
        "compaction.py",
        "    return None if output.schema.version == staged.schema.version else output.schema.version",
        "    return None",
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
    Guard(
        "a file of an older schema version is held against the columns of that version",
        "audit/auditor.py",
        "self._check_file(commit, output, self._columns(output.version_in(commit)))",
        "self._check_file(commit, output, self._columns(commit.schema_version))",
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
    Guard(
        "a key of another driver's version keeps its column",
        "adapters/memory.py",
        "            if found is None:\n"
        "                self.put(uri, data)\n"
        "            return found is None or found.data == data",
        "            self.put(uri, data)\n            return True",
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
)


_DOCTOR = "tests/unit/test_doctor_checks.py"

DOCTOR = (
    Guard(
        "a store that lets a second writer through is found out",
        "doctor/rights.py",
        'return _NOT_EXCLUSIVE if store.create(uri, b"second") else ""',
        'store.create(uri, b"second")\n    return ""',
        (_DOCTOR,),
    ),
    Guard(
        "a probe is no manifest",
        "layout.py",
        'return f"{folder(place)}_doctor/probe/{name}/{KEEP_MARKER}"',
        'return f"{folder(place)}_doctor-{name}"',
        (_DOCTOR,),
    ),
    Guard(
        "what needs a failed check is not tried",
        "doctor/runner.py",
        "if root is not None:",
        "if False:",
        (_DOCTOR,),
    ),
    Guard(
        "a settings file is not written over",
        "cli/init.py",
        "if path.exists() and not force:",
        "if False:",
        ("tests/unit/test_cli_init.py",),
    ),
)

GUARDS = (
    *CREATE_ONLY,
    *VERSIONS,
    *VERIFICATION,
    *ONCE,
    *ATTEMPTS,
    *PLACES,
    *CLAIMS,
    *BUILDING,
    *CONTROL,
    *MEASUREMENTS,
    *ONE_PASS,
    *DOCTOR,
)
