"""Builders, sealers and planners on the same files, any of which can be held up at a crash point."""

from collections import Counter
from collections.abc import Callable

from compactor.core.crash_points import OnCrashPoint, PlanCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name, is_delivery
from compactor.sources.claiming import claim_key
from compactor.wiring import finding, planning
from compactor.wiring.app import App
from tests.support.harness import Harness
from tests.support.s3_messages import notification

MIB = 1024 * 1024
OBJECTS = 7  # four of them fill two manifests, so that some are built at once and some wait


class Race:
    """One store, one table of claims, one queue, and the builders, sealers and planners that work on them.

    Args:
        at_once: How many groups each of them writes at once; with 1, crash points come in order.
    """

    def __init__(self, at_once: int = 1) -> None:
        self.at_once = at_once
        self.harness = Harness(root="s3://lake", builder={"target_manifest_bytes": 10 * MIB, "max_wait_seconds": 1})
        self.uris = [f"s3://lake/raw/{number}.ndjson" for number in range(OBJECTS)]
        self.messages: dict[str, str] = {}
        self.was_held_up = False

    def prepare(self, *, parts: bool) -> None:
        """Put the objects and announce them, large and small ones; with `parts`, let some wait already."""
        for number, uri in enumerate(self.uris):
            self.harness.store.put(uri, b"x" * (number + 1))
        for info in list(self.harness.store.list("s3://lake/raw/")):
            key = info.uri.removeprefix("s3://lake/")
            size = 5 * MIB if key < "raw/4" else MIB
            self.messages[key] = notification("lake", key, size, info.etag)
        if parts:
            for key in ("raw/4.ndjson", "raw/5.ndjson"):
                planning.builder(self._parts()).build({key: self.messages.pop(key)})

    def build(self, on_crash_point: OnCrashPoint = ignore_crash_point, *, every: int = 1) -> None:
        """Take in what is in the queue, or every nth message, and acknowledge what is safe."""
        batch = dict(list(self.messages.items())[::every])
        builder = planning.builder(self._parts(on_crash_point), groups_at_once=self.at_once)
        report = builder.build(batch)
        for message_id in set(batch) - set(report.failed):
            self.messages.pop(message_id, None)

    def seal(self, on_crash_point: OnCrashPoint = ignore_crash_point) -> None:
        """Seal all that waits."""
        planning.sealer(self._parts(on_crash_point), groups_at_once=self.at_once).seal()

    def plan(self) -> None:
        """Look for what was never announced."""
        finding.plan(self.harness.app(), "s3://lake/raw")

    def hold_up(self, who: str, step: PlanCrashPoint, meanwhile: Callable[[], object]) -> None:
        """Run a builder or a sealer, and do something else when it first reaches a crash point."""
        held: list[bool] = []

        def on_crash_point(reached: PlanCrashPoint, _manifest_id: str) -> None:
            if reached is step and not held:
                held.append(True)
                self.was_held_up = True
                meanwhile()

        (self.build if who == "build" else self.seal)(on_crash_point)

    def settle(self) -> None:
        """Let messages come again, and the sealer be called, until nothing is left to do."""
        for _ in range(4):
            self.harness.clock.advance(301)
            self.build()
            self.seal()
        assert self.messages == {}
        assert list(self.harness.store.list(self.harness.layout.pending_folder)) == []

    def check(self) -> None:
        """Each object is in exactly one manifest of the watched prefix, and none of these is revoked."""
        listed = [
            info for info in self.harness.store.list(self.harness.layout.manifests_folder) if is_delivery(info.uri)
        ]
        named: Counter[str] = Counter()
        for info in listed:
            record = self.harness.ledger.accepted(base_name(info.uri).removesuffix(".json"))
            assert record is None or record.kind != "revoked", f"{info.uri} would become a false dead letter"
            manifest = Manifest.model_validate_json(self.harness.store.read(info.uri))
            named.update(claim_key(each) for file in manifest.files for each in file.versions)
        expected = {f"{info.uri}#{info.etag}": 1 for info in self.harness.store.list("s3://lake/raw/")}
        assert named == expected

    def _parts(self, on_crash_point: OnCrashPoint = ignore_crash_point) -> App:
        harness = self.harness
        return App(
            harness.settings,
            on_crash_point=on_crash_point,
            clock=harness.clock,
            store=harness.store,
            claims=harness.claims,
        )
