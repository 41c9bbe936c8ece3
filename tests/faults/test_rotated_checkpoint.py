"""The checkpoint of a killed run may go at any time: the ledger alone says what is left to do."""

import json

from tests.faults.conftest import Lake, kill_group, wait_until


def test_rotated_after_a_kill(lake: Lake) -> None:
    """`kill -9`, `clean --checkpoints`, a further run: exact. A checkpoint written to just now takes --force."""
    for number in range(3):
        lake.add_manifest(f"m-{number}")
    job = lake.start("run")
    wait_until(lambda: list(lake.state.rglob("done.json")), job)
    kill_group(job)
    left = [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]
    assert left, "a killed run leaves its checkpoint"

    code, output = lake.run("clean", "--checkpoints")
    assert code == 1
    assert "expected nothing for 600 s, or --force" in output
    assert all(path.exists() for path in left)
    code, output = lake.run("clean", "--checkpoints", "--force", "--json")
    assert code == 0, output
    assert json.loads(output)["removed"]["checkpoint_files"] == len(left)
    assert not [path for path in (lake.state / "checkpoint").rglob("*") if path.is_file()]

    code, output = lake.run("run", "--once")
    assert code == 0, output
    lake.assert_exact()
    code, output = lake.run("verify", "--deep")
    assert code == 0, output
