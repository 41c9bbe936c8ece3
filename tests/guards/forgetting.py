"""What was erased on request does not come back, and nothing else goes."""

from tests.guards.guard import Guard

_ERASER = "tests/unit/ops/table/test_metadata_eraser.py"
_FORGET = "tests/unit/ops/forget/test_forgetting.py"
_RACES = "tests/unit/ops/forget/test_forget_races.py"
_COMMAND = "tests/unit/cli/test_cli_forget.py"

FORGETTING = (
    Guard(
        "a manifest that another rebuild decided meanwhile does not count as erased",
        "ops/rebuild/rebuilder.py",
        "        if not _is_erased(commit, damaged.erasure):\n",
        "        if False:\n",
        (_RACES + "::test_a_rebuild_that_is_faster",),
    ),
    Guard(
        "no rebuild makes erased lines again from the input",
        "ops/rebuild/scan.py",
        "            fault = input_fault(self.state, found.commit) if found.commit.erased is None else ERASED\n",
        "            fault = input_fault(self.state, found.commit)\n",
        (_FORGET + "::test_erased_rows_do_not_come_back",),
    ),
    Guard(
        "no new version of one file makes erased lines of the others again",
        "ops/rebuild/replacing.py",
        "        if commit.erased is not None:\n",
        "        if False:\n",
        (_COMMAND + "::test_a_replaced_file_brings_nothing_back",),
    ),
    Guard(
        "a version of an input file that was not compacted is not deleted",
        "ops/forget/inputs.py",
        "        if not each.etag or etag != each.etag:\n",
        "        if False:\n",
        (_RACES + "::test_an_input_file_that_was_replaced",),
    ),
    Guard(
        "an input file whose other lines are in no output is not deleted",
        "ops/forget/inputs.py",
        "        if each.kept_because or each.is_own:\n",
        "        if each.is_own:\n",
        (_FORGET + "::test_quarantined_input_is_named",),
    ),
    Guard(
        "the input of a manifest that could not be erased is not deleted",
        "ops/forget/forgetter.py",
        "        candidates = [each.kept(NEEDED) if each.manifest_id in needed else each for each in candidates]\n",
        "",
        (_FORGET + "::test_input_of_what_could_not_be_erased",),
    ),
    Guard(
        "a file that was replaced since it was searched is not deleted",
        "ops/forget/inputs.py",
        "            if now is not None and now.etag != etag:  # others were searched meanwhile\n",
        "            if False:\n",
        ("tests/unit/ops/forget/test_forget_inputs.py",),
    ),
    Guard(
        "a repeated call searches the input of manifests that an earlier one erased",
        "ops/forget/scan.py",
        "        may_be_any = bool(rows or lines or commit.erased or not has_rows)\n",
        "        may_be_any = bool(rows or lines or not has_rows)\n",
        (_FORGET + "::test_input_is_kept_unless_asked",),
    ),
    Guard(
        "an erasure that died finds what to remove of the table's metadata",
        "ops/table/metadata_eraser.py",
        "names = sorted({*self._doomed(state), *before.named})",
        "names = sorted(before.named)",
        (_ERASER + "::test_a_death_in_between",),
    ),
    Guard(
        "metadata that the table needs is not removed by an erasure",
        "ops/table/metadata_eraser.py",
        "going = {*names} - after.named",
        "going = {*names}",
        (_ERASER + "::test_a_tag",),
    ),
    Guard(
        "what keeps snapshots of a table is told by an erasure",
        "ops/table/metadata_eraser.py",
        "        if not asking:\n",
        "        if True:\n",
        (_ERASER + "::test_a_tag",),
    ),
)
