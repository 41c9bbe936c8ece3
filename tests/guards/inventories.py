"""Each object of an inventory is planned once, and live data keeps its latency."""

from tests.guards.guard import Guard

_READING = ("tests/unit/manifests/inventory/test_reading.py",)
_PLANNING = ("tests/unit/manifests/inventory/test_planning_from_inventory.py",)
_PACING = ("tests/unit/manifests/inventory/test_pacing.py",)
_LISTING = ("tests/unit/manifests/test_listing_planning.py",)
_SPILL = ("tests/unit/adapters/test_spilled_files.py",)

INVENTORIES = (
    Guard(
        "a manifest.json is verified",
        "manifests/inventory/reading.py",
        "        if found != expected.lower():\n",
        "        if False:\n",
        _READING,
    ),
    Guard(
        "a data file is verified",
        "manifests/inventory/reading.py",
        "            if digest != file.md5:\n",
        "            if False:\n",
        _READING,
    ),
    Guard(
        "an object of another bucket is not planned",
        "manifests/inventory/reading.py",
        "                    if row.bucket != inventory.source_bucket:\n",
        "                    if False:\n",
        _READING,
    ),
    Guard(
        "an object without a version is not planned",
        "manifests/inventory/tables.py",
        "    if not is_delete_marker and (not etag or modified_at == _EPOCH):\n",
        "    if False:\n",
        _READING,
    ),
    Guard(
        "an earlier version of an object is not planned",
        "manifests/inventory/rows.py",
        "    if not row.is_latest:\n",
        "    if False:\n",
        _PLANNING,
    ),
    Guard(
        "a file in a manifest without claims is not planned again",
        "manifests/spilled/steps.py",
        "        return [file for file in files if canonical(file.uri) not in covered]\n",
        "        return list(files)\n",
        _PLANNING,
    ),
    Guard(
        "files that manifests got while others were held back are not planned again",
        "manifests/spilled/steps.py",
        "        return with_files(group, self.uncovered(group.files, self.named.found(group.files)))\n",
        "        return group\n",
        _PLANNING,
    ),
    Guard(
        "manifests that arrive while a back-fill runs are looked for",
        "manifests/spilled/named_before.py",
        "if age is not None and age.total_seconds() <= FRESH_SECONDS else None",
        "if age is not None else None",
        _PLANNING,
    ),
    Guard(
        "what a dead planner has claimed is planned later",
        "manifests/inventory/planner.py",
        "on_held=self._keep_for_later,",
        "",
        _PLANNING,
    ),
    Guard(
        "a job that reads any version of a file gets none from an inventory",
        "wiring/inventory.py",
        '    if app.settings.input.on_changed_file != "skip":\n',
        "    if False:\n",
        _PLANNING,
    ),
    Guard(
        "no planned manifest is added to late ones",
        "manifests/inventory/pacing.py",
        "        free = 0 if is_late else max(0, self._width - backlog.manifests)\n",
        "        free = max(0, self._width - backlog.manifests)\n",
        _PACING,
    ),
    Guard(
        "a back-fill without a job ends",
        "manifests/inventory/release.py",
        "            if backlog.manifests and self._is_stalled(now):\n",
        "            if backlog.manifests and now.year > 2100:\n",
        _PACING,
    ),
    Guard(
        "of several versions at one name the last written counts",
        "adapters/local/sqlite/spilled_files.py",
        "ORDER BY uri, modified_us DESC, rowid",
        "ORDER BY uri, modified_us, rowid",
        _SPILL,
    ),
    Guard(
        "the rest of a batch goes on with the next one",
        "manifests/partitioning.py",
        "        groups = grouped([*self._rest, *files], self.target_bytes, self.rules)\n",
        "        groups = grouped(files, self.target_bytes, self.rules)\n",
        _LISTING,
    ),
    Guard(
        "files that a plan found in manifests are in none of its own",
        "manifests/listing_planning.py",
        "                _drop_others(spill, page, left)\n",
        "                pass\n",
        _LISTING,
    ),
    Guard(
        "a free claim does not outdo a manifest with rows",
        "manifests/spilled/steps.py",
        "if uri not in found.with_rows]",
        "if uri]",
        _LISTING,
    ),
    Guard(
        "a file that a redrive gave up is planned",
        "manifests/spilled/steps.py",
        "        covered = found.covered - {",
        "        covered = found.covered or {",
        ("tests/unit/ops/redrive/test_redriving.py::test_revoked_in_part",),
    ),
)
