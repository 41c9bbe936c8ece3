"""The lock files: exact versions with hashes of all that pyproject.toml asks for, and of nothing else."""

import re
from importlib.metadata import requires

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from compactor.core.extras import EXTRAS
from deploy.locks import LOCKS, lock_file, locked
from tests.support.requirements import required
from tools.lock import CONTENTS

HASHED = re.compile(r"[\w.-]+==[\w.+!]+( ; [^\\]+)? \\(\n    --hash=sha256:[0-9a-f]{64}( \\)?)+\n")
GROUPS = {
    "base": ("",),
    "install": ("", "report", "build"),
    "install-spark": ("", "report", "spark", "build"),
    "job": ("", "aws", "iceberg"),
    "functions": ("functions",),
    "development": ("", *EXTRAS, "bench", "build", "dev"),
    "release": ("build", "release"),
    "checkov": ("checkov",),
    "readers": ("readers",),
}


def test_the_lock_files() -> None:
    """`make lock` writes each of them."""
    assert {path.stem for path in LOCKS.iterdir()} == set(GROUPS) == set(CONTENTS)


@pytest.mark.parametrize("name", GROUPS)
def test_every_pin_has_hashes(name: str) -> None:
    """A lock file has nothing but packages in exact versions with their SHA-256; it names no index."""
    text = lock_file(name).read_text()
    assert HASHED.sub("", text) == ""
    assert len(HASHED.findall(text)) == len(locked(name))


@pytest.mark.parametrize("name", GROUPS)
def test_what_is_asked_for_is_locked(name: str) -> None:
    """Each requirement of pyproject.toml has a version of its range in the lock file."""
    versions = locked(name)
    wanted = [Requirement(each) for group in GROUPS[name] for each in required()[group]]
    assert wanted
    for each in wanted:
        assert each.specifier.contains(versions[canonicalize_name(each.name)]), each


def test_every_pin_is_needed() -> None:
    """Each package of the developer's set-up is named in pyproject.toml, or needed by one that is."""
    lines = re.findall(r"^([\w.-]+)==[^\s;]+(?: ; ([^\\]+))?", lock_file("development").read_text(), re.MULTILINE)
    pinned = {canonicalize_name(name) for name, marker in lines if not marker or Marker(marker).evaluate()}
    needed: set[tuple[str, frozenset[str]]] = set()
    waiting = [Requirement(each) for group in GROUPS["development"] for each in required()[group]]
    while waiting:
        wanted = waiting.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras or {""})
        if name not in pinned or (name, extras) in needed:
            continue
        needed.add((name, extras))
        waiting += [
            each
            for each in map(Requirement, requires(name) or ())
            if each.marker is None or any(each.marker.evaluate({"extra": extra}) for extra in extras)
        ]
    assert pinned == {name for name, _ in needed}


def test_the_build_back_ends_are_locked() -> None:
    """The versions are those that the back end names: `make` installs them with hashes."""
    text = (LOCKS.parent / "native" / "wheel_backend.py").read_text()
    named = dict(re.findall(r'"(maturin|setuptools)==([\d.]+)"', text))
    assert named.keys() == {"maturin", "setuptools"}
    for name in ("install", "install-spark", "development", "release"):
        assert named.items() <= locked(name).items(), name
