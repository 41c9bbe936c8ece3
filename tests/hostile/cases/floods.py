"""Floods: so many small manifests, dates or refusals that others could have to wait for them."""

from collections.abc import Callable
from datetime import date

from compactor.wiring import finding
from tests.hostile.attack import Attack, Seen
from tests.hostile.payloads import LINE
from tests.hostile.scene import ATTACK, Scene

MANIFESTS = 500
KEY_MANIFESTS = 100


def _tiny_manifests(scene: Scene) -> None:
    for number in range(MANIFESTS):
        name = f"{ATTACK}-{number:04}"
        scene.deliver(name, [scene.named(scene.write(f"{name}.ndjson", LINE))])


def _bad_manifests(scene: Scene) -> None:
    for number in range(MANIFESTS):
        scene.put_manifest(f"{ATTACK}-{number:04}.json", b"no json")


def _tiny_files(scene: Scene) -> None:
    scene.deliver(
        ATTACK, [scene.named(scene.write(f"{ATTACK}-{number:04}.ndjson", LINE)) for number in range(10 * MANIFESTS)]
    )


def _missing_files(scene: Scene) -> None:
    scene.deliver_attack([str(scene.raw / f"no-{number}") for number in range(2 * MANIFESTS)])


def _dates(scene: Scene) -> None:
    """Manifests of as many dates, most of them wrong."""
    for number in range(MANIFESTS):
        name = f"{ATTACK}-{number:04}"
        uri = scene.write(f"{name}.ndjson", LINE)
        scene.deliver_document(name, date=f"{1000 + 17 * number:04}-01-01", files=[{"uri": uri}])


def _dates_of_a_plan(scene: Scene) -> None:
    """Tiny files with a date each, which become manifests by `plan`, a bounded number at a time."""
    for number in range(MANIFESTS):
        day = date.fromordinal(date(2024, 1, 1).toordinal() + number)
        scene.write(f"{day}-{ATTACK}.ndjson", LINE)
    while finding.plan(scene.app, str(scene.raw), limit=100).left_manifests:
        pass


def _keys(scene: Scene) -> None:
    """Manifests of which each brings keys of its own, until there is no room for columns."""
    for number in range(KEY_MANIFESTS):
        name = f"{ATTACK}-{number:04}"
        keys = ", ".join(f'"k{number}-{key}": 1' for key in range(20))
        scene.deliver(name, [scene.named(scene.write(f"{name}.ndjson", f"{{{keys}}}\n".encode()))])


def _all_bad_lines(scene: Scene) -> None:
    for number in range(MANIFESTS):
        name = f"{ATTACK}-{number:04}"
        scene.deliver(name, [scene.named(scene.write(f"{name}.ndjson", b"x\n" * 100))])


def _flood(name: str, make: Callable[[Scene], None], expected: Seen, *, quick: bool = False) -> Attack:
    """A flood; the neighbours arrive behind all of it."""
    return Attack(name=name, kind="floods", make=make, expected=expected, quick=quick)


_ROW_EACH = Seen(statuses={"compacted": MANIFESTS}, rows=MANIFESTS)

ATTACKS = (
    _flood("tiny-manifests", _tiny_manifests, _ROW_EACH),
    _flood("bad-manifests", _bad_manifests, Seen(letters={"not_json": MANIFESTS})),
    _flood("tiny-files", _tiny_files, Seen(statuses={"compacted": 10 * MANIFESTS}, rows=10 * MANIFESTS)),
    _flood("missing-files", _missing_files, Seen(statuses={"missing": 2 * MANIFESTS}), quick=True),
    _flood("dates", _dates, _ROW_EACH),
    _flood("dates-of-a-plan", _dates_of_a_plan, _ROW_EACH),
    _flood(
        "keys-of-many-manifests",
        _keys,
        Seen(statuses={"compacted": KEY_MANIFESTS}, rows=KEY_MANIFESTS),
    ),
    _flood(
        "rejects-of-many-manifests",
        _all_bad_lines,
        Seen(statuses={"compacted": MANIFESTS}, rejects={"invalid_json": 100 * MANIFESTS}),
    ),
)
