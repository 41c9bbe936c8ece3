"""The guards whose removal the simulation finds, each with a seed that does so."""

from collections.abc import Mapping

SEEDS: Mapping[str, int] = {
    "a message is redelivered if its group was not written": 9,
    "staging stays if the write of its outcome got no answer": 4,
    "an id is bound once": 1,
    "staging is deleted after done is on record": 1,
    "nothing is decided or published before it is verified": 10,
    "done is recorded only after all files are in their final places": 1,
    "what a planner could not claim is left to its holder": 1,
    "a revoked part is never sealed": 9,
    "a transient failure does not count": 2,
    "a late manifest whose files were taken over never takes effect": 7,
    "an id is bound to its first manifest for good": 7,
    "a done manifest is marked for the next summary": 1,
    "a message is redelivered if another planner may still write its file": 5,
    "clean-up leaves the staging of a rebuild": 3,
    "an intention is on record before anything expires, so that the next run finishes it": 21,
    "what expires is on record before it is deleted": 1,
    "a link of a chain is never replaced": 8,
    "drafts that planners left are settled": 8,
    "a manifest has nothing whose link another one has": 8,
}
