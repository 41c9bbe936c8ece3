"""The search for cliffs: what counts as one, that a planted one is found, and that shapes are what they are called."""

import random
import shutil
from itertools import islice
from pathlib import Path

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.cliffs.lines import blocks, schema_file
from bench.cliffs.meter import EngineMeter, Limits, ShapeFailed
from bench.cliffs.named import NAMED, Named, keep, named_shapes
from bench.cliffs.points import DIMENSIONS, LEVELS, ORDERED, Point, random_point
from bench.cliffs.rule import GROWTH_LIMIT, exponent, growth
from bench.cliffs.search import REPEATS, Cliff, Search
from bench.cliffs.table import lines
from bench.shapes import Written
from tests.support.extras import NATIVE

SIZES = (10, 40, 160)
POINTS = st.integers(0, 2**32).map(lambda seed: random_point(random.Random(seed)))
SECONDS = st.floats(0.01, 1000)


class FakeMeter:
    """Costs a second a byte, times `cost` of the shape and size; `noise` gives the factors of the measurements."""

    def __init__(self, cost, noise=lambda: 1.0):
        self.cost, self.noise, self.asked = cost, noise, []

    def seconds(self, point, total_bytes):
        self.asked.append((point, total_bytes))
        factor = self.cost(point, total_bytes)
        if factor is None:
            raise ShapeFailed("it died")
        return total_bytes * factor * self.noise()

    def start(self, files):
        return self.cost(files, files) * files


def searched(meter: FakeMeter, steps: int = 600, seed: int = 7) -> Search:
    """A search of so many measurements."""
    search = Search(meter, SIZES, floor_seconds=0.001)
    search.run(random.Random(seed), lambda: len(meter.asked) >= steps)
    return search


def test_what_costs_the_same_everywhere_has_no_cliff() -> None:
    """Every shape costs the same a byte, at any size: nothing is measured twice."""
    meter = FakeMeter(lambda _point, _size: 1.0)
    assert searched(meter).cliffs == []
    assert len(set(meter.asked)) == len(meter.asked) >= 600


@pytest.mark.parametrize(
    ("cost", "where"),
    [
        (lambda point, size: size / 10 if point.mix == "escape in 30 %" else 1.0, ("mix", "escape in 30 %")),
        (lambda point, _: 5.0 if point.keys == 2000 else 1.0, ("keys", 2000)),
        (lambda point, _: None if point.codec == "zstd" else 1.0, ("codec", "zstd")),
    ],
    ids=["quadratic", "steep", "fails"],
)
def test_a_planted_cliff_is_found(cost, where) -> None:
    """A quadratic shape that is cheap at the first size, one that is steep at any, and one that kills the engine."""
    search = searched(FakeMeter(cost))
    assert search.cliffs
    assert all(getattr(cliff.point, where[0]) == where[1] for cliff in search.cliffs)


def test_noise_is_no_cliff() -> None:
    """One measurement of ten takes twenty times as long; none is believed before it was repeated."""
    luck = random.Random(1)
    meter = FakeMeter(lambda _point, _size: 1.0, lambda: 20.0 if luck.random() < 0.1 else 1.0)
    found = searched(meter).cliffs
    assert len(found) <= 2  # three of three by bad luck
    assert len(meter.asked) > len(set(meter.asked))


def test_a_named_shape_is_measured_at_all_sizes() -> None:
    """Also where no time is left, and again as often as is promised if it grows."""
    quadratic = Point(keys=200)
    meter = FakeMeter(lambda point, size: size if point == quadratic else 1.0)
    search = Search(meter, SIZES, floor_seconds=0.001)
    search.known([(Point(), ""), (quadratic, "")])
    assert [cliff.point for cliff in search.cliffs] == [quadratic]
    assert search.cliffs[0].why == "a byte costs 4.00 times as much at four times the size; power 2.00"
    asked = [meter.asked.count((point, size)) for point in (Point(), quadratic) for size in SIZES]
    assert asked == [1, 1, 1, 1 + REPEATS, 1 + REPEATS, 1 + REPEATS]


def test_a_named_shape_is_measured_beside_its_neighbours() -> None:
    """It is found again without any search, where it is steep."""
    steep = Point(keys=200)
    search = Search(FakeMeter(lambda point, _: 5.0 if point == steep else 1.0), SIZES, floor_seconds=0.001)
    search.known([(steep, "keys")])
    assert [(cliff.point, cliff.why, cliff.beside) for cliff in search.cliffs] == [
        (steep, "5.0 times the median of those with keys = 20, 700", "keys")
    ]


@pytest.mark.parametrize(("power", "found"), [(0.0, 0), (1.0, 1)])
def test_files_of_one_line(power, found) -> None:
    """Each costs the same among four times as many, or is a cliff."""
    search = Search(FakeMeter(lambda files, _: files**power), SIZES, floor_seconds=0.001)
    search.files([64, 256, 1024])
    assert len(search.cliffs) == found
    assert " ".join(lines("native", search, 1)[-1].split()).startswith("a file of one line: ")


