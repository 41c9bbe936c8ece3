"""What is explored of each module: a small configuration in seconds, a large one in minutes."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from tests.protocol.tlc import SPEC, Exploration, constants, explore

SAFETY: dict[str, tuple[str, ...]] = {
    "Claims": ("TypesHold", "AnEffectOnce", "BoundXorRevoked", "NothingForgotten"),
    "Sealing": ("TypesHold", "AnEffectOnce", "BoundXorRevoked", "NothingForgotten"),
    "Change": (
        "TypesHold", "AnEffectOnce", "NothingVisibleUnverified", "DoneIsWhole", "NothingIsLost", "NothingForgotten",
        "OriginalIsKept", "EachIsToldApart", "NothingComesBack",
    ),
    "Redrive": ("TypesHold", "AnEffectOnce", "LinesAreKept", "NothingForgotten"),
    "Closing": (
        "TypesHold", "AnEffectOnce", "NoneIsSummarisedAgain", "ReadersCountOnce", "NothingClosedUnverified",
        "EachIsCompared", "NothingForgotten",
    ),
    "Shards": ("TypesHold", "AnEffectOnce", "OneTakes"),
    "Table": (
        "TypesHold", "AnEffectOnce", "FenceCounts", "RefusedStaysOut", "DoneIsVisible", "VisibleIsRecorded",
        "OneBatchEach", "NoGaps", "HeldIsBad", "NothingForgotten",
    ),
    "Merging": ("TypesHold", "AnEffectOnce", "EachIsThere", "NothingIsLost", "RowsAreFound"),
    "Landing": (
        "TypesHold", "AnEffectOnce", "NoGaps", "NothingForgotten", "NamedExactly", "EachIsAccounted", "WrittenAreGiven",
    ),
}  # fmt: skip
STAYS = {
    "Change": ("ChangesStay",),
    "Redrive": ("RecordsStay",),
    "Closing": ("SummariesStay",),
    "Shards": ("OutcomesStay",),
    "Table": ("RecordsStay",),
    "Merging": ("RecordsStay",),
    "Landing": ("LinksStay",),
}
LIVENESS = {
    "Claims": "EachFileArrives",
    "Sealing": "EachPartArrives",
    "Change": "EachIsDone",
    "Redrive": "EachArrives",
    "Closing": "EachIsClosed",
    "Shards": "EachIsDone",
    "Table": "EachIsVisible",
    "Merging": "EachTakesEffect",
    "Landing": "EachOffsetArrives",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """One exploration of a module.

    Attributes:
        name: Tells it from others of the module.
        values: Of the constants, without the guards.
        alike: Constants whose members are interchangeable.
        is_live: Whether liveness is checked, under fairness.
    """

    module: str
    name: str
    values: Mapping[str, str]
    alike: tuple[str, ...] = ()
    is_live: bool = False
    is_short: bool = True
    without: frozenset[str] = field(default_factory=frozenset)

    def explored(self) -> Exploration:
        """Explore it.

        Raises:
            RuntimeError: TLC could not read or evaluate the model.
        """
        return explore(self.module, *self.texts(), is_short=self.is_short)

    def texts(self) -> tuple[Sequence[str], str]:
        """The lines of TLA+ that its cfg file refers to, and the text of that file."""
        kept = sorted(guards(self.module) - self.without)
        named = ", ".join(f'"{guard}"' for guard in kept)
        lines = [constants({**self.values, "Guards": f"{{{named}}}"})]
        lines.append(f"SPECIFICATION {'FairSpec' if self.is_live else 'Spec'}\n")
        lines += [f"INVARIANT {name}\n" for name in SAFETY[self.module]]
        lines += [f"PROPERTY {name}\n" for name in STAYS.get(self.module, ())]
        lines += [f"PROPERTY {LIVENESS[self.module]}\n"] if self.is_live else []
        definitions = []
        if self.alike:
            permutations = " \\union ".join(f"Permutations({name})" for name in self.alike)
            definitions = [f"Symmetry == {permutations}"]
            lines.append("SYMMETRY Symmetry\n")
        return definitions, "".join(lines)

    def lacking(self, *left_out: str) -> "Configuration":
        """The same without some guards."""
        return replace(self, without=self.without | set(left_out))


def guards(module: str) -> frozenset[str]:
    """The guards of a module, as its text names them."""
    return frozenset(re.findall(r'Has\("([^"]+)"\)', (SPEC / f"{module}.tla").read_text()))


def _claims(name: str, files: str, builders: str, planners: str, ids: int, stops: int, **how: bool) -> Configuration:
    values = {
        "Files": files, "Builders": builders, "Planners": planners, "MaxIds": str(ids), "MaxStops": str(stops),
        "PausesOutliveLeases": "FALSE" if how.get("is_live") else "TRUE",
    }  # fmt: skip
    alike = () if how.get("is_live") else tuple(
        each for each, members in (("Files", files), ("Builders", builders)) if "," in members
    )  # fmt: skip
    return Configuration(module="Claims", name=name, values=values, alike=alike, **how)


def _sealing(name: str, parts: str, ids: int, stops: int, **how: bool) -> Configuration:
    values = {
        "Parts": parts, "Sealers": "{s1, s2}", "MaxIds": str(ids), "MaxStops": str(stops),
        "PausesOutliveLeases": "FALSE" if how.get("is_live") else "TRUE",
    }  # fmt: skip
    return Configuration(
        module="Sealing", name=name, values=values, alike=() if how.get("is_live") else ("Sealers",), **how
    )


def _change(name: str, *, stops: int, without: Mapping[str, str] | None = None, **how: Any) -> Configuration:
    """One of `Change`.

    Args:
        name: Tells it from others.
        stops: How often processes may stop.
        without: Constants that differ from those of a single process of nothing.
        how: Further fields of the configuration.
    """
    values = {
        "Drivers": "{}", "Rebuilders": "{}", "Expirers": "{}", "Readers": "{}", "IsDone": "FALSE", "MaxAttempts": "2",
        "MaxGenerations": "1", "MaxDamages": "0", "InPlace": "{}", "IsLaidAnew": "FALSE", "LateCopies": "FALSE",
        "Tidying": "FALSE", "Cleans": "TRUE", "Rule": '"retired"', "MaxStops": str(stops), **(without or {}),
    }  # fmt: skip
    processes = ("Drivers", "Rebuilders", "Expirers")
    alike = () if how.get("is_live") else tuple(each for each in processes if "," in values[each])
    return Configuration(module="Change", name=name, values=values, alike=alike, **how)


def _commit(name: str, drivers: str, attempts: int, stops: int, *, in_place: str = "{}", **how: Any) -> Configuration:
    """The first change of a manifest."""
    values = {"Drivers": drivers, "MaxAttempts": str(attempts), "InPlace": in_place}
    return _change(name, stops=stops, without=values, **how)


def first_change(drivers: str, attempts: int, stops: int) -> Configuration:
    """Drivers that take in, compact and finish a manifest, beside a cleaner."""
    return _commit("as recorded", drivers, attempts, stops)


def _rebuild(
    name: str, rebuilders: str, attempts: int, stops: int, *, drivers: str = "{d1}", **how: Any
) -> Configuration:
    """A change that makes lost rows again; further constants by their names."""
    values = {
        "Drivers": drivers, "Rebuilders": rebuilders, "IsDone": "TRUE", "MaxAttempts": str(attempts),
        "MaxGenerations": "2", "MaxDamages": "1", "IsLaidAnew": "TRUE", "Tidying": "TRUE",
        **{key: how.pop(key) for key in list(how) if key[0].isupper()},
    }  # fmt: skip
    return _change(name, stops=stops, without=values, **how)


def _expiring(
    name: str, rule: str, *, expirers: str = "{e1}", readers: str = "{v1}", drivers: str = "{}", **how: Any
) -> Configuration:
    """A change that removes what a rule takes, beside one that makes lost rows again."""
    values = {
        "Drivers": drivers, "Rebuilders": "{r1}", "Expirers": expirers, "Readers": readers, "IsDone": "TRUE",
        # One stops, one gives up as its files expire, and one goes on.
        "MaxAttempts": "2" if drivers != "{}" else "4" if how.get("is_live") else "3", "MaxGenerations": "2",
        "MaxDamages": "1" if drivers != "{}" else "2", "Cleans": "FALSE", "Rule": f'"{rule}"',
    }  # fmt: skip
    return _change(name, stops=0 if drivers != "{}" else 1, without=values, **how)


def _redrive(name: str, kind: str, things: str, number: int, stops: int, **how: bool) -> Configuration:
    values = {
        "Kind": f'"{kind}"', "Things": things, "Redrivers": "{r1, r2}", "MaxNumber": str(number),
        "MaxStops": str(stops), "PausesOutliveLeases": "FALSE" if how.get("is_live") else "TRUE",
    }  # fmt: skip
    alike = () if how.get("is_live") else ("Redrivers", *(("Things",) if "," in things else ()))
    return Configuration(module="Redrive", name=name, values=values, alike=alike, **how)


def _closing(
    name: str,
    manifests: str,
    generations: int,
    closers: str,
    *,
    readers: str = "{r1}",
    unmarked: str = "{}",
    letters: str = "{}",
    second: str = "{}",
    **how: bool,
) -> Configuration:
    values = {
        "Manifests": manifests, "Unmarked": unmarked, "Letters": letters, "Second": second,
        "MaxGenerations": str(generations), "Closers": closers, "Readers": readers,
        "MayStop": "FALSE" if how.get("is_live") else "TRUE",
    }  # fmt: skip
    alike = () if how.get("is_live") or "," not in closers else ("Closers",)
    return Configuration(module="Closing", name=name, values=values, alike=alike, **how)


def _shards(story: str, *, ascending: bool = True, wrong: int = 0, **how: bool) -> Configuration:
    values = {"Story": f'"{story}"', "Ascending": str(ascending).upper(), "MaxWrong": str(wrong)}
    return Configuration(module="Shards", name=story, values=values, **how)


def _table(
    name: str,
    manifests: str,
    drivers: str,
    stops: int,
    snapshots: int = 4,
    *,
    bad: str = "{}",
    batches: int = 0,
    **how: bool,
) -> Configuration:
    values = {
        "Manifests": manifests, "Bad": bad, "Drivers": drivers, "MaxBatches": str(batches or manifests.count("m")),
        "MaxSnapshots": str(snapshots), "MaxStops": str(stops),
    }  # fmt: skip
    groups = (("Manifests", manifests), ("Drivers", drivers))
    alike = () if how.get("is_live") else tuple(each for each, members in groups if "," in members)
    if bad not in {"{}", manifests}:
        alike = tuple(each for each in alike if each != "Manifests")
    return Configuration(module="Table", name=name, values=values, alike=alike, **how)


def _merging(
    name: str,
    mergers: str,
    merges: int,
    batches: int,
    stops: int,
    *,
    manifests: str = "{m1, m2}",
    removes: str = "FALSE",
    **how: bool,
) -> Configuration:
    values = {
        "Manifests": manifests, "Mergers": mergers, "MaxMerges": str(merges), "MaxBatches": str(batches),
        "MaxStops": str(stops), "Removes": removes,
    }  # fmt: skip
    alike = () if how.get("is_live") else ("Manifests", *(("Mergers",) if "," in mergers else ()))
    return Configuration(module="Merging", name=name, values=values, alike=alike, **how)


def _landing(
    name: str,
    planners: str,
    offsets: int,
    ids: int,
    stops: int,
    *,
    partitions: str = "{k1}",
    topics: int = 1,
    forged: str = "FALSE",
    **how: bool,
) -> Configuration:
    values = {
        "Partitions": partitions, "Planners": planners, "MaxOffset": str(offsets), "MaxTopics": str(topics),
        "MaxIds": str(ids), "MaxStops": str(stops), "MayForge": forged,
    }  # fmt: skip
    groups = (("Planners", planners), ("Partitions", partitions))
    alike = () if how.get("is_live") else tuple(each for each, members in groups if "," in members)
    return Configuration(module="Landing", name=name, values=values, alike=alike, **how)


SMALL = (
    _claims("a builder and a planner", "{f1}", "{b1}", "{p1}", 3, 1),
    _sealing("two sealers", "{1}", 3, 1),
    _commit("one driver, and its end", "{d1}", 2, 2, is_live=True),
    _redrive("of files", "files", "{t1}", 2, 1),
    _closing("beside a rebuild and a reader", "{m1}", 2, "{c1}", unmarked="{m1}"),
    _shards("one goes"),
    _table("two drivers", "{m1}", "{d1, d2}", 1),
    _merging("two mergers", "{p1, p2}", 2, 3, 1),
    _landing("two planners", "{c1, c2}", 1, 2, 1),
)
"""Part of `make test`, so they have to be cheap: starting Java is most of it."""

MEDIUM = (
    _claims("the end of each file", "{f1}", "{b1, b2}", "{}", 3, 1, is_live=True),
    _sealing("the end of each part", "{1}", 3, 1, is_live=True),
    _commit("two drivers", "{d1, d2}", 2, 0),
    _commit("one driver in place, and its end", "{d1}", 2, 1, in_place="{2}", is_live=True),
    _commit("two drivers in place", "{d1, d2}", 2, 0, in_place="{2}"),
    _rebuild("a rebuild beside a late driver, and its end", "{r1}", 2, 0, is_live=True),
    _redrive("the end of each file", "files", "{t1}", 2, 1, is_live=True),
    _redrive("of lines", "lines", "{t1}", 2, 1),
    _closing("beside a driver and a reader", "{m1}", 1, "{c1}"),
    _closing(
        "a redriven dead letter",
        "{m1, m2}",
        1,
        "{c1}",
        letters="{m1}",
        second="{m2}",
        unmarked="{m1, m2}",
        readers="{}",
    ),
    _closing("the end of each manifest", "{m1}", 1, "{c1}", readers="{}", is_live=True),
    _shards("one goes", is_live=True),
    _expiring("a date, beside a rebuild and a reader", "retired"),
    _expiring("a date, beside a late driver as well", "retired", drivers="{d1}"),
    _expiring("the end of a date", "retired", readers="{}", is_live=True),
    _expiring("the end of rejects", "rejects", readers="{}", is_live=True),
    _table("the end of each manifest", "{m1}", "{d1, d2}", 1, is_live=True),
    _table("two drivers of two manifests", "{m1, m2}", "{d1, d2}", 0, 3),
    _table("a manifest that the catalog refuses", "{m1}", "{d1, d2}", 1, bad="{m1}", batches=2),
    _table("a refused manifest beside another", "{m1, m2}", "{d1}", 0, bad="{m1}", batches=3, is_live=True),
    _merging("what is on record takes effect", "{p1}", 2, 3, 1, is_live=True),
    _merging("files that were merged are removed", "{p1}", 2, 4, 1, removes="TRUE"),
    _merging("one merger, and a table that is lost", "{p1}", 2, 4, 1),
    _landing("two planners of two offsets", "{c1, c2}", 2, 2, 0),
    _landing("retention", "{c1}", 2, 2, 0),
    _landing("a topic made again, and the end of each offset", "{c1}", 1, 2, 0, topics=2, is_live=True),
    _landing("a lost manifest, and the end of each offset", "{c1}", 1, 2, 1, is_live=True),
    _landing("a copied manifest", "{c1}", 1, 2, 0, forged="TRUE"),
)
"""Beside the small ones, part of `make spec`."""

LARGE = (
    _claims("three claimants of one file", "{f1}", "{b1, b2}", "{p1}", 4, 2, is_short=False),
    _claims("two files", "{f1, f2}", "{b1, b2}", "{}", 3, 1, is_short=False),
    _sealing("two parts", "{1, 2}", 3, 1, is_short=False),
    _commit("two drivers, three attempts", "{d1, d2}", 3, 1, is_short=False),
    _commit("two drivers in place, and their ends", "{d1, d2}", 2, 1, in_place="{2}", is_short=False),
    _rebuild("two rebuilds beside a late driver", "{r1, r2}", 3, 0, Tidying="FALSE", is_short=False),
    _rebuild("a rebuild, and one that clears up", "{r1, r2}", 2, 0, is_short=False),
    _redrive("of two files", "files", "{t1, t2}", 3, 2, is_short=False),
    _redrive("of two lines", "lines", "{t1, t2}", 3, 2, is_short=False),
    _closing("beside a driver, a rebuild and a reader", "{m1}", 2, "{c1}", is_short=False),
    _closing("two closers and a reader", "{m1}", 1, "{c1, c2}", is_short=False),
    _closing("two closers of two dates", "{m1, m2}", 1, "{c1, c2}", second="{m2}", unmarked="{m1, m2}", readers="{}"),
    _shards("one goes", wrong=1, is_short=False),
    _shards("one goes", ascending=False, is_live=True),
    _shards("one is replaced", is_live=True),
    _shards("their number grows", is_live=True),
    _shards("one without a shard becomes two"),
    _expiring("rejects, beside a rebuild and a reader", "rejects", is_short=False),
    _expiring("a date, by two processes", "retired", expirers="{e1, e2}", readers="{}", is_short=False),
    _expiring("rejects, by two processes", "rejects", expirers="{e1, e2}", readers="{}", is_short=False),
    _table("three drivers", "{m1}", "{d1, d2, d3}", 2, 5, is_short=False),
    _table("two drivers of two manifests, and their ends", "{m1, m2}", "{d1, d2}", 1, is_short=False),
    _table(
        "two drivers, a refused manifest and another", "{m1, m2}", "{d1, d2}", 0, bad="{m1}", batches=3, is_short=False
    ),
    _merging("two mergers and four batches", "{p1, p2}", 2, 4, 1, is_short=False),
    _merging("two mergers beside a removal", "{p1, p2}", 2, 4, 1, removes="TRUE", is_short=False),
    _merging("merges of what was left beside a removal", "{p1}", 3, 5, 1, removes="TRUE", is_short=False),
    _merging("a removal of three files", "{p1}", 2, 4, 0, manifests="{m1, m2, m3}", removes="TRUE", is_short=False),
    _landing("two planners, three manifests", "{c1, c2}", 2, 3, 1, is_short=False),
    _landing("a lost manifest, and a topic made again", "{c1}", 1, 2, 1, topics=2, is_live=True),
    _landing("three planners", "{c1, c2, c3}", 1, 2, 1, is_short=False),
    _landing("two planners of two partitions", "{c1, c2}", 1, 2, 1, partitions="{k1, k2}", is_short=False),
    _landing("two planners, a topic made again", "{c1, c2}", 1, 2, 1, topics=2, is_short=False),
    _landing("three offsets", "{c1}", 3, 3, 1, is_short=False),
)
"""Explored by `make spec-full` only."""

ASSUMED = _rebuild("with copies that outlive their drivers", "{r1}", 2, 1, LateCopies="TRUE")
"""What the model does not hold without: see spec/README.md."""

_GUARDS_OF: dict[str, tuple[Configuration, ...]] = {
    "Claims": (SMALL[0], _claims("two files", "{f1, f2}", "{b1, b2}", "{}", 3, 1)),
    "Sealing": (SMALL[1], _sealing("two parts", "{1, 2}", 3, 1)),
    "Change": (
        _commit("one driver", "{d1}", 2, 1),
        _commit("one driver in place", "{d1}", 2, 1, in_place="{2}"),
        _rebuild("two rebuilds", "{r1, r2}", 3, 0, drivers="{}"),
        _rebuild("beside a late driver", "{r1}", 2, 1),
        _expiring("the end of a date", "retired", readers="{}", is_live=True),
        _expiring("the end of rejects", "rejects", readers="{}", is_live=True),
        _expiring("a date, beside a rebuild and a reader", "retired"),
        _expiring("a date, beside a late driver as well", "retired", drivers="{d1}"),
        _commit("two drivers", "{d1, d2}", 2, 1),
    ),
    "Redrive": (_redrive("of files", "files", "{t1}", 2, 1), _redrive("of lines", "lines", "{t1}", 2, 1)),
    "Closing": (
        _closing("a rebuild", "{m1}", 2, "{c1}", unmarked="{m1}"),
        _closing("one closer", "{m1}", 1, "{c1}"),
        _closing(
            "a dead letter", "{m1, m2}", 1, "{c1}", letters="{m1}", second="{m2}", unmarked="{m1, m2}", readers="{}"
        ),
        _closing("two closers", "{m1}", 1, "{c1, c2}", readers="{}"),
        _closing("two dates", "{m1, m2}", 1, "{c1, c2}", second="{m2}", unmarked="{m1, m2}", readers="{}"),
    ),
    "Shards": (
        _shards("one goes", is_live=True),
        _shards("one is replaced"),
        _shards("one without a shard becomes two"),
    ),
    "Table": (
        _table("two drivers", "{m1}", "{d1, d2}", 1),
        _table("a refused manifest beside another", "{m1, m2}", "{d1}", 0, bad="{m1}", batches=3, is_live=True),
        _table("a refused manifest", "{m1}", "{d1, d2}", 1, bad="{m1}", batches=2),
        _table("two drivers of two manifests", "{m1, m2}", "{d1, d2}", 0, 3),
        _table("two drivers of two manifests, and their ends", "{m1, m2}", "{d1, d2}", 1, 3),
    ),
    "Merging": (
        _merging("files that were merged are removed", "{p1}", 2, 4, 1, removes="TRUE"),
        _merging("two mergers", "{p1, p2}", 2, 3, 1),
        _merging("a removal of three files", "{p1}", 2, 4, 0, manifests="{m1, m2, m3}", removes="TRUE"),
    ),
    "Landing": (
        _landing("a copied manifest", "{c1}", 1, 2, 0, forged="TRUE"),
        _landing("retention", "{c1}", 2, 2, 0),
        _landing("two planners of two partitions", "{c1, c2}", 1, 2, 0, partitions="{k1, k2}"),
        _landing("the end of each offset", "{c1}", 1, 2, 1, topics=2, is_live=True),
        _landing("two planners, three manifests", "{c1, c2}", 2, 3, 0),
    ),
}


@dataclass(frozen=True, slots=True)
class Trial:
    """A guard that was taken out of the model, and the property that then does not hold; empty if all do."""

    module: str
    guard: str
    violated: str
    states: int


def tried(module: str, guard: str) -> Trial:
    """Take a guard out, and explore the configurations of its module until one shows what it is for."""
    states = 0
    for configuration in _GUARDS_OF[module]:
        found = configuration.lacking(guard).explored()
        states = found.states
        if found.violated:
            return Trial(module, guard, found.violated, states)
    return Trial(module, guard, "", states)


def all_guards() -> Iterable[tuple[str, str]]:
    """Every guard with its module."""
    return ((module, guard) for module in SAFETY for guard in sorted(guards(module)))
