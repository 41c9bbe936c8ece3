"""Named files that are not what they should be: changed, deleted, refused, links, devices, strange names and sizes."""

import os
from collections.abc import Callable
from pathlib import Path

from compactor.core.documents.manifest import ManifestFile
from compactor.core.errors import AccessError
from compactor.core.ports import ObjectStore
from tests.hostile.attack import MIB, Attack, Seen
from tests.hostile.payloads import LINE
from tests.hostile.scene import ATTACK, Scene
from tests.support.fakes import FaultyStore

_SECRET = b'{"secret": "of another place"}\n'


def _statuses(status: str, count: int = 1) -> Seen:
    return Seen(statuses={status: count})


class _Refusing(FaultyStore):
    """Refuses all of the attacker's input, and its manifest as well if told so."""

    def __init__(self, store: ObjectStore, *, manifest: bool = False) -> None:
        super().__init__(store)
        self._names = ("attack.json",) if manifest else ("attack.ndjson", "friend.ndjson")

    def _call(self, method, uri, work):  # type: ignore[no-untyped-def]
        name = uri.rsplit("/", 1)[-1]
        if method.startswith("read") and name in self._names and "/state/" not in uri:
            raise AccessError(f"{uri}: 403 AccessDenied")
        return super()._call(method, uri, work)


class _Replacing(FaultyStore):
    """Replaces the attacker's file whenever a later part of it is about to be read."""

    def read_range(self, uri: str, start: int, length: int, *, etag: str | None = None) -> bytes:
        if start and uri.endswith("/attack.ndjson"):
            self._store.put(uri, LINE * (start % 1000 + 1))
        return super().read_range(uri, start, length, etag=etag)


def of_place(name: str, make: Callable[[Scene], object], expected: Seen, *, quick: bool = False) -> Attack:
    """An attack by what stands where a manifest says."""
    return Attack(name=name, kind="inputs", make=make, expected=expected, quick=quick)  # type: ignore[arg-type]


def _one(scene: Scene, content: bytes = LINE) -> ManifestFile:
    return scene.named(scene.write("attack.ndjson", content))


def _deleted(scene: Scene) -> None:
    file = _one(scene)
    Path(file.uri).unlink()
    scene.deliver_attack([], [file])


def _all_deleted(scene: Scene) -> None:
    file = _one(scene)
    Path(file.uri).unlink()
    scene.deliver(ATTACK, [file])


def _changed(scene: Scene) -> None:
    file = _one(scene)
    scene.write("attack.ndjson", LINE * 2)
    scene.deliver_attack([], [file])


def _size(size_bytes: int) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        scene.deliver_attack([], [ManifestFile(uri=_one(scene).uri, size_bytes=size_bytes)])

    return make


def _size_with_etag(scene: Scene) -> None:
    """The version is the one that is named, so its size does not matter."""
    scene.deliver_attack([], [_one(scene).model_copy(update={"size_bytes": 2**62})])


def _folder(scene: Scene) -> None:
    (scene.raw / "attack.ndjson").mkdir()
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _link(scene: Scene) -> None:
    (scene.root / "secret.ndjson").write_bytes(_SECRET)
    (scene.raw / "attack.ndjson").symlink_to(scene.root / "secret.ndjson")
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _linked_folder(scene: Scene) -> None:
    (scene.root / "secrets").mkdir()
    (scene.root / "secrets" / "secret.ndjson").write_bytes(_SECRET)
    (scene.raw / "attack").symlink_to(scene.root / "secrets")
    scene.deliver_attack([str(scene.raw / "attack" / "secret.ndjson")])


def _link_loop(scene: Scene) -> None:
    (scene.raw / "attack.ndjson").symlink_to(scene.raw / "attack.ndjson")
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _pipe(scene: Scene) -> None:
    os.mkfifo(scene.raw / "attack.ndjson")
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _device(scene: Scene) -> None:
    """A link to the device; below the prefix only root could make one."""
    (scene.raw / "attack.ndjson").symlink_to("/dev/zero")
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _sparse(scene: Scene) -> None:
    with (scene.raw / "attack.ndjson").open("wb") as file:
        file.truncate(1 << 40)
    scene.deliver_attack([str(scene.raw / "attack.ndjson")])