@given(power=st.floats(0.2, 3), unit=st.floats(0.001, 100))
def test_what_grows_faster_than_linear(power, unit) -> None:
    """The power is found, and the limit is where a byte costs a third more at four times the size."""
    seconds = {size: unit * size**power for size in SIZES}
    assert exponent(seconds, 1e-9) == pytest.approx(power)
    assert growth(seconds, 1e-9) == pytest.approx(4 ** (power - 1))
    if abs(power - 1.2075) > 0.001:
        assert (growth(seconds, 1e-9) > GROWTH_LIMIT) == (power > 1.2075)


@given(point=POINTS, dimension=st.sampled_from(DIMENSIONS))
def test_neighbours_differ_in_one_dimension(point, dimension) -> None:
    """They are neighbours of each other; levels that are ordered differ by one."""
    for near in point.neighbours(dimension):
        assert near.is_valid()
        assert point in near.neighbours(dimension)
        assert [name for name in DIMENSIONS if getattr(near, name) != getattr(point, name)] == [dimension]
        if dimension in ORDERED:
            levels = LEVELS[dimension]
            assert abs(levels.index(getattr(near, dimension)) - levels.index(getattr(point, dimension))) == 1


@pytest.mark.parametrize("dimension", DIMENSIONS)
def test_every_level_is_reached(dimension) -> None:
    """By some random point: a level that is never valid is searched never."""
    rng = random.Random(3)
    assert {getattr(random_point(rng), dimension) for _ in range(3000)} == set(LEVELS[dimension])


VARIED = [
    Point(),
    Point(keys=200, present="four", characters=4),
    Point(present="half", order="shuffled", kind="any", mix="all of these"),
    Point(kind="nested", levels=900, keys=2),
    Point(mix="escapes throughout", distinct="hundred"),
    Point(kind="number", mix="other kind in 30 %", columns="typed", distinct="one"),
    Point(kind="time", mix="null in 30 %"),
    Point(kind="boolean", columns="typed"),
    Point(characters=30_000),
]


@pytest.mark.parametrize("point", VARIED, ids=lambda point: point.name)
def test_lines_are_of_the_shape(point) -> None:
    """Each is an object of the keys of its point; the same seed gives the same lines, and no block repeats."""
    made = list(islice(blocks(point, 7), 2))
    assert made == list(islice(blocks(point, 7), 2)) != list(islice(blocks(point, 8), 2))
    objects = [orjson.loads(line) for block in made for line in block.splitlines()]
    assert {len(each) for each in objects} == {point.keys_of_a_line}
    assert len(set().union(*objects)) <= point.keys
    values = [value for each in objects for value in each.values()]
    texts = [value for value in values if isinstance(value, str)]
    if point.kind == "text" and point.mix == "plain":
        assert {len(text) for text in texts} == {point.characters}
    if point.mix == "null in 30 %":
        assert 0.25 < values.count(None) / len(values) < 0.35
    if point.mix == "escapes throughout":
        assert 0.4 < sum('"' in text for text in texts) / len(texts) < 0.6
    if point.columns == "typed":
        assert schema_file(point).count("[[columns]]") == point.keys
    assert (len({frozenset(each) for each in objects}) == 1) is (point.present == "all")
    assert (len({tuple(each) for each in objects}) == 1) is (point.present == "all" and point.order == "same")


def test_some_lines_are_no_json() -> None:
    """As many percent as the point says."""
    lines = next(blocks(Point(rejects=20), 7)).splitlines()
    broken = sum(line.endswith(b"} no JSON") for line in lines)
    assert 0.1 < broken / len(lines) < 0.3
    with pytest.raises(orjson.JSONDecodeError):
        orjson.loads(next(line for line in lines if line.endswith(b"} no JSON")))


def test_named_shapes_are_kept(tmp_path) -> None:
    """Those that are named are shapes, the plain log first; one that is found is added once, and read again."""
    assert next(iter(named_shapes().values())) == Named(Point())
    file = tmp_path / "named.toml"
    shutil.copy(NAMED, file)
    found = Cliff(Point(keys=700, order="shuffled", rejects=1), "why", "order")
    assert [keep(cliff, file) for cliff in (found, found, Cliff(Point(), "why"))] == [True, False, False]
    assert named_shapes(file) == {**named_shapes(), found.point.name: Named(found.point, "order")}
    file.write_text('[[shapes]]\nname = "odd"\nkeys = 3\n')
    with pytest.raises(ValueError, match=r"odd: expected levels of bench/cliffs/points.py, found \{'keys': 3\}"):
        named_shapes(file)


@NATIVE.needed
def test_the_native_engine_is_measured(tmp_path: Path) -> None:
    """Without what any input costs; lines that are lost, and too long a time, are failures."""
    with EngineMeter("native", tmp_path, 7, Limits(seconds=60, files=20), tmp_path / "log") as meter:
        assert 0 < meter.seconds(Point(columns="typed", kind="number", rejects=1), 2_000_000) < 60
        assert 0 < meter.start(2) < 60
        folder = tmp_path / "given" / "short"
        folder.mkdir()
        (folder / "a.ndjson").write_bytes(b'{"a":1}\n' * 8)
        with pytest.raises(ShapeFailed, match=r"native, plain log: made 8 rows and rejects of 9 lines"):
            meter.converted(Written(folder, 1, 9, 72, 72), Point())
        meter.limits = Limits(seconds=0.001, files=20)
        with pytest.raises(ShapeFailed, match=r"native: it took over 0 s"):
            meter.seconds(Point(), 2_000_000)
    assert not (tmp_path / "given").exists()
