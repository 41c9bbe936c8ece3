"""Files that change while their manifest is worked on."""

from pathlib import Path

import pytest

from compactor.adapters.spark.engine import SparkEngine
from compactor.core.crash_points import CrashPoint
from compactor.core.documents.manifest import ManifestFile

OLD = b'{"v":"old"}\n'
NEW = b'{"v":"new"}\n'


def named(workspace, name, data):
    info = workspace.app.store.stat(workspace.write(name, data))
    return ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag)


def test_a_file_that_changes_behind_inspection_is_never_mixed(new_workspace):
    """A file that is replaced while it is converted is quarantined as changed, and its neighbours are committed."""
    changes = [NEW]

    def replace(step, _manifest_id):
        if step is CrashPoint.INSPECTED and changes:
            workspace.write("a", changes.pop())

    workspace = new_workspace(on_crash_point=replace)
    uri = workspace.deliver("m", [named(workspace, "a", OLD), named(workspace, "b", b'{"v":"b"}')])
    assert workspace.run(uri).failures == {}
    workspace.check()
    compacted = workspace.compacted()
    assert compacted.report("a").status == "changed"
    assert compacted.rows == [{"v": "b"}]


def test_a_file_that_grows_all_the_time_is_compacted_in_one_version(new_workspace):
    """Where the manifest names no version, the rows are those of one inspection, however often the file changes."""
    sizes = []

    def grow(step, _manifest_id):
        if step is CrashPoint.INSPECTED:
            sizes.append(len(sizes))
            workspace.write("a", OLD * (2 + len(sizes)))

    workspace = new_workspace(on_crash_point=grow)
    uri = workspace.deliver("m", [workspace.write("a", OLD * 2), workspace.write("b", b'{"v":"b"}')])
    assert workspace.run(uri).failures == {}
    compacted = workspace.compacted()
    assert compacted.report("a").records == 3
    assert sorted(row["v"] for row in compacted.rows) == ["b", "old", "old", "old"]


@pytest.mark.parametrize("engine", ["spark"])
def test_a_file_that_vanishes_behind_inspection_fails_the_attempt(new_workspace):
    """Its rows are not quietly missing: the attempt fails, and the next one says that the file is gone."""
    vanishing = ["a"]

    def delete(step, _manifest_id):
        if step is CrashPoint.INSPECTED and vanishing:
            workspace.app.store.delete([workspace.raw + vanishing.pop()])

    workspace = new_workspace(on_crash_point=delete)
    uri = workspace.deliver("m", [named(workspace, "a", OLD), named(workspace, "b", b'{"v":"b"}')])
    assert set(workspace.run(uri).failures) == {"m"}
    assert workspace.run(uri).failures == {}
    assert workspace.compacted().report("a").status == "missing"
    assert workspace.compacted().rows == [{"v": "b"}]


@pytest.mark.parametrize("engine", ["spark"])
def test_a_repaired_file_stays_the_version_that_was_inspected(new_workspace):
    """Spark reads the copy that inspection made, so a later change of the original makes no difference."""

    def replace(step, _manifest_id):
        if step is CrashPoint.INSPECTED:
            workspace.write("_a", NEW)

    workspace = new_workspace(on_crash_point=replace)
    assert workspace.compact([named(workspace, "_a", OLD + b"bad\n")]).rows == [{"v": "old"}]


@pytest.mark.parametrize("engine", ["spark"])
def test_a_link_that_is_there_for_a_moment_leads_spark_nowhere(new_workspace, monkeypatch):
    """A folder of others that is a link exactly while Spark reads, to a file with as many lines, gives no row."""
    links = []

    def swap(step, _manifest_id):
        if step is CrashPoint.INSPECTED:
            folder.rename(folder.with_name("kept"))
            folder.symlink_to(private)
            links.append(folder)

    def convert(engine, conversion, staging):
        try:
            return converting(engine, conversion, staging)
        finally:
            links.pop().unlink()
            folder.with_name("kept").rename(folder)

    workspace = new_workspace(on_crash_point=swap)
    private, folder = Path(workspace.raw).parent / "private", Path(workspace.raw) / "sub"
    private.mkdir()
    (private / "a").write_bytes(NEW)
    files = [named(workspace, "sub/a", OLD)]
    folder.parent.chmod(0o777)
    converting = SparkEngine._convert
    monkeypatch.setattr(SparkEngine, "_convert", convert)
    assert workspace.compact(files).rows == [{"v": "old"}]
