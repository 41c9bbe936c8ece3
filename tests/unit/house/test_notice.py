"""NOTICE names what the product is made of, in the versions of the lock files."""

import subprocess
import tomllib

import pytest

from deploy.locks import ROOT, locked
from tests.support import extras
from tools.notice import notice

NOTICE = (ROOT / "NOTICE").read_text().partition("-" * 80)[0]
NAMED = {tuple(line.split()[:2]) for line in NOTICE.splitlines() if line.startswith("  ")}


def test_every_locked_package_is_named() -> None:
    """`make notice` writes it anew after a change of the locks."""
    wanted = {pin for name in ("base", "job", "development") for pin in locked(name).items()}
    crates = {(each["name"], each["version"]) for each in crate_lock()}
    assert wanted <= NAMED
    assert wanted | crates >= NAMED, "named, but no longer locked"


def test_every_crate_is_named() -> None:
    """Each crate that Cargo.toml names is there, in the version of Cargo.lock."""
    project = tomllib.loads((ROOT / "native" / "Cargo.toml").read_text())
    asked = set(project["dependencies"])
    assert asked <= {name for name, _ in NAMED}
    versions = {(each["name"], each["version"]) for each in crate_lock() if each["name"] in asked}
    assert {each for each in NAMED if each[0] in asked} <= versions


def test_the_notice_is_what_the_target_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """To the letter, texts of licences included; where cargo has the crates already, for the test needs no network."""
    extras.CARGO.need()
    monkeypatch.setenv("CARGO_NET_OFFLINE", "true")
    try:
        written = notice()
    except subprocess.CalledProcessError:
        pytest.skip("cargo has not downloaded the crates yet: `make dev`")
    assert written == (ROOT / "NOTICE").read_text(), "make notice"


def crate_lock() -> list[dict[str, str]]:
    document = tomllib.loads((ROOT / "native" / "Cargo.lock").read_text())
    packages: list[dict[str, str]] = document["package"]
    return packages
