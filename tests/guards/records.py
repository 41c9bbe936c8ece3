"""Records are created once, and of the version that was read."""

from tests.guards.guard import Guard

_INTAKE = "tests/unit/job/test_intake.py"
_INPUT_FILES = "tests/unit/engines/test_input_files.py"
_CREATE = "tests/contract/test_object_store.py::test_create_leaves_another_object_alone"
_DRIVERS = "tests/faults/test_two_drivers.py"

CREATE_ONLY = (
    Guard(
        "a record in a newer format is left alone",
        "core/documents/records.py",
        "    if newer := newer_format(data, kind):\n",
        "    if newer := newer_format(b'', kind):\n",
        ("tests/unit/job/test_newer_records.py", "tests/unit/core/test_formats.py"),
    ),
    Guard(
        "EMR Serverless is asked for no second run",
        "adapters/aws/jobs/emr.py",
        "        if any(run.is_living for run in before):\n",
        "        if False:\n",
        ("tests/contract/test_job_runs.py", "tests/contract/test_emr_job.py"),
    ),
    Guard(
        "a record on a local disk is created once, never overwritten",
        "adapters/local/store.py",
        "place(path, lambda temporary: _write(temporary, data, self._mode(path)), durable.link)",
        "place(path, lambda temporary: _write(temporary, data, self._mode(path)))",
        (_CREATE,),
    ),
    Guard(
        "two drivers on local folders cannot both decide",
        "adapters/local/store.py",
        "place(path, lambda temporary: _write(temporary, data, self._mode(path)), durable.link)",
        "place(path, lambda temporary: _write(temporary, data, self._mode(path)))",
        (_DRIVERS,),
    ),
    Guard(
        "a record in memory is created once, never overwritten",
        "adapters/memory/store.py",
        "            if found is None:\n"
        "                self.put(uri, data)\n"
        "            return found is None or found.data == data",
        "            self.put(uri, data)\n            return True",
        (_CREATE,),
    ),
    Guard(
        "a record in S3 is created once, never overwritten",
        "adapters/aws/s3/store.py",
        ', IfNoneMatch="*")',
        ")",
        (_CREATE,),
    ),
    Guard(
        "the outcome that holds is read back by the driver that lost",
        "ledger/ledger.py",
        "        return self.outcome(outcome.key)",
        "        return outcome",
        (_DRIVERS,),
    ),
    Guard(
        "an id is bound to its first manifest for good",
        "ledger/ledger.py",
        "            return record\n        return _parsed(Accepted, uri, self._store.read(uri))",
        "            return record\n        return record",
        (_INTAKE,),
    ),
    Guard(
        "another manifest under a used id is refused, not taken for a repeat",
        "job/steps/intake.py",
        'if record.kind == "manifest" and record.digest == fingerprint:',
        'if record.kind == "manifest":',
        (_INTAKE,),
    ),
)

VERSIONS = (
    Guard(
        "a file whose ETag is another one is not read in its place",
        "ndjson/files/object_reading.py",
        "        if found.etag != file.etag:\n",
        "        if False:\n",
        (_INPUT_FILES,),
    ),
    Guard(
        "a file whose size is another one is not read in its place",
        "ndjson/files/object_reading.py",
        "    elif file.size_bytes is not None and found.size_bytes != file.size_bytes:\n",
        "    elif False:\n",
        (_INPUT_FILES,),
    ),
    Guard(
        "the ranges of a file are all of one version",
        "ndjson/files/object_reading.py",
        "store.read_range(opened.uri, start, length, etag=opened.etag_now or opened.etag)",
        "store.read_range(opened.uri, start, length)",
        (_INPUT_FILES,),
    ),
    Guard(
        "a local file is read at the version that was asked for",
        "adapters/local/store.py",
        "    if etag is not None and _etag(status) != etag:\n",
        "    if False:\n",
        ("tests/contract/test_object_store.py::test_a_replaced_object_is_another_version",),
    ),
    Guard(
        "an object in S3 is read at the version that was asked for",
        "adapters/aws/s3/store.py",
        """{} if etag is None else {"IfMatch": f'"{etag}"'}""",
        "{}",
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
