"""Files that change while their manifest is worked on."""

import pytest

from compactor.core.crash_points import CrashPoint
from compactor.core.manifest import ManifestFile

OLD = b'{"v":"old"}\n'
NEW = b'{"v":"new"}\n'


def named(scene, name, data):
    info = scene.app.store.stat(scene.write(name, data))
    return ManifestFile(uri=info.uri, size_bytes=info.size_bytes, etag=info.etag)


def test_a_file_that_changes_behind_inspection_is_never_mixed(new_scene):
    """A file that is replaced while it is converted is quarantined as changed, and its neighbours are committed."""
    changes = [NEW]

    def replace(step, _manifest_id):
        if step is CrashPoint.INSPECTED and changes:
            scene.write("a", changes.pop())

    scene = new_scene(on_crash_point=replace)
    uri = scene.deliver("m", [named(scene, "a", OLD), named(scene, "b", b'{"v":"b"}')])
    assert scene.run(uri).failures == {}
    scene.check()
    compacted = scene.compacted()
    assert compacted.report("a").status == "changed"
    assert compacted.rows == [{"v": "b"}]


def test_a_file_that_grows_all_the_time_is_compacted_in_one_version(new_scene):
    """Where the manifest names no version, the rows are those of one inspection, however often the file changes."""
    sizes = []

    def grow(step, _manifest_id):
        if step is CrashPoint.INSPECTED:
            sizes.append(len(sizes))
            scene.write("a", OLD * (2 + len(sizes)))

    scene = new_scene(on_crash_point=grow)
    uri = scene.deliver("m", [scene.write("a", OLD * 2), scene.write("b", b'{"v":"b"}')])
    assert scene.run(uri).failures == {}
    compacted = scene.compacted()
    assert compacted.report("a").records == 3
    assert sorted(row["v"] for row in compacted.rows) == ["b", "old", "old", "old"]


@pytest.mark.parametrize("engine", ["spark"])
def test_a_file_that_vanishes_behind_inspection_fails_the_attempt(new_scene):
    """Its rows are not silently missing: the attempt fails, and the next one reports the file as missing."""
    vanishing = ["a"]

    def delete(step, _manifest_id):
        if step is CrashPoint.INSPECTED and vanishing:
            scene.app.store.delete([scene.raw + vanishing.pop()])

    scene = new_scene(on_crash_point=delete)
    uri = scene.deliver("m", [named(scene, "a", OLD), named(scene, "b", b'{"v":"b"}')])
    assert set(scene.run(uri).failures) == {"m"}
    assert scene.run(uri).failures == {}
    assert scene.compacted().report("a").status == "missing"
    assert scene.compacted().rows == [{"v": "b"}]


@pytest.mark.parametrize("engine", ["spark"])
def test_a_repaired_file_stays_the_version_that_was_inspected(new_scene):
    """Spark reads the copy that inspection made, so a later change of the original makes no difference."""

    def replace(step, _manifest_id):
        if step is CrashPoint.INSPECTED:
            scene.write("_a", NEW)

    scene = new_scene(on_crash_point=replace)
    assert scene.compact([named(scene, "_a", OLD + b"bad\n")]).rows == [{"v": "old"}]
