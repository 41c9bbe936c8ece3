"""Commits of tables whose answers are lost, late or wrong: each file is in the table once, and none is lost."""

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from compactor.adapters.iceberg import opening
from compactor.adapters.iceberg.opening import open_catalog
from compactor.core.errors import (
    AccessError,
    CredentialsRefused,
    TableCommitUnknown,
    TableConflict,
    TableRefused,
)
from compactor.table.catalog import TableChange
from tests.faults.catalog_proxy import CatalogProxy, Fate
from tests.faults.table_world import FATES, play
from tests.support.iceberg_tables import iceberg_case, rest_place
from tests.support.rest_catalog import RestCatalogServer
from tests.support.sampling import few
from tests.support.table_catalogs import OWNER, version

SEEDS, SHARE = 600, 150
"""All, and as many as one process plays."""

RESTARTED_EVERY = 40
REFUSED_EVERY = 5
MERGED_IN = 10
"""Of so many cases, at least one had a merge that took effect or was passed over."""

COMMITS = {
    Fate.LOST: (TableCommitUnknown, True),
    Fate.DONE_503: (TableCommitUnknown, True),
    Fate.DONE_504: (TableCommitUnknown, True),
    Fate.SILENT: (TableCommitUnknown, True),
    Fate.NONSENSE: (TableCommitUnknown, True),
    Fate.UNAVAILABLE: (TableCommitUnknown, False),
    Fate.BROKEN: (TableCommitUnknown, False),
    Fate.DROPPED: (TableCommitUnknown, False),
    Fate.MOVED: (TableCommitUnknown, False),
    Fate.AGAIN: (TableConflict, True),
    Fate.INVALID: (TableRefused, False),
    Fate.DENIED: (AccessError, False),
    Fate.NO_CREDENTIALS: (CredentialsRefused, False),
}
"""What a commit raises, and whether it is made."""


@pytest.fixture
def proxy(rest_catalog: RestCatalogServer) -> Iterator[CatalogProxy]:
    with CatalogProxy(rest_catalog.url) as started:
        yield started


def test_a_commit_is_sent_once(proxy: CatalogProxy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever comes of it. What was made is whole, although the client was told otherwise."""
    case = iceberg_case(rest_place(proxy.url), tmp_path, f"lake.{tmp_path.name}")
    head = case.catalog.create(OWNER, version(1))
    impatient = case.other()
    monkeypatch.setattr(opening, "_ANSWER_SECONDS", 4.0)
    assert impatient.head() == head
    expected = []
    for number, (fate, (error, is_made)) in enumerate(COMMITS.items(), 1):
        proxy.fates = lambda fate=fate: fate
        proxy.posts.clear()
        file = case.file(fate.name)
        with pytest.raises(error) as caught:
            (impatient if fate is Fate.SILENT else case.catalog).commit(head, TableChange(number, (file,)))
        assert type(caught.value) is error
        # pyiceberg renews its token after a 401, which says that nothing was made.
        assert proxy.posts == Counter({fate: 2 if fate is Fate.NO_CREDENTIALS else 1})
        now = case.catalog.head()
        assert now is not None
        assert (now.fence == number) is is_made, fate
        expected += [file.uri] if is_made else []
        assert sorted(each.uri for each in case.catalog.live_files()) == sorted(expected)
        head = now
    rows = open_catalog(rest_place(proxy.url)).load_table(f"lake.{tmp_path.name}").scan().to_arrow().num_rows
    assert rows == 3 * len(expected)


def test_a_late_commit(proxy: CatalogProxy, tmp_path: Path) -> None:
    """Is made if the table is as it was, also if it was empty; after any other change it never is."""
    case = iceberg_case(rest_place(proxy.url), tmp_path, f"lake.{tmp_path.name}")
    head = case.catalog.create(OWNER, version(1))
    for number in (1, 3):
        proxy.fates = iter([Fate.LATE, Fate.LATE, Fate.WELL]).__next__
        for name in ("late", "later"):
            with pytest.raises(TableCommitUnknown):
                case.catalog.commit(head, TableChange(number, (case.file(f"{name}{number}"),)))
        assert proxy.land()
        assert not proxy.land()
        with pytest.raises(TableConflict):
            case.catalog.commit(head, TableChange(number, (case.file("never"),)))
        now = case.catalog.head()
        assert now is not None
        assert (now.fence, len(list(case.catalog.live_files()))) == (number, (number + 1) // 2 + number // 3)
        case.catalog.commit(now, TableChange(number + 1, (case.file(f"well{number}"),)))
        found = case.catalog.head()
        assert found is not None
        head = found


def _played(seeds: range, proxy: CatalogProxy, server: RestCatalogServer, folder: Path) -> Counter[Fate]:
    fates: Counter[Fate] = Counter()
    merged = 0
    for seed in seeds:
        place = folder / str(seed)
        place.mkdir()
        restarts, refuses = seed % RESTARTED_EVERY == RESTARTED_EVERY - 1, seed % REFUSED_EVERY == REFUSED_EVERY - 1
        story = play(seed, proxy, server, place, restarts=restarts, refuses=refuses, merges=seed % 2 == 1)
        fates, merged = fates + story.fates, merged + story.merged
    assert merged or len(seeds) < MERGED_IN
    return fates


def test_two_committers(proxy: CatalogProxy, rest_catalog: RestCatalogServer, tmp_path: Path) -> None:
    """They die, meet strangers and get wrong answers; in the end the table has what the ledger says."""
    assert _played(range(2), proxy, rest_catalog, tmp_path)


@pytest.mark.parametrize("seed", few(range(4), 2))
def test_a_file_that_is_refused_for_ever(
    proxy: CatalogProxy, rest_catalog: RestCatalogServer, tmp_path: Path, seed: int
) -> None:
    """Beside all of it: its manifest is held back, unless the catalog took it late, and all others are in the table."""
    story = play(seed, proxy, rest_catalog, tmp_path, restarts=False, refuses=True)
    assert story.held == ["a"] or story.fates[Fate.LATE]
    assert story.fates[Fate.INVALID]


@pytest.mark.faults
@pytest.mark.timeout(7200)
@pytest.mark.parametrize("first", range(0, SEEDS, SHARE))
def test_many_committers(proxy: CatalogProxy, rest_catalog: RestCatalogServer, tmp_path: Path, first: int) -> None:
    """The same, so often that each fate of a commit met each step."""
    fates = _played(range(first, first + SHARE), proxy, rest_catalog, tmp_path)
    assert fates.keys() == {*FATES, Fate.INVALID}
