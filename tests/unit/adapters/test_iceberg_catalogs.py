"""How catalogs of Iceberg tables are opened, and whose tables are used."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
import requests
from pyiceberg.exceptions import ForbiddenError, ServiceUnavailableError
from pyiceberg.io import FileIO
from pyiceberg.manifest import ManifestFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.schema import Schema
from pyiceberg.table import Table
from pyiceberg.table.metadata import new_table_metadata
from pyiceberg.table.snapshots import Snapshot
from pyiceberg.table.sorting import SortOrder
from pyiceberg.types import NestedField, StringType
from requests.adapters import HTTPAdapter

from compactor.adapters.iceberg.change import Change
from compactor.adapters.iceberg.errors import reading, refused_or_unknown
from compactor.adapters.iceberg.iceberg_table import OWNER as OWNED_BY
from compactor.adapters.iceberg.iceberg_table import IcebergTable
from compactor.adapters.iceberg.opening import CatalogPlace, PatientRestCatalog, catalog_properties, open_catalog
from compactor.adapters.iceberg.schemas import PLACEHOLDER
from compactor.core.errors import (
    AccessError,
    OperatorError,
    StoreUnavailable,
    TableCommitUnknown,
    TableConflict,
    TableRefused,
)
from compactor.table.catalog import TableChange
from tests.support.iceberg_tables import NAME, client, iceberg_case, metadata_folder, sql_place
from tests.support.table_catalogs import OWNER, CatalogCase, now, version

ARN = "arn:aws:s3tables:eu-west-1:123456789012:bucket/lake"


@pytest.mark.parametrize(
    ("place", "uri", "name", "warehouse"),
    [
        (
            CatalogPlace(kind="glue", region="eu-west-1", warehouse="123456789012"),
            "https://glue.eu-west-1.amazonaws.com/iceberg",
            "glue",
            "123456789012",
        ),
        (
            CatalogPlace(kind="s3tables", region="eu-west-1", warehouse=ARN),
            "https://s3tables.eu-west-1.amazonaws.com/iceberg",
            "s3tables",
            ARN,
        ),
    ],
    ids=("glue", "s3tables"),
)
def test_catalogs_of_aws(place: CatalogPlace, uri: str, name: str, warehouse: str) -> None:
    """Requests are signed, for the service and the region that the documents of AWS name, and sent once."""
    assert catalog_properties(place) == {
        "uri": uri,
        "warehouse": warehouse,
        "rest.sigv4-enabled": "true",
        "rest.signing-name": name,
        "rest.signing-region": "eu-west-1",
        "rest.sigv4.max-retries": "0",
        "s3.region": "eu-west-1",
        "s3.connect-timeout": "10",
        "s3.request-timeout": "60",
    }


def test_what_pyiceberg_lacks_for_variant() -> None:
    """Why nested values are text in tables, too: it knows no such type, and writes no table of format version 3.

    If this fails, a later pyiceberg can: then `variant` may be offered for new tables, off by default.
    """
    field = {"id": 1, "name": "nested", "required": False, "type": "variant"}
    with pytest.raises(ValueError, match="Unsupported field type: 'variant'"):
        Schema.model_validate({"type": "struct", "schema-id": 0, "fields": [field]})
    metadata = new_table_metadata(Schema(), PartitionSpec(), SortOrder(), "/lake", {"format-version": "3"})
    with pytest.raises(NotImplementedError, match="Writing V3 is not yet supported"):
        metadata.model_dump_json()


def test_a_table_of_a_later_format(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is read, but takes no change; the error blames no batch for it, and says what helps."""
    table = client(sql_place(tmp_path))
    head = table.create(OWNER, version(1))
    load = IcebergTable._load

    def raised(self: IcebergTable) -> Table | None:
        found = load(self)
        if found is not None:
            found.metadata = found.metadata.model_copy(update={"format_version": 3})
        return found

    monkeypatch.setattr(IcebergTable, "_load", raised)
    assert table.head() == head
    changes: list[Callable[[], object]] = [
        lambda: table.commit(head, TableChange(1, ())),
        lambda: table.expire(head, [1]),
        lambda: table.merge_manifests(head),
    ]
    for change in changes:
        with pytest.raises(OperatorError, match="has format version 3 -> expected at most 2") as raising:
            change()
        assert not isinstance(raising.value, TableRefused)


def test_what_the_settings_do_not_say(monkeypatch: pytest.MonkeyPatch) -> None:
    """Comes from pyiceberg's own variables, which never take the place of what they say."""
    monkeypatch.setenv("PYICEBERG_CATALOG__COMPACTOR__TOKEN", "secret")
    monkeypatch.setenv("PYICEBERG_CATALOG__COMPACTOR__URI", "http://elsewhere/")
    found = catalog_properties(CatalogPlace(kind="rest", uri="http://here/"))
    assert (found["token"], found["uri"]) == ("secret", "http://here/")


