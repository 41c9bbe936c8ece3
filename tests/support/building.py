"""A builder and a sealer on a store in memory: announces files, builds and seals, and shows what came of it."""

from collections import Counter

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name, is_delivery
from compactor.core.ports import ObjectStore
from compactor.sources.claiming import claim_key
from compactor.sources.events.builder import Built
from compactor.sources.events.sealer import SealedParts
from compactor.wiring import planning
from compactor.wiring.app import App
from tests.support.harness import Harness
from tests.support.s3_messages import SHAPES

MIB = 1024 * 1024


def new_harness(**builder: object) -> Harness:
    """A harness whose manifests are 10 MiB."""
    return Harness(root="s3://lake", builder={"target_manifest_bytes": 10 * MIB, **builder})


def parts_of(
    harness: Harness, store: ObjectStore | None = None, *, on_crash_point: OnCrashPoint = ignore_crash_point
) -> App:
    """The parts of one call of a function."""
    return App(
        harness.settings,
        on_crash_point=on_crash_point,
        clock=harness.clock,
        store=store or harness.store,
        claims=harness.claims,
    )


def build(harness: Harness, *bodies: str, on_crash_point: OnCrashPoint = ignore_crash_point) -> Built:
    """Build one group after the other, so that crash points come in order."""
    builder = planning.builder(parts_of(harness, on_crash_point=on_crash_point), groups_at_once=1)
    return builder.build(dict(zip("abcdefghijklmnop", bodies, strict=False)))


def seal(
    harness: Harness, *, on_crash_point: OnCrashPoint = ignore_crash_point, after_seconds: float = 0
) -> SealedParts:
    harness.clock.advance(after_seconds)
    return planning.sealer(parts_of(harness, on_crash_point=on_crash_point), groups_at_once=1).seal()


def put(key: str, size: int = MIB, etag: str = "e1", *, shape: str = "s3") -> str:
    return SHAPES[shape]("lake", f"raw/{key}", size, etag)


def in_effect(harness: Harness) -> list[Manifest]:
    """The manifests of the watched prefix that can take effect."""
    found = [info for info in harness.store.list(harness.layout.manifests_folder) if is_delivery(info.uri)]
    ids = [base_name(info.uri).removesuffix(".json") for info in found]
    accepted = {each: harness.ledger.accepted(each) for each in ids}
    live = [each for each in ids if (record := accepted[each]) is None or record.kind != "revoked"]
    return [Manifest.model_validate_json(harness.store.read(harness.layout.manifest(each))) for each in live]


def places(harness: Harness) -> Counter[str]:
    """How often each file version is in a manifest that can take effect."""
    named = (file for manifest in in_effect(harness) for file in manifest.files)
    return Counter(claim_key(each) for file in named for each in file.versions)


def pending(harness: Harness) -> list[str]:
    return [info.uri for info in harness.store.list(harness.layout.pending_folder)]
