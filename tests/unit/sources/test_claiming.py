"""Whose claims are settled by which ledger."""

from datetime import timedelta

import pytest

from compactor.adapters.claims import StreamClaims
from compactor.core.documents.manifest import Manifest, ManifestFile
from compactor.core.errors import SettingsError
from compactor.core.layout import Layout
from compactor.ledger.ledger import Ledger
from compactor.ledger.state import State
from compactor.sources.claiming import Claimer, claim_key
from tests.support.memory_store import ManualClock, MemoryClaims, MemoryStore


def test_settings_without_streams_take_over_no_claim_of_a_stream() -> None:
    """Only the ledger of the stream knows whether its file is in a manifest: the call is refused."""
    clock = ManualClock()
    store, claims = MemoryStore(clock), MemoryClaims()

    def state(folder: str) -> State:
        layout = Layout(f"s3://lake/m{folder}", f"s3://lake/o{folder}", f"s3://lake/s{folder}")
        return State(store=store, layout=layout, ledger=Ledger(store, layout, clock, "run"), clock=clock)

    file = ManifestFile(uri="s3://raw/orders/a.ndjson", size_bytes=5, etag="abc", event_time=clock.now())
    orders = Claimer(state=state("/orders"), claims=StreamClaims(claims, "orders"), lease_seconds=300)
    manifest = Manifest(manifest_id="2026-01-01-00aa", date="2026-01-01", created_at=clock.now(), files=(file,))
    assert orders.claim([claim_key(file)], manifest.manifest_id).won == {claim_key(file)}
    orders.state.store.create(orders.state.layout.manifest(manifest.manifest_id), manifest.to_json())
    assert orders.bind(manifest, "manifest")
    clock.advance(timedelta(seconds=301).total_seconds())
    plain = Claimer(state=state(""), claims=claims, lease_seconds=300)
    with pytest.raises(SettingsError, match=r"streams: none -> expected settings with .*orders"):
        plain.claim([claim_key(file)], "2026-01-01-00bb")