def test_a_region_that_is_missing() -> None:
    """An endpoint of AWS has one."""
    with pytest.raises(OperatorError, match=r"expected aws\.region in the settings"):
        open_catalog(CatalogPlace(kind="glue"))


def test_a_password_is_not_shown() -> None:
    """The address of a database may have one."""
    place = CatalogPlace(kind="sql", uri="postgresql+psycopg2://me:secret@db:5432/lake")
    assert place.shown == "sql catalog postgresql+psycopg2://db:5432/lake"


def test_each_request_is_sent_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """No layer sends it again, follows a redirect, or waits for ever."""
    monkeypatch.setattr(PatientRestCatalog, "_fetch_config", lambda _: None)
    for signed in ("false", "true"):
        catalog = PatientRestCatalog("c", **{"uri": "http://127.0.0.1:1/", "rest.sigv4-enabled": signed})
        session = catalog._create_session()
        assert session.max_redirects == 0
        assert session.request.keywords["timeout"] == (10.0, 60.0)  # type: ignore[attr-defined]
        assert len(session.adapters) == 2 + (signed == "true")
        for adapter in session.adapters.values():
            assert isinstance(adapter, HTTPAdapter)
            assert adapter.max_retries.total == 0


MEANING = {
    400: TableRefused,
    422: TableRefused,
    404: TableConflict,
    409: TableConflict,
    408: TableCommitUnknown,
    429: TableCommitUnknown,
    500: TableCommitUnknown,
    503: TableCommitUnknown,
}
"""What an answer to a commit says."""


def answered(status: int, error: Callable[[str], Exception]) -> Exception:
    """An error as pyiceberg makes it of an answer."""
    answer = requests.Response()
    answer.status_code = status
    found = error("said\x1b")
    found.__cause__ = requests.HTTPError(response=answer)
    return found


def test_what_failures_mean() -> None:
    """A commit is refused only by an answer that says so; what merely reads is tried again where that can help."""
    for status, expected in MEANING.items():
        assert type(refused_or_unknown(answered(status, RuntimeError), "table")) is expected
    assert type(refused_or_unknown(ValueError("any"), "table")) is TableCommitUnknown
    for error, kind in [
        (answered(503, ServiceUnavailableError), StoreUnavailable),
        (answered(403, ForbiddenError), AccessError),
        (requests.ConnectionError("gone"), StoreUnavailable),
        (requests.TooManyRedirects("many"), OperatorError),
        (PermissionError(13, "no"), AccessError),
        (OSError(5, "broken"), StoreUnavailable),
        (ValueError("nonsense"), OperatorError),
    ]:
        with pytest.raises(kind) as caught, reading("table"):
            raise error
        assert "\x1b" not in str(caught.value)


def test_a_table_of_a_person(tmp_path: Path) -> None:
    """Is left alone, whatever it is called."""
    catalog = open_catalog(sql_place(tmp_path))
    catalog.create_namespace("lake")
    catalog.create_table(NAME, Schema(NestedField(1, "a", StringType(), required=False)))
    table = client(sql_place(tmp_path))
    for call in (table.head, lambda: table.create(OWNER, version(1))):
        with pytest.raises(OperatorError, match="expected a table created by the compactor, or none"):
            call()


def test_a_table_that_is_half_made(tmp_path: Path) -> None:
    """A process that died between the two steps is followed by another that takes the second one, once."""
    catalog = open_catalog(sql_place(tmp_path))
    catalog.create_namespace("lake")
    catalog.create_table(NAME, PLACEHOLDER, properties={OWNED_BY: OWNER})
    first, second = client(sql_place(tmp_path)), client(sql_place(tmp_path))
    assert first.head() is None
    with pytest.raises(OperatorError, match="file:///lake/state/ has started to create it"):
        second.create("file:///other/", version(1))
    made = first.create(OWNER, version(2))
    assert (made.fence, made.schema_version) == (0, 2)
    assert second.create(OWNER, version(1)) == made
    found = catalog.load_table(NAME)
    assert [field.field_id for field in found.schema().fields if field.name.startswith("c")] == [1, 2]
    assert [field.name for field in found.spec().fields] == ["file_date"]


