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
        "job/steps/compaction.py",
        "            # The verified commit stays in staging, where the next attempt finds it.",
        "            self.stager.discard(accepted, attempt)\n            #",
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
        "job/steps/publication.py",
        "        done_at = self.state.ledger.finish(outcome.key)\n",
        "        self._delete_staging(outcome.manifest_id, upto=outcome.generation)\n"
        "        done_at = self.state.ledger.finish(outcome.key)\n",
        (),
    ),
)
"""Guards of the protocol that no single test takes out, and that the simulation alone is asked to find missing."""

SEEDS: Mapping[str, int] = {
    "a message whose group was not written comes again": 9,
    "staging whose outcome got no answer stays": 4,
    "an id is bound once": 1,
    "staging is deleted after done is on record": 1,
    "nothing is decided, and so published, before it was verified": 10,
    "done is put on record after all is in its final place, not before": 1,
    "what a builder could not claim is left to its holder": 1,
    "a part is sealed into one manifest": 1,
    "a revoked part is never sealed": 9,
    "passing trouble does not count": 2,
    "a late manifest whose files were taken over never takes effect": 7,
    "an id is bound to its first manifest for good": 7,
    "a manifest that is done is marked, so that the next summary takes it in": 1,
    "a claim in memory is not overwritten": 1,
    "a message whose file another builder may still write comes again": 5,
    "clean-up leaves the staging of a rebuild": 3,
    "an intention is on record before anything expires, so that the next run finishes it": 21,
    "what expires is on record before it is deleted": 1,
    "a link of a chain is never replaced": 8,
    "the drafts of planners that died are settled": 8,
    "removed records are a range of their own": 14,
    "a manifest has no range whose link another one has": 8,
}
