"""What is planned for an id that something else has: each offset is in one manifest that a job takes in."""

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from compactor.core.documents.landing import LandingDraft
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.documents.records import Redrive
from compactor.core.layout import ManifestKey, base_name, redriven_id
from compactor.job.receiving import Intake
from compactor.ledger.history.redrive_log import RedriveLog
from compactor.ledger.landing.chains import LogChains
from compactor.ops.verify.landed import faults_of_landed, unwritten
from compactor.sources.landing.drafts import Landing
from tests.support.harness import DiedError
from tests.support.interleaving import Meddling, at_change
from tests.support.landed import landed_lines
from tests.unit.sources.test_topic_landing import LAYOUT, TOPIC, Scene

GARBAGE = b"no manifest"
STEPS = 9
"""At least as many changes as a plan makes that hands a draft over."""


class Dying:
    """A store in which a planner dies before it binds an id."""

    def __init__(self, made: Scene) -> None:
        self._made = made

    def __getattr__(self, name: str) -> Any:
        return getattr(self._made.store, name)

    def create(self, uri: str, data: bytes) -> bool:
        if uri.startswith(LAYOUT.accepted_folder):
            raise DiedError
        return self._made.store.create(uri, data)


def left_behind(*records: int) -> tuple[Scene, Manifest]:
    """A topic with the draft of a planner that died, with all of its links; and the draft."""
    made = scene(*records)
    with suppress(DiedError):
        made.plan(Dying(made))
    [draft] = [info.uri for info in made.store.list("s3://lake/s/") if "/drafts/" in info.uri]
    return made, LandingDraft.model_validate_json(made.store.read(draft)).manifest


def scene(*records: int) -> Scene:
    """A topic whose partitions have so many records, of which a few make an object."""
    made = Scene()
    made.target_bytes = 1e6
    for number, each in enumerate(records):
        made.put(each, number)
    return made


def put(made: Scene, manifest_id: str, data: bytes) -> None:
    """Put something under the name of a manifest, and have a job take it in."""
    made.store.put(LAYOUT.manifest(manifest_id), data)
    take_in(made)


def take_in(made: Scene) -> None:
    """Take in all that is there, begin with what is accepted, and remove it, as a job does."""
    state = made.state()
    for info in list(state.store.list(LAYOUT.manifests_folder)):
        found = Intake(state=state, allowed_prefixes=["kafka://main", "s3://lake/in/"]).receive(info.uri)
        assert found is not None
        state.ledger.begin(found.accepted.key, after=0, alone=True)
        state.store.delete([info.uri])


def lines(made: Scene) -> Counter[bytes]:
    """How often each line is in a manifest that was taken in."""
    state = made.state()
    ids = [base_name(info.uri).removesuffix(".json") for info in state.store.list(LAYOUT.accepted_folder)]
    records = [record for each in ids if (record := state.ledger.accepted(each)) is not None]
    files = [file.uri for record in records if record.manifest is not None for file in record.manifest.files]
    return Counter(line for uri in files if "/landed/" in uri for line in landed_lines(made.store, uri))


def each_once(*records: int) -> Counter[bytes]:
    return Counter(b'{"id": "%d-%d"}' % (number, offset) for number, end in enumerate(records) for offset in range(end))


def is_settled(made: Scene) -> bool:
    """Whether no draft is left, and chains and manifests agree."""
    state = made.state()
    faults = [*faults_of_landed(state), *unwritten(state)]  # before `settle_left`, which would settle some of them
    return not faults and not list(Landing(LogChains(state), TOPIC, "one").settle_left())


def part_of(manifest: Manifest, files: slice, **changed: Any) -> Manifest:
    return manifest.model_copy(update={"files": manifest.files[files], **changed})


def of_files(manifest: Manifest) -> Manifest:
    return manifest.model_copy(update={"files": (ManifestFile(uri="s3://lake/in/a.ndjson", size_bytes=1, etag="one"),)})


OTHERS: dict[str, Callable[[Manifest], bytes]] = {
    "refused": lambda _: GARBAGE,
    "of files": lambda draft: of_files(draft).to_json(),
    "of some objects": lambda draft: part_of(draft, slice(1)).to_json(),
}


@pytest.mark.parametrize("other", OTHERS)
def test_what_has_the_id_of_a_planned_manifest(other: str) -> None:
    """`verify` says what to do, and the next plan gives the rest to a redrive of the id."""
    made, draft = left_behind(5, 3)
    put(made, draft.manifest_id, OTHERS[other](draft))
    told = [each.expected for each in unwritten(made.state())]
    faults = [each.expected for each in faults_of_landed(made.state())]
    assert any(f"`compactor plan {TOPIC}` writes it as a redrive" in each for each in told) or faults
    [plan] = made.plan().manifests
    assert plan.manifest_id == redriven_id(draft.manifest_id, 1)
    assert list(faults_of_landed(made.state())) == []
    made.store.delete([LAYOUT.manifest(plan.manifest_id)])
    assert [each.manifest_id for each in made.plan().manifests] == [plan.manifest_id]
    assert made.plan().manifests == []  # it waits
    take_in(made)
    assert lines(made) == each_once(5, 3)
    made.plan()
    assert is_settled(made)


