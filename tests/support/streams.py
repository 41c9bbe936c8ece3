"""Several streams on a store in memory: their settings, their components, and what came of announced files."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from compactor.core.crash_points import OnCrashPoint, ignore_crash_point
from compactor.core.documents.manifest import Manifest
from compactor.core.layout import base_name, is_delivery
from compactor.core.ports import ObjectStore
from compactor.settings.settings import Settings, parse_settings
from compactor.settings.toml import toml_of
from compactor.sources.claiming import claim_key
from compactor.sources.events.builder import Builder, Built
from compactor.wiring import planning
from compactor.wiring.app import App
from tests.support.memory_store import ManualClock, MemoryClaims, MemoryStore

MIB = 1024 * 1024
TEN = tuple(f"kind-{number}" for number in range(10))


def stream_settings(*streams: Mapping[str, Any] | str, root: str = "s3://lake", **sections: Any) -> Settings:
    """Settings of streams; a name alone stands for a stream whose input is below a folder of that name."""
    entries = [
        {"name": each, "input": {"allowed_prefixes": [f"{root}/raw/{each}"]}} if isinstance(each, str) else dict(each)
        for each in streams
    ]
    common: dict[str, Any] = {
        "paths": {place: f"{root}/{place}" for place in ("manifests", "output", "state")},
        "input": {"allowed_prefixes": [f"{root}/raw"]},
        "schema": {"metadata_columns": []},
    }
    found = parse_settings({**common, **sections, "streams": entries})
    return replace(found, streams=tuple(replace(each, retry_pause_seconds=0.001) for each in found.streams))


def write_stream_settings(folder: Path, *names: str, more: str = "") -> Path:
    """Write settings of streams on a local disk, and the folders of their input; `more` are keys of the last one."""
    root, path = folder / "lake", folder / "compactor.toml"
    for name in names:
        (root / "raw" / name).mkdir(parents=True)
    paths = {place: f"{root}/{place}" for place in ("manifests", "output", "state")}
    entries = [
        f'[[streams]]\nname = "{name}"\n{more if name == names[-1] else ""}'
        f'[streams.input]\nallowed_prefixes = ["{root}/raw/{name}"]\n'
        for name in names
    ]
    path.write_text(toml_of({"paths": paths, "input": {"allowed_prefixes": [f"{root}/raw"]}}) + "\n".join(entries))
    return path


class StreamsInMemory:
    """What the functions of several streams share."""

    def __init__(self, settings: Settings, store: ObjectStore | None = None) -> None:
        self.settings = settings
        self.clock = ManualClock(datetime(2026, 1, 2, 12, tzinfo=UTC))
        self.store: ObjectStore = store or MemoryStore(self.clock)
        self.claims = MemoryClaims()

    def components(self, store: ObjectStore | None = None, *, on_crash_point: OnCrashPoint = ignore_crash_point) -> App:
        """The components of one call of a function."""
        store = store or self.store
        return App(
            self.settings, on_crash_point=on_crash_point, clock=self.clock, store=store, table_of_claims=self.claims
        )

    def builder(self) -> Builder:
        return planning.builder(self.components())

    def build(self, *bodies: str) -> Built:
        return self.builder().build({f"m{number}": body for number, body in enumerate(bodies)})

    def seal(self, stream: str, *, after_seconds: float = 0) -> None:
        self.clock.advance(after_seconds)
        planning.sealer(self.components().of_streams[stream]).seal()

    def in_effect(self, stream: str) -> list[Manifest]:
        """The manifests in the watched prefix of a stream that can take effect."""
        parts = self.components().of_streams[stream]
        found = [info.uri for info in self.store.list(parts.layout.manifests_folder) if is_delivery(info.uri)]
        accepted = {uri: parts.ledger.accepted(base_name(uri).removesuffix(".json")) for uri in found}
        live = [uri for uri in found if (record := accepted[uri]) is None or record.kind != "revoked"]
        return [Manifest.model_validate_json(self.store.read(uri)) for uri in live]

    def places(self, stream: str) -> Counter[str]:
        """How often each file version is in a manifest of a stream that can take effect."""
        named = (file for manifest in self.in_effect(stream) for file in manifest.files)
        return Counter(claim_key(each) for file in named for each in file.versions)

    def pending(self) -> list[str]:
        """The pending parts of all streams."""
        return [info.uri for info in self.store.list(self.settings.layout().pending_folder)]
