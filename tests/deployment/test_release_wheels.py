"""`make wheel` builds for the processors that Rust knows here, and says which is left out; each wheel finds its use."""

from pathlib import Path

import pytest

from deploy.pip import PackagingError
from deploy.release import release_wheels
from deploy.wheel import MACHINES, built_wheels, glibc_of, why_not_for

NAME = "ndjson_compactor-0.1.0-cp311-abi3-manylinux_2_28_{}.whl"
OLD = "ndjson_compactor-0.0.1-cp311-abi3-manylinux_2_28_aarch64.whl"


def rustc(folder: Path, *machines: str) -> str:
    """A compiler with the standard libraries of some processors."""
    for machine in machines:
        (folder / f"{machine}-unknown-linux-gnu").mkdir()
        (folder / f"{machine}-unknown-linux-gnu" / "libstd-1.rlib").touch()
    program = folder / "rustc"
    program.write_text(f'#!/bin/sh\necho {folder}/"$4"\n')
    program.chmod(0o755)
    return str(program)


@pytest.fixture
def dist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a wheel of older code, and a build that takes no time."""

    def build(folder: Path, _log: Path, machine: str) -> Path:
        (folder / NAME.format(machine)).touch()
        return folder / NAME.format(machine)

    monkeypatch.setattr("deploy.release.cargo_fault", lambda: "")
    monkeypatch.setattr("deploy.release.find_spec", lambda _: True)
    monkeypatch.setattr("deploy.release.build_wheel", build)
    monkeypatch.setattr("deploy.release._needed_glibc", lambda _: (2, 28))
    (tmp_path / "dist").mkdir()
    (tmp_path / "dist" / OLD).touch()
    return tmp_path / "dist"


@pytest.mark.parametrize("machines", [MACHINES, MACHINES[:1], MACHINES[1:]])
def test_the_processors_that_rust_has(
    machines: tuple[str, ...], dist: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """One wheel for each, and for each other a line with the command that brings it; no wheel of older code stays."""
    monkeypatch.setenv("RUSTC", rustc(dist.parent, *machines))
    built = list(release_wheels(dist))
    assert [wheel.name for wheel in built] == [NAME.format(machine) for machine in machines]
    assert sorted(dist.iterdir()) == sorted(built)
    missing = [f"No wheel for {each}: {why_not_for(each)}" for each in MACHINES if each not in machines]
    assert capsys.readouterr().err.splitlines() == missing
    assert all(f"rustup target add {line.split()[3][:-1]}-unknown-linux-gnu" in line for line in missing)


def test_without_any(dist: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is built and nothing deleted."""
    monkeypatch.setenv("RUSTC", rustc(dist.parent))
    with pytest.raises(PackagingError, match=r"x86_64-unknown-linux-gnu.*aarch64-unknown-linux-gnu"):
        list(release_wheels(dist))
    assert [each.name for each in dist.iterdir()] == [OLD]


def test_what_takes_a_wheel_takes_one_for_its_processor(tmp_path: Path) -> None:
    """Glue and EMR Serverless have x86_64; a wheel without compiled code is for any."""
    pure = "ndjson_compactor-0.1.0-py3-none-any.whl"
    for name in (*map(NAME.format, MACHINES), pure):
        (tmp_path / name).touch()
    assert [each.name for each in built_wheels(tmp_path)] == [NAME.format("x86_64"), pure]
    assert [each.name for each in built_wheels(tmp_path, "aarch64")] == [NAME.format("aarch64"), pure]
    assert glibc_of(Path(NAME.format("aarch64")), "aarch64") == (2, 28)
