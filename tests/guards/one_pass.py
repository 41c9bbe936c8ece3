"""The native engine takes one pass and loses nothing."""

from tests.guards.guard import Guard

_BIN_TASK = "tests/unit/engines/test_bin_task.py"
_LATE_KEYS = "tests/unit/engines/test_late_keys.py"

ONE_PASS = (
    Guard(
        "rows of a file that turns out broken are withdrawn, or the pass is done again",
        "engines/native/bin_task.py",
        "            self._needs_rescan |= not kernel.withdraw_file()\n",
        "",
        (_BIN_TASK + "::test_a_file_that_ends_too_early_leaves_nothing_behind",),
    ),
    Guard(
        "a pass with rows of a file that is not taken in counts for nothing",
        "engines/native/bin_task.py",
        "            if self._needs_rescan:\n                # All",
        "            if False:\n                # All",
        (_BIN_TASK + "::test_a_file_that_ends_too_early_leaves_nothing_behind",),
    ),
    Guard(
        "a rejected line is a line again when it is redriven, whatever it looks like",
        "ndjson/kinds/formats.py",
        "        if self.lines_folder and is_within(uri, self.lines_folder):\n            return split_lines\n",
        "",
        ("tests/unit/ndjson/test_kinds.py::test_what_is_on_record_is_not_recognised_again",),
    ),
    Guard(
        "a line feed in a string does not become a space, which would make it JSON",
        "ndjson/kinds/element_splitting.py",
        'b" " if _LINE_FEEDS_ARE_SPACE.fullmatch(element) else b"\\r"',
        'b" "',
        ("tests/unit/ndjson/test_element_splitting.py::test_a_line_feed_in_a_string_stays_wrong",),
    ),
    Guard(
        "rows without the column of a key that they have are not staged",
        "engines/native/bin_task.py",
        "if not (self._needs_rescan or self._kernel.lacks_columns):",
        "if not self._needs_rescan:",
        (_BIN_TASK + "::test_a_bin_that_lacks_a_column_stages_no_rows",),
    ),
    Guard(
        "a bin with a key that has no column is written again",
        "engines/native/engine.py",
        "if each.is_lacking]:\n",
        "if False]:\n",
        ("tests/unit/engines/test_native_engine.py::test_a_late_key_has_its_bin_alone_written_again",),
    ),
    Guard(
        "a line that inspection takes cannot be refused by the kernel alone",
        "engines/native/bin_task.py",
        "    if reason == BLANK_LINE:\n        raise StagingError(",
        "    if False:\n        raise StagingError(",
        (_BIN_TASK + "::test_a_kernel_that_refuses_a_record_is_found_out",),
    ),
    Guard(
        "a file of an older schema version is on record as such",
        "job/steps/staging.py",
        '"schema_version": None if version == staged.schema.version else version,',
        '"schema_version": None,',
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
    Guard(
        "a file of an older schema version is verified with the columns of that version",
        "ops/verify/commit_files.py",
        "self._check_file(commit, output, self._columns(output.version_in(commit)))",
        "self._check_file(commit, output, self._columns(commit.schema_version))",
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
    Guard(
        "a key of another driver's version keeps its column",
        "adapters/memory/store.py",
        "            if found is None:\n"
        "                self.put(uri, data)\n"
        "            return found is None or found.data == data",
        "            self.put(uri, data)\n            return True",
        (_LATE_KEYS + "::test_two_drivers_bring_keys_at_the_same_time",),
    ),
    Guard(
        "keys of any length and number do not fill the memory and every schema version",
        "ndjson/new_keys.py",
        "len(self._collected) < self._limits.max_keys and len(key) <= self._limits.max_key_characters",
        "True",
        ("tests/unit/ndjson/test_inspection.py", "tests/unit/engines/test_native_kernel.py"),
    ),
    Guard(
        "a key that is not collected is rescued in every line",
        "ndjson/new_keys.py",
        "                self.has_further = True\n",
        "",
        ("tests/unit/ndjson/test_inspection.py",),
    ),
    Guard(
        "a key too many takes no file out of the manifest",
        "engines/native/written_bins.py",
        "    schema = columns_for(keys, rescued_from=further)\n",
        "    schema = columns_for(keys)\n",
        ("tests/unit/engines/test_native_engine.py",),
    ),
    Guard(
        "a producer of rejects cannot fill the disk",
        "ndjson/files/rejects.py",
        "        if length > self._max_bytes or self._lines > self._max_lines:\n",
        "        if False:\n",
        ("tests/unit/ndjson/test_rejects.py",),
    ),
    Guard(
        "of a line in pieces no part is kept for the whole",
        "ndjson/files/rejects.py",
        "        self.kept_rows = self._rows_before\n",
        "",
        ("tests/unit/ndjson/test_rejects.py",),
    ),
    Guard(
        "samples of a quarantined file are not redriven beside the file",
        "ops/redrive/rejected_lines/writing.py",
        "if row[0] in wanted.sources and row[3] in wanted.reasons",
        "if row[3] in wanted.reasons",
        ("tests/unit/job/test_too_many_rejects.py", "tests/unit/ops/redrive/test_redriven_lines.py"),
    ),
    Guard(
        "samples outlast the second pass over a bin",
        "engines/native/bin_task.py",
        "        self._sampled = frozenset(unreadable.keys() - walked.keys())\n",
        "        walked = dict(unreadable)\n",
        ("tests/unit/job/test_too_many_rejects.py",),
    ),
    Guard(
        "a task stays within its scratch space",
        "ndjson/files/scratch.py",
        "        if self.kept_bytes + self._held_bytes + length_bytes > self._max_bytes:\n",
        "        if False:\n",
        ("tests/unit/engines/test_input_files.py",),
    ),
    Guard(
        "a day adds no more columns than it may",
        "schema/schema.py",
        "        return self.new_on_day if _utc_day(self.created_at) == _utc_day(now) else 0\n",
        "        return 0\n",
        ("tests/unit/job/test_new_columns.py",),
    ),
    Guard(
        "a manifest adds no more columns than it may",
        "schema/manifest_columns.py",
        "        if self._is_first:\n",
        "        if True:\n",
        ("tests/unit/job/test_new_columns.py",),
    ),
    Guard(
        "a retired key gets no column again",
        "schema/schema.py",
        "    known |= schema.retired_keys\n",
        "",
        ("tests/unit/schema/test_schema.py::test_a_retired_key_gets_no_column_again",),
    ),
    Guard(
        "a running job finds the place of a retired column",
        "schema/manifest_columns.py",
        "            registry.refresh()\n",
        "            pass\n",
        ("tests/unit/job/test_retired_columns.py",),
    ),
)
