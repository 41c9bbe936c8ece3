"""Redriving with the Spark engine: rejected lines become rows once the settings take them, on disk and on S3."""

from dataclasses import replace

import pytest

from compactor.ledger.accounts.account import Kind
from compactor.ledger.accounts.reading import Scope
from compactor.ops.redrive.redrivable import find_redrivable
from compactor.wiring import operating
from compactor.wiring.app import App
from tests.support.engine_workspace import DAY, EngineWorkspace, NewWorkspace

LONG = b'{"id": "long", "text": "' + b"x" * 100 + b'"}'


def redrive(workspace: EngineWorkspace, kind: Kind) -> str:
    """Redrive all there is of one manifest; the URI of the new one."""
    report = operating.redriver(workspace.app).redrive(find_redrivable(workspace.app.state, Scope(kind)))
    assert report.refused == ()
    [redriven] = report.redriven
    assert redriven.manifest_id is not None
    return workspace.app.layout.manifest(redriven.manifest_id)


@pytest.mark.parametrize(
    ("engine", "place"),
    [("spark", "disk"), ("native", "disk"), ("native", "s3"), pytest.param("spark", "s3", marks=pytest.mark.full)],
    indirect=["engine"],
)
def test_rejects_and_files(new_workspace: NewWorkspace, new_s3_workspace: NewWorkspace, place: str) -> None:
    """Over-long lines and a file that was missing are redriven, and every line is one row, byte for byte."""
    new = new_workspace if place == "disk" else new_s3_workspace
    first = new(input={"max_line_bytes": 40})
    files = [first.write("a.ndjson", b'{"id": "short"}\n' + LONG + b"\n"), f"{first.raw}late.ndjson"]
    first.run(first.deliver("m", files))
    settings = first.app.settings
    wider = settings.input.model_copy(update={"max_line_bytes": 1 << 20})
    workspace = EngineWorkspace(App(replace(settings, input=wider)), first.raw, first.engine_name)
    workspace.write("late.ndjson", b'{"id": "late"}\n')
    assert workspace.run(redrive(workspace, "rejects"), redrive(workspace, "files")).failures == {}
    ids = [record["id"] for name in ("m", "m-r1", "m-r2") for record in workspace.compacted(name).records]
    assert sorted(ids) == ["late", "long", "short"]
    [row] = workspace.compacted("m-r1").records
    assert row["text"] == "x" * 100
    assert not workspace.check().needs_operator
    assert [key.date for key in workspace.app.ledger.manifests()] == [DAY] * 3
