"""Files that decode to far too much, with both engines: each manifest reads some, and leaves the rest to the next."""

import gzip

from compactor.core.documents.changes import Commit


def test_files_that_decode_to_far_too_much(new_workspace):
    """Every line is there once, and a manifest costs no more than its budget and one file for each of its tasks."""
    workspace = new_workspace(input={"max_decompressed_bytes": 1_000_000})
    bombs = [b'{"id":"%d"}\nbad\n' % number + b"\n" * 900_000 for number in range(8)]
    uris = [workspace.write(f"{number:02}.ndjson.gz", gzip.compress(each)) for number, each in enumerate(bombs)]
    workspace.deliver("m", uris)
    found, read = [], []
    for manifest_id in ["m", *(f"m-r{number}" for number in range(1, 8))]:
        uri = workspace.app.layout.manifest(manifest_id)
        if workspace.app.store.stat(uri) is None:
            break
        assert workspace.run(uri).failures == {}
        compacted = workspace.compacted(manifest_id)
        assert isinstance(compacted.commit, Commit)
        read.append(sum(file.status == "compacted" for file in compacted.commit.files))
        found += [*compacted.by("id"), *(row["source_uri"] for row in compacted.rejects)]
    assert sorted(found) == sorted([*map(str, range(8)), *uris])
    assert len(read) > 1
    assert workspace.check().open_files == []