def test_a_table_that_cannot_be_completed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error says why, of the last of several attempts."""
    sent = list[int]()

    def failing(*_: object) -> None:
        sent.append(1)
        raise OSError(28, f"No space left on device, attempt {len(sent)}")

    monkeypatch.setattr(Change, "send", failing)
    table = client(sql_place(tmp_path))
    with pytest.raises(StoreUnavailable, match=r"after 5 attempts.*No space left on device, attempt 5") as raising:
        table.create(OWNER, version(1))
    assert isinstance(raising.value.__cause__, TableCommitUnknown)


def test_a_fence_that_was_removed(tmp_path: Path) -> None:
    """It is unknown then which batches the table has."""
    table = client(sql_place(tmp_path))
    head = table.create(OWNER, version(1))
    with open_catalog(sql_place(tmp_path)).load_table(NAME).transaction() as change:
        change.remove_properties("compactor.batch")
    with pytest.raises(OperatorError, match=r"compactor\.batch"):
        table.commit(head, TableChange(1, ()))


def test_a_change_asserts_what_it_was_made_for(tmp_path: Path) -> None:
    """The table, its snapshot or that it has none, its columns and its partitions, in the request itself."""
    table = client(sql_place(tmp_path))
    head = table.create(OWNER, version(1))
    catalog = open_catalog(sql_place(tmp_path))
    late = [Change(catalog.load_table(NAME)) for _ in range(2)]
    for change in late:
        change.use_files([], [], {})
    kinds = {each.type: each for each in late[0]._requirements}
    assert kinds["assert-table-uuid"].uuid == catalog.load_table(NAME).metadata.table_uuid
    assert kinds["assert-ref-snapshot-id"].snapshot_id is None
    assert kinds.keys() >= {"assert-current-schema-id", "assert-default-spec-id"}
    late[0].send(catalog)
    with pytest.raises(Exception, match="Requirement failed") as caught:
        late[1].send(catalog)
    assert isinstance(refused_or_unknown(caught.value, "table"), TableConflict)
    with pytest.raises(TableConflict):
        table.commit(head, TableChange(1, ()))


def test_a_database_that_is_gone(tmp_path: Path) -> None:
    """Nothing hangs, and the caller is told to try again."""
    table = IcebergTable(
        place=CatalogPlace(kind="sql", uri=f"sqlite:///{tmp_path}/none/catalog.db", warehouse=str(tmp_path)),
        name=NAME,
        metadata_columns=(),
    )
    with pytest.raises(StoreUnavailable):
        table.head()


LOST = r"expected all files in its metadata: restore this one, or drop the table in its catalog"


@pytest.fixture
def case(tmp_path: Path) -> CatalogCase:
    """A table with one file, in a folder with a long name."""
    folder = tmp_path / ("long" * 40)
    folder.mkdir()
    made = iceberg_case(sql_place(folder), folder)
    made.catalog.commit(made.catalog.create(OWNER, version(1)), TableChange(1, (made.file("a"),)))
    return made


def files(case: CatalogCase, pattern: str) -> list[Path]:
    assert isinstance(case.catalog, IcebergTable)
    return sorted(metadata_folder(case.catalog.place).glob(pattern))


@pytest.mark.parametrize("lost", ["*-m0.avro", "snap-*.avro"], ids=("manifest", "list of manifests"))
def test_a_file_of_metadata_that_is_lost(case: CatalogCase, lost: str) -> None:
    """No batch is blamed, and none waits for the store: a person is told which file it is, and what helps."""
    [path] = files(case, lost)
    path.unlink()
    gone, head = case.file("a"), now(case)
    calls: list[Callable[[], object]] = [
        lambda: case.catalog.commit(head, TableChange(2, (), removed=(gone.uri,))),
        lambda: list(case.catalog.live_files()),
        lambda: case.catalog.files_below(""),
    ]
    if lost.startswith("snap"):
        calls += [
            lambda: case.catalog.commit(head, TableChange(2, (case.file("b"),))),
            lambda: case.catalog.commit(head, TableChange(2, (), is_refused=True)),
            lambda: case.catalog.merge_manifests(head),
            case.catalog.history,
        ]
    for call in calls:
        with pytest.raises(OperatorError, match=f"{re.escape(str(path))}.*{LOST}") as raising:
            call()
        assert not isinstance(raising.value, TableRefused)


def test_metadata_that_is_lost(case: CatalogCase) -> None:
    """The table cannot be read at all by a process that has not read it before."""
    path = files(case, "*.metadata.json")[-1]
    path.unlink()
    with pytest.raises(OperatorError, match=f"{re.escape(str(path))}.*{LOST}"):
        case.other().head()


def test_a_file_that_went_because_the_table_changed(case: CatalogCase, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is no loss: another process has expired what named it."""
    head, [path] = now(case), files(case, "snap-*.avro")
    manifests = Snapshot.manifests

    def overtaken(self: Snapshot, io: FileIO) -> list[ManifestFile]:
        if path.exists():
            path.unlink()
            open_catalog(sql_place(path.parents[4])).load_table(NAME).transaction().set_properties(
                {"of": "another"}
            ).commit_transaction()
        return manifests(self, io)

    monkeypatch.setattr(Snapshot, "manifests", overtaken)
    with pytest.raises(TableConflict, match=path.name):
        case.catalog.commit(head, TableChange(2, (case.file("b"),)))