def _name(name: str) -> Callable[[Scene], None]:
    def make(scene: Scene) -> None:
        scene.deliver_attack([], [scene.named(scene.write(name, LINE))])

    return make


def _strange_names(scene: Scene) -> None:
    names = [
        *(
            "a\x1b]0;x\x07",
            "a\nnext: rm -rf",
            "$(id)",
            "`id`",
            "a'b\"c",
            "*",
            "?",
            "[a]",
            "{b}",
            "a b",
            "%2e%2e",
            "a+b",
        ),
        *(
            "\u202egpj.elif",
            "\x9b2J",
            "_a",
            ".a",
            "a:b",
            "a\\b",
            "-rf",
            "e\u0301",
            "\U0001f600",
            "a" * 200,
            "~",
            "#",
            "a,b",
        ),
    ]
    scene.deliver_attack([], [scene.named(scene.write(f"{name}.ndjson", LINE)) for name in names])


def _undecodable_manifest(scene: Scene) -> None:
    scene.put_manifest(b"attack-\xff.json", b"{}")


def _good(scene: Scene) -> None:
    scene.deliver_attack([_one(scene).uri])


def _twice(scene: Scene) -> None:
    """The same version in two manifests."""
    file = _one(scene)
    for number in (1, 2):
        scene.deliver(f"{ATTACK}-{number}", [file])


_COMPACTED = Seen(statuses={"compacted": 1}, rows=1)

ATTACKS = (
    of_place("deleted-file", _deleted, _statuses("missing"), quick=True),
    of_place("nothing-but-deleted-files", _all_deleted, _statuses("missing")),
    of_place("changed-file", _changed, _statuses("changed")),
    of_place("wrong-size", _size(7), _statuses("changed")),
    of_place("size-of-4-eib", _size(2**62), _statuses("changed")),
    of_place("size-of-4-eib-with-etag", _size_with_etag, _COMPACTED),
    of_place("folder-as-file", _folder, _statuses("missing")),
    of_place("link-out-of-the-prefix", _link, _statuses("forbidden")),
    of_place("linked-folder", _linked_folder, _statuses("forbidden")),
    of_place("link-to-itself", _link_loop, _statuses("missing")),
    of_place("named-pipe", _pipe, _statuses("missing")),
    of_place("link-to-a-device", _device, _statuses("forbidden")),
    of_place("sparse-file-of-1-tib", _sparse, _statuses("not_ndjson")),
    of_place("strange-names", _strange_names, Seen(statuses={"compacted": 25}, rows=25)),
    of_place("long-name", _name("a" * 240 + ".ndjson"), _COMPACTED),
    of_place("deep-folder", _name("d/" * 500 + "a.ndjson"), _COMPACTED),
    of_place("manifest-name-that-is-no-text", _undecodable_manifest, Seen(stuck=1)),
    of_place("file-in-two-manifests", _twice, Seen(statuses={"compacted": 2}, rows=2, discrepancies=1)),
    Attack(
        name="refused-files",
        kind="inputs",
        make=_good,
        expected=Seen(letters={"forbidden": 1}),
        store=_Refusing,
        engines=("native",),
        quick=True,
    ),
    Attack(
        name="refused-manifest",
        kind="inputs",
        make=_good,
        expected=Seen(stuck=1),
        store=lambda store: _Refusing(store, manifest=True),
        engines=("native",),
    ),
    Attack(
        name="file-replaced-while-it-is-read",
        kind="inputs",
        make=lambda scene: scene.deliver_attack([], [_one(scene, LINE * (20 * MIB // len(LINE)))]),
        expected=_statuses("changed"),
        store=_Replacing,
        engines=("native",),
    ),
)
