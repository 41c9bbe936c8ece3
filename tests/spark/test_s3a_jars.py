"""The jars of S3A are those that were tested, or none."""

import hashlib
import sys
from pathlib import Path

import pytest

from compactor.adapters.spark import s3a_jars
from compactor.adapters.spark.s3a_jars import checksums, fetch, jar_faults
from compactor.adapters.spark.session import s3a_jars_folder
from compactor.settings.spark_conf import S3A_PACKAGES


def test_every_package_has_a_checksum() -> None:
    """The checksums are those of the packages that the session names."""
    for package in S3A_PACKAGES:
        group, name, version = package.split(":")
        assert f"{group}_{name}-{version}.jar" in checksums()


def test_the_installed_jars_are_the_tested_ones() -> None:
    """What this environment has passes; a second download is not needed."""
    if not s3a_jars_folder().exists():
        pytest.skip("make dev downloads the jars, with Java")
    assert list(jar_faults(s3a_jars_folder(), checksums())) == []
    assert fetch() == len(checksums())


def test_other_jars_are_refused(tmp_path: Path) -> None:
    """A jar that is missing, unknown or different is named."""
    (tmp_path / "a.jar").write_bytes(b"a")
    (tmp_path / "b.jar").write_bytes(b"another")
    (tmp_path / "c.jar").write_bytes(b"c")
    expected = {f"{name}.jar": hashlib.sha256(name.encode()).hexdigest() for name in "abd"}
    assert [fault.partition(" ")[0] for fault in jar_faults(tmp_path, expected)] == ["b.jar:", "c.jar:", "d.jar:"]
    assert "unknown" in list(jar_faults(tmp_path, expected))[1]


def test_a_tampered_download_is_not_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is copied if one of the downloaded jars differs."""
    script = tmp_path / "pyspark" / "bin" / "spark-submit"
    script.parent.mkdir(parents=True)
    script.write_text(
        f"#!{sys.executable}\n"
        "import pathlib, sys\n"
        "[ivy] = [each.partition('=')[2] for each in sys.argv if each.startswith('spark.jars.ivy=')]\n"
        "(pathlib.Path(ivy) / 'jars').mkdir()\n"
        "(pathlib.Path(ivy) / 'jars' / 'other.jar').write_bytes(b'x')\n"
    )
    script.chmod(0o755)
    monkeypatch.setattr(s3a_jars.pyspark, "__file__", str(tmp_path / "pyspark" / "__init__.py"))
    monkeypatch.setattr(s3a_jars, "s3a_jars_folder", lambda: tmp_path / "installed")
    with pytest.raises(SystemExit, match="not the tested ones"):
        fetch()
    assert not (tmp_path / "installed").exists()