def test_an_object_is_in_another_manifest() -> None:
    """What is left goes to the next redrive."""
    made, draft = left_behind(5, 3)
    put(made, draft.manifest_id, GARBAGE)
    state = made.state()
    holder = state.ledger.accepted(draft.manifest_id)
    assert holder is not None
    manifest = part_of(draft, slice(1, 2), manifest_id=redriven_id(draft.manifest_id, 1))
    log = RedriveLog(state=state)
    log.deliver(on_record(log, holder.key, manifest))
    take_in(made)
    assert [each.files for each in made.plan().manifests] == [len(draft.files) - 1]
    take_in(made)
    made.plan()
    assert lines(made) == each_once(5, 3)
    assert is_settled(made)


def test_a_redrive_of_an_operator_has_some_of_it() -> None:
    """A plan gives only the rest to another redrive, and writes both if they are gone."""
    made, draft = left_behind(5, 3)
    put(made, draft.manifest_id, GARBAGE)
    state, first = made.state(), redriven_id(draft.manifest_id, 1)
    holder = state.ledger.accepted(draft.manifest_id)
    assert holder is not None
    on_record(RedriveLog(state=state), holder.key, part_of(draft, slice(1), manifest_id=first))
    made.plan()
    assert sum(1 for _ in made.store.list(LAYOUT.manifests_folder)) == 2
    take_in(made)
    made.plan()
    assert lines(made) == each_once(5, 3)
    assert is_settled(made)


def test_the_id_of_a_redrive_is_taken_before_its_record() -> None:
    """Such a record never takes effect. A planner that dies right behind the next one leaves it to others."""
    made, draft = left_behind(5, 3)
    put(made, draft.manifest_id, GARBAGE)
    first = redriven_id(draft.manifest_id, 1)

    class Spoiling(Dying):
        """A store in which a job binds the id of the first redrive right before its record is written."""

        def create(self, uri: str, data: bytes) -> bool:
            if uri.endswith("/redrive-1.json"):
                put(made, first, GARBAGE)
            if uri.startswith(LAYOUT.manifests_folder):
                raise DiedError
            return made.store.create(uri, data)

    with suppress(DiedError):
        made.plan(Spoiling(made))
    assert [each.manifest_id for each in made.plan().manifests] == [redriven_id(draft.manifest_id, 2)]
    take_in(made)
    made.plan()
    assert lines(made) == each_once(5, 3)
    assert is_settled(made)


def on_record(log: RedriveLog, root: ManifestKey, manifest: Manifest) -> Redrive:
    redrive = Redrive(
        kind="manifests",
        source=root.id,
        number=1,
        counts={},
        manifest=manifest,
        run_id="r",
        redriven_at=manifest.created_at,
    )
    assert log.record(root, redrive)
    return redrive


@pytest.mark.parametrize("step", range(STEPS))
@pytest.mark.parametrize("spoils", [(), (1,), (1, 2)])
@pytest.mark.parametrize("dies", [False, True])
def test_any_planners_hand_a_draft_over(step: int, spoils: tuple[int, ...], *, dies: bool) -> None:
    """Each record is taken in once, wherever a planner is held up or dies, and whatever has the ids of redrives.

    Args:
        step: Before which change the planner is held up. Another one plans meanwhile, and a job takes all in.
        spoils: The numbers of redrives whose ids something else has by then.
        dies: Whether the planner dies afterwards.
    """
    made, draft = left_behind(5, 3)
    put(made, draft.manifest_id, GARBAGE)

    def meet() -> None:
        for number in spoils:
            put(made, redriven_id(draft.manifest_id, number), GARBAGE)
        made.plan()
        take_in(made)
        if dies:
            raise DiedError

    with suppress(DiedError):
        made.plan(Meddling(made.store, at_change(step, meet)))
    for _ in range(3):
        take_in(made)
        made.plan()
    assert lines(made) == each_once(5, 3)
    assert is_settled(made)


@pytest.mark.parametrize("at", range(STEPS))
def test_what_a_job_has_begun_is_not_planned_again(at: int) -> None:
    """The draft of a planner that was overtaken names more than its manifest; the next one only removes it."""
    made = scene(25, 25)

    def overtake() -> None:
        made.target_bytes = 80.0
        made.plan(max_manifests=1)

    made.plan(Meddling(made.store, at_change(at, overtake)))
    made.plan()
    take_in(made)
    assert made.plan().manifests == []
    assert set(lines(made).values()) == {1}
