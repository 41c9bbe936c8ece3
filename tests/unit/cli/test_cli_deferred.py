"""A manifest of bombs, as commands show it: it costs the others one turn at a time, and every line is a row once."""

import gzip
import json
from pathlib import Path

import pytest

from compactor.ledger.accounts.reading import Detail, Scope, accounts
from tests.support import extras
from tests.support.workspace import DAY, Workspace, make_workspace

extras.NATIVE.need()

MIB = 1024 * 1024
BOMBS = 9
FOLLOWING = ["bad", *(f"bad-r{number}" for number in range(1, 5))]
"""Each reads two bombs: the first one decodes to no more than the limit of a file."""


@pytest.fixture
def workspace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Workspace:
    """A manifest of bombs, and behind it good ones of another producer. The job has one slot."""
    made = make_workspace(tmp_path)
    for name, value in {"INPUT__MAX_DECOMPRESSED_BYTES": f"{4 * MIB}", "STREAM__MANIFESTS_IN_FLIGHT": "1"}.items():
        monkeypatch.setenv(f"COMPACTOR_{name}", value)
    for name, value in {"CONVERT__ENGINE": "native", "STREAM__SOURCE": "listing"}.items():
        monkeypatch.setenv(f"COMPACTOR_{name}", value)
    files = {f"good{number}": [f"other/{number}.ndjson"] for number in range(BOMBS)}
    files["bad"] = [f"bombs/{number}.ndjson" for number in range(BOMBS)]
    for name in ("bombs", "other"):
        (tmp_path / "raw" / name).mkdir()
    for number in range(BOMBS):
        row = b'{"id": "%d"}\n' % number
        (tmp_path / "raw" / f"bombs/{number}.ndjson").write_bytes(gzip.compress(row + b"\n" * (4 * MIB - 100)))
        (tmp_path / "raw" / f"other/{number}.ndjson").write_bytes(row)
    (tmp_path / "m").mkdir()
    for name, uris in files.items():
        document = {"version": 1, "manifest_id": name, "date": DAY, "files": [{"uri": made.raw(uri)} for uri in uris]}
        (tmp_path / "m" / f"{name}.json").write_text(json.dumps(document))
    return made


def test_a_manifest_of_bombs(workspace: Workspace) -> None:
    """The good ones get their turns after the first two bombs; nothing is lost or doubled, and no one has to act."""
    assert workspace.call("run", "--once").exit_code == 0
    state = workspace.app.state
    done = {each.id: each.done.done_at for each in accounts(state, Scope(details=Detail.DONE)) if each.done}
    assert sorted(each for each in done if each.startswith("bad")) == FOLLOWING
    assert sum(each.startswith("good") for each in done if done[each] < done[FOLLOWING[1]]) == BOMBS
    report, code = workspace.json("verify", "--deep")
    assert (report["rows"], report["discrepancies"], code) == (2 * BOMBS, [], 0)
    found, code = workspace.json("trace", workspace.raw(f"bombs/{BOMBS - 1}.ndjson"))
    assert (found["state"], found["manifest_id"], found["rows"], code) == ("done", FOLLOWING[-1], 1, 0)
    assert "none quarantined" in workspace.call("status").output
    assert "deferred" in workspace.call("verify").output
