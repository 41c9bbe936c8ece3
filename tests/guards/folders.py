"""A folder whose files change between calls has each line once, or the call names the file."""

from tests.guards.guard import Guard

_CLAIMS = "tests/contract/test_claims.py"
_FATES = "tests/unit/manifests/test_file_fates.py"
_REPLACING = "tests/unit/ops/rebuild/test_replacing.py"
_FOLDER = "tests/unit/cli/test_cli_folder.py"
_GROWN = "tests/unit/manifests/test_grown_files.py"
_LIFE = "tests/unit/manifests/test_folder_life.py"
_LATER = "tests/unit/ops/redrive/test_later_rows.py"
_SETTLED = "tests/unit/cli/test_cli_settled.py"

FOLDERS = (
    Guard(
        "a version under two names is that of one file",
        "manifests/fates/file_fates.py",
        "        if naming in used or naming.uri == canonical(file.uri):\n",
        "        if naming.uri == canonical(file.uri):\n",
        (_FATES,),
    ),
    Guard(
        "a renamed file has the bytes of the earlier one",
        "manifests/fates/file_fates.py",
        "    return may_have and digest_of(file, naming.digest) == naming.digest\n",
        "    return may_have\n",
        (_FATES,),
    ),
    Guard(
        "a file is compared with a digest of an earlier release",
        "adapters/local/sqlite/seen_files.py",
        "ContentDigest(mark=mark)",
        "ContentDigest()",
        ("tests/unit/adapters/test_seen_files.py", _LIFE + "::test_digests_of_both_kinds"),
    ),
    Guard(
        "rows of an earlier release are made again from the same bytes",
        "ops/rebuild/rebuilder.py",
        '        return new.model_copy(update={"digest": digest})\n',
        '        return new.model_copy(update={"digest": old.digest})\n',
        ("tests/unit/cli/test_earlier_releases.py",),
    ),
    Guard(
        "a file that begins with its own earlier version has not left its name, whatever kind of digest a copy has",
        "manifests/fates/grown_files.py",
        "key=lambda beginning: beginning[0]):",
        "key=lambda beginning: beginning):",
        (_LIFE + "::test_a_copy_that_is_gone_has_a_digest_of_another_kind",),
    ),
    Guard(
        "a digest of one kind that is remembered tells nothing of the other kind",
        "adapters/local/sqlite/seen_files.py",
        "        mark = mark_of(like)\n",
        '        mark = ""\n',
        ("tests/unit/adapters/test_seen_files.py",),
    ),
    Guard(
        "a file that is there under its old name was not renamed",
        "manifests/fates/file_fates.py",
        '        is_gone = there is None or not is_same_version(there, naming.etag or "")\n',
        "        is_gone = True\n",
        (_FATES,),
    ),
    Guard(
        "versions of earlier releases are known",
        "core/versions.py",
        '    return found["version"] if found else etag\n',
        "    return etag\n",
        (_FATES, _FOLDER + "::test_a_destination_of_an_earlier_release"),
    ),
    Guard(
        "claims of files that changed before they were read are given up",
        "manifests/changed_files.py",
        "            claimer.release_claims(",
        "            list(",
        (_FOLDER + "::test_an_append_between_plan_and_read",),
    ),
    Guard(
        "the rewritten bytes of a file of the same length and time are noticed",
        "manifests/fates/file_fates.py",
        "        if uri in suspects and _is_other(file, rows, digest_of):\n",
        "        if False:\n",
        (_FATES, _FOLDER + "::test_other_bytes_behind_the_same_time"),
    ),
    Guard(
        "a file that a manifest in work may have is not planned",
        "manifests/fates/file_fates.py",
        "or naming.state in _NOT_DONE:",
        "or False:",
        (_FATES,),
    ),
    Guard(
        "what earlier calls left is done before the folder is planned",
        "api/compact_call/run.py",
        "            self._work_on(app, closing)\n        if not closing.is_interrupted:\n            changed",
        "            pass\n        if not closing.is_interrupted:\n            changed",
        (_FOLDER + "::test_a_file_renamed_after_a_kill",),
    ),
    Guard(
        "a new version is claimed while its rows are made",
        "ops/rebuild/replacing.py",
        "        claimed = self.claimer.claim([key for key in new_keys if key not in old_keys], holder)\n",
        "        claimed = self.claimer.claim([], holder)\n",
        (_REPLACING + "::test_two_calls_at_once",),
    ),
    Guard(
        "the claim of a version whose rows are gone is given up",
        "ops/rebuild/replacing.py",
        "            self.claimer.release_claims([key for key in old_keys if key not in new_keys])\n",
        "",
        (_REPLACING + "::test_the_claim_of_the_earlier_version_is_given_up",),
    ),
    Guard(
        "other files of a rebuilt manifest are there as they were",
        "ops/rebuild/replacing.py",
        '        raise InputError(f"its rows cannot be made again, because {file.uri} of the same manifest {found}")\n',
        "        return file.uri, None\n",
        (_REPLACING + "::test_what_cannot_be_exact_is_refused",),
    ),
    Guard(
        "a file that begins with a version that is gone is no new one",
        "manifests/fates/file_fates.py",
        "    while new := asked_now():\n",
        "    while new := set[str]():\n",
        (_GROWN,),
    ),
    Guard(
        "a file that takes the place of another one is compared with versions that are gone",
        "manifests/fates/file_fates.py",
        "for each in free if is_new or each.uri != uri), length)\n",
        "for each in free if is_new), length)\n",
        ("tests/unit/manifests/test_folder_life.py::test_a_file_that_grew_takes_the_place_of_another",),
    ),
    Guard(
        "a version whose file grew in its place is not that of a copy",
        "manifests/fates/grown_files.py",
        "                if not (is_in_place(each.uri) and self._has(each.uri, each)):\n",
        "                if True:\n",
        ("tests/unit/manifests/test_folder_life.py::test_a_copy_and_its_original_both_grow",),
    ),
    Guard(
        "a version is not passed over while a file is still written",
        "manifests/sources/planning.py",
        '            if not (fates.unread or "unsettled" in plan.skipped):',
        "            if True:",
        (_GROWN,),
    ),
    Guard(
        "a version that was passed over and came back is compared again",
        "adapters/local/sqlite/seen_files.py",
        '                rows.executemany("DELETE FROM passed WHERE uri = ? AND etag = ?", there)\n',
        "                pass\n",
        (_GROWN,),
    ),
    Guard(
        "an earlier version settles no later one that was quarantined",
        "ops/redrive/settling/later_rows.py",
        "        if self.has_rows and self.moment > version.started_at:\n",
        "        if self.has_rows:\n",
        (_LATER,),
    ),
    Guard(
        "a rebuild settles nothing that its rows are older than",
        "ops/redrive/settling/later_rows.py",
        "commit.decided_at if file.uri in replaced else commit.started_at",
        "commit.decided_at",
        (_LATER,),
    ),
    Guard(
        "a claim that could not be looked up in the index does not count as free",
        "adapters/journal_claims.py",
        "        if not asked:\n            return {}\n",
        "        if not asked:\n            return {}\n        self._free |= asked\n",
        (_CLAIMS + "::test_a_key_that_could_not_be_looked_up_is_not_free",),
    ),
    Guard(
        "a key that a block of claims has is not free once the block is in the index",
        "adapters/journal_claims.py",
        "        self._free.difference_update(entry.keys)\n",
        "",
        (_CLAIMS + "::test_a_journal_with_an_index_answers_as_one_without",),
    ),
    Guard(
        "the index of another journal is forgotten",
        "adapters/journal_claims.py",
        "                if last.holder == self._index.note:\n",
        "                if True:\n",
        (_CLAIMS + "::test_the_index_of_another_journal_of_the_same_length_is_forgotten",),
    ),
    Guard(
        "a file that was removed counts again when it is back",
        "ops/redrive/settling/quarantined_file.py",
        'if each.how != "removed" or is_gone(state, uri, otherwise=True)}',
        "}",
        (_SETTLED,),
    ),
    Guard(
        "a file with rows is not settled by its removal",
        "ops/accept/dismisser.py",
        "        kept = with_rows({canonical(each.uri) for each in gone}) if gone else ()\n",
        "        kept: Collection[str] = ()\n",
        (_SETTLED,),
    ),
    Guard(
        "a file that may not be asked for is not taken for a removed one",
        "ops/accept/dismisser.py",
        "otherwise=False",
        "otherwise=True",
        (_SETTLED,),
    ),
    Guard(
        "a file that is gone when a call reads it is named by that call",
        "api/compact_call/run.py",
        " if each.manifest_id not in ended",
        "",
        (_SETTLED,),
    ),
)
