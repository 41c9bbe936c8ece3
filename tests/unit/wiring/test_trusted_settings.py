"""Settings that a command finds by itself: which of them it reads, because no other user can have written them."""

import os
from pathlib import Path

import pytest

from compactor.cli.invocation import Invocation
from compactor.core.errors import SettingsError
from compactor.wiring.settings_files import check_trusted, settings_place

OTHER = 65_534


@pytest.fixture
def found(tmp_path: Path) -> Path:
    """Settings beside a destination, which only this user may write."""
    home = tmp_path / "rows.compactor"
    home.mkdir(mode=0o755)
    path = home / "compactor.toml"
    path.touch(mode=0o644)
    return path


@pytest.mark.parametrize(("file", "folder"), [(0o644, 0o755), (0o600, 0o700), (0o644, 0o1777)])
def test_own_settings(found: Path, file: int, folder: int) -> None:
    """Others may read them, and may have files beside them in a folder like /tmp."""
    found.chmod(file)
    found.parent.chmod(folder)
    check_trusted(found, "x")


@pytest.mark.parametrize(("file", "folder"), [(0o646, 0o755), (0o644, 0o757)])
def test_settings_that_others_may_write(found: Path, monkeypatch: pytest.MonkeyPatch, file: int, folder: int) -> None:
    """They are refused beside DST and in the current folder, and read if they are named."""
    found.chmod(file)
    found.parent.chmod(folder)
    destination = str(found.parent).removesuffix(".compactor")
    monkeypatch.chdir(found.parent)
    for place in (destination, None):
        with pytest.raises(SettingsError, match="other users may write"):
            settings_place(None, place, {})
    assert settings_place(None, str(found), {}) == str(found)
    assert settings_place(str(found), None, {}) == str(found)


def test_a_group_that_may_write(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Users whose umask is 002 have a group of their own; any other group may have members."""
    found.chmod(0o664)
    check_trusted(found, "x")
    monkeypatch.setattr("grp.getgrgid", lambda _: type("Group", (), {"gr_name": "staff", "gr_mem": []}))
    with pytest.raises(SettingsError, match="mode 664"):
        check_trusted(found, "x")


def test_links(found: Path) -> None:
    """A link counts as what it leads to: its file and the folder of that, too."""
    link = found.parent.parent / "compactor.toml"
    link.symlink_to(found)
    check_trusted(link, "x")
    found.parent.chmod(0o757)
    with pytest.raises(SettingsError, match="mode 757"):
        check_trusted(link, "x")


def test_no_command_goes_on_without_them(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor does one that needs no settings."""
    found.chmod(0o646)
    monkeypatch.chdir(found.parent)
    with pytest.raises(SettingsError, match="other users may write"):
        assert Invocation().has_settings


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_settings_of_another_user(found: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are refused whatever their mode, unless that user calls sudo."""
    os.chown(found, OTHER, OTHER)
    with pytest.raises(SettingsError, match=f"owner {OTHER}"):
        check_trusted(found, "x")
    monkeypatch.setenv("SUDO_UID", str(OTHER))
    check_trusted(found, "x")
