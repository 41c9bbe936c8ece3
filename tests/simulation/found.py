"""Guards whose removal the simulation finds, each with a seed that does so."""

from collections.abc import Mapping

from tests.guards.guard import Guard

ADDED = (
    Guard(
        "a message whose group was not written comes again",
        "manifests/building/builder.py",
        '            built.failed = dict.fromkeys(keys, f"passing trouble: {exc}")\n',
        "",
        (),
    ),
    Guard(
        "staging whose outcome got no answer stays",
        "job/compaction.py",
        "            # The verified commit stays in staging, where the next attempt finds it.",
        "            self.stager.discard(accepted, attempt)\n            #",
        (),
    ),
    Guard(
        "an outcome is created once",
        "ledger/ledger.py",
        "        if self._store.create(self._layout.outcome(outcome.key, outcome.generation), _json(outcome)):\n",
        "        if self._store.put(self._layout.outcome(outcome.key, outcome.generation), _json(outcome)) is None:\n",
        (),
    ),
    Guard(
        "an id is bound once",
        "ledger/ledger.py",
        "        if self._store.create(uri, _json(record)):\n",
        "        if self._store.put(uri, _json(record)) is None:\n",
        (),
    ),
    Guard(
        "staging is deleted after done is on record",
        "job/publication.py",
        "        done_at = self.state.ledger.finish(outcome.key)\n",
        "        self._delete_staging(outcome.manifest_id, upto=outcome.generation)\n"
        "        done_at = self.state.ledger.finish(outcome.key)\n",
        (),
    ),
    Guard(
        "a claim is taken over from the holder that was named alone",
        "adapters/memory/store.py",
        "if claim.holder == from_holder})",
        "})",
        (),
    ),
    Guard(
        "a manifest whose id was revoked is no dead letter",
        "job/intake.py",
        '            record.kind == "revoked"\n',
        "            False\n",
        (),
    ),
)
"""Guards of the protocol that no single test takes out, and that the simulation alone is asked to find missing."""

SEEDS: Mapping[str, int] = {
    "a message whose group was not written comes again": 1,
    "staging whose outcome got no answer stays": 1,
    "an outcome is created once": 1,
    "an id is bound once": 1,
    "staging is deleted after done is on record": 1,
    "a claim is taken over from the holder that was named alone": 1,
    "a manifest whose id was revoked is no dead letter": 1,
    "the rows in the footers are the records that were inspected": 1,
    "nothing is decided, and so published, before it was verified": 1,
    "done is put on record after all is in its final place, not before": 1,
    "what a builder could not claim is left to its holder": 1,
    "a part is sealed into one manifest": 1,
    "a revoked part is never sealed": 1,
    "a builder whose id was revoked acknowledges nothing": 1,
    "a sealer whose id was revoked removes nothing": 1,
    "a late manifest whose files were taken over never takes effect": 1,
    "a message whose file another builder may still write comes again": 1,
    "no manifest names two versions of one object": 1,
    "what is written is not taken for safe before it is bound": 1,
    "the outcome that holds is read back by the driver that lost": 1,
    "an id is bound to its first manifest for good": 1,
    "a driver whose staging was cleaned up under it finds that it lost": 1,
    "a driver that finds staging gone looks for done": 1,
    "a decided manifest is rolled forward, not worked on again": 1,
    "open manifests are found again after a death": 1,
    "only a death alone counts": 1,
    "passing trouble does not count": 1,
    "an attempt of a run that lives is no death": 1,
    "suspects are kept apart": 1,
    "a verified commit is only decided with all its staged files": 1,
    "a failed write of the outcome is never held against the manifest": 1,
    "what could double rows is deleted before the files of a rebuild are published": 1,
    "clean-up leaves the staging of a rebuild": 1,
    "a driver that finds the staging of an older commit gone looks for a rebuild": 1,
    "the staging of a rebuild that may be decided stays": 1,
    "clean-up leaves a rebuild in the index of open manifests": 1,
    "a redrive writes the missing manifest of an earlier one": 1,
    "a file that is quarantined again after its redrive can be redriven again": 1,
    "another version of the input is refused": 1,
    "a file whose ETag is another one is not read in its place": 1,
    "while Glue may restart a run by itself none is started": 1,
}
