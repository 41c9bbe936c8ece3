"""Manifests that are the attack: no manifests at all, too large ones, and such that name what they may not."""

import orjson

from tests.hostile.attack import MIB, Attack, Seen
from tests.hostile.scene import ATTACK, DAY, Scene


def _letter(reason: str) -> Seen:
    return Seen(letters={reason: 1})


def of_bytes(name: str, data: bytes, reason: str, *, quick: bool = False) -> Attack:
    """A manifest of these bytes, which must become a dead letter."""

    def make(scene: Scene) -> None:
        scene.put_manifest(f"{ATTACK}.json", data)

    return Attack(name=name, kind="manifests", make=make, expected=_letter(reason), quick=quick)


def of_fields(name: str, reason: str, *, quick: bool = False, **fields: object) -> Attack:
    """A manifest that is right but for some fields, and must become a dead letter."""

    def make(scene: Scene) -> None:
        scene.deliver_document(**fields)

    return Attack(name=name, kind="manifests", make=make, expected=_letter(reason), quick=quick)


def of_file(name: str, reason: str, **fields: object) -> Attack:
    """A manifest of one good file, of which it says something else as well."""

    def make(scene: Scene) -> None:
        scene.deliver_document(files=[{"uri": scene.write("attack.ndjson", b'{"id": "a"}\n'), **fields}])

    return Attack(name=name, kind="manifests", make=make, expected=_letter(reason))


def of_uri(name: str, uri: str, reason: str, *, quick: bool = False) -> Attack:
    """A manifest that names a place; `{root}` in it is the folder of everything."""

    def make(scene: Scene) -> None:
        scene.deliver_document(files=[{"uri": uri.format(root=scene.root)}])

    return Attack(name=name, kind="manifests", make=make, expected=_letter(reason), quick=quick)


def _too_big(scene: Scene) -> None:
    with (scene.root / "manifests" / f"{ATTACK}.json").open("wb") as file:
        file.truncate(64 * MIB + 1)


def _named_otherwise(name: str) -> Attack:
    """A manifest under a name that the stream does not take."""

    def make(scene: Scene) -> None:
        uri = scene.write("attack.ndjson", b'{"id": "a"}\n')
        document = {"version": 1, "manifest_id": ATTACK, "date": DAY, "files": [{"uri": uri}]}
        scene.put_manifest(name, orjson.dumps(document))

    reason = "nested" if "/" in name else "hidden_name"
    return Attack(name=f"manifest-{reason}", kind="manifests", make=make, expected=_letter(reason))


def _names_twice(scene: Scene) -> None:
    uri = scene.write("attack.ndjson", b'{"id": "a"}\n')
    scene.deliver_document(files=[{"uri": uri}, {"uri": "file://" + uri}])


def _keys_twice(scene: Scene) -> None:
    uri = scene.write("attack.ndjson", b'{"id": "a"}\n')
    files = orjson.dumps([{"uri": uri}]).decode()
    fields = (
        f'"version": 1, "manifest_id": "x", "manifest_id": "{ATTACK}", "date": "{DAY}", "files": [], "files": {files}'
    )
    text = f"{{{fields}}}"
    scene.put_manifest(f"{ATTACK}.json", text.encode())


def _same_id(scene: Scene) -> None:
    """Two manifests under one id: the first one is accepted, whichever it is."""
    for name in ("one", "two"):
        uri = scene.write(f"{name}.ndjson", b'{"id": "a"}\n')
        document = {"version": 1, "manifest_id": ATTACK, "date": DAY, "files": [{"uri": uri}]}
        scene.put_manifest(f"attack-{name}.json", orjson.dumps(document))


def _short_form(count: int) -> bytes:
    uris = [f"/raw/{number}" for number in range(count)]
    return orjson.dumps({"fileLocations": [{"URIPrefixes": uris}]})


_ONE_ROW = Seen(statuses={"compacted": 1}, rows=1)

_BYTES = (
    of_bytes("manifest-of-bad-json", b"{", "not_json", quick=True),
    of_bytes("manifest-of-blanks", b" \n" * MIB, "empty"),
    of_bytes("manifest-of-an-array", b"[]", "not_an_object"),
    of_bytes("manifest-of-noise", bytes(range(256)) * 4096, "not_json"),
    of_bytes("deep-manifest", b"[" * 90_000, "not_json"),
    of_bytes("deeper-manifest", b"[" * 2 * MIB, "too_many_files"),
    of_bytes("manifest-with-a-number-of-a-million-digits", b'{"version": ' + b"1" * 1_000_000 + b"}", "not_json"),
    of_bytes("manifest-of-unknown-form", b'{"x": "' + b"\\u001b" * MIB + b'"}', "unknown_form"),
    of_bytes("manifest-of-two-million-files", _short_form(2_000_000), "too_many_files"),
    of_bytes("manifest-of-empty-files", b'{"version":1,"files":[' + b"{}," * 5_000_000 + b"{}]}", "too_many_files"),
    Attack(name="manifest-of-64-mib", kind="manifests", make=_too_big, expected=_letter("too_big")),
)

_FIELDS = (
    of_fields("path-as-id", "bad_id", manifest_id="../../etc/passwd"),
    of_fields("long-id", "bad_id", manifest_id="a" * 201),
    of_fields("control-characters-in-id", "bad_id", manifest_id="a\n\x1b[2J"),
    of_fields("path-as-date", "bad_date", date="../../x"),
    of_fields("no-date", "bad_date", date="2026-02-30"),
    of_fields("no-files", "no_files", files=[]),
    of_fields("files-as-object", "no_files", files={"uri": "x"}),
    of_fields("year-10000", "bad_file", created_at="9999-12-31T23:59:59-14:00"),
    of_file("long-etag", "bad_file", etag="e" * 100_000),
    of_file("etag-with-line-feed", "bad_file", etag="a\r\nHost: x"),
    of_file("negative-size", "bad_file", size_bytes=-1),
    of_file("size-of-no-integer", "bad_file", size_bytes=1e300),
    of_file("etag-as-object", "bad_file", etag={"a": 1}),
    of_file("no-event-time", "bad_file", event_time="not a time"),
)

_PLACES = (
    of_uri("names-a-folder", "{root}/raw/", "bad_uri"),
    of_uri("names-itself", "{root}/manifests/attack.json", "outside_allowed_prefixes", quick=True),
    of_uri("names-the-ledger", "{root}/state/ledger/x", "outside_allowed_prefixes"),
    of_uri("names-passwords", "file:///etc/passwd", "outside_allowed_prefixes"),
    of_uri("climbs-out", "{root}/raw/../state/x", "outside_allowed_prefixes"),
    of_uri("climbs-out-encoded", "{root}/raw%2f..%2f..%2fetc/passwd", "outside_allowed_prefixes"),
    of_uri("begins-like-the-prefix", "{root}/raw-of-others/x", "outside_allowed_prefixes"),
    of_uri("names-another-store", "s3://bucket/raw/x", "outside_allowed_prefixes"),
    of_uri("names-the-web", "http://169.254.169.254/latest/meta-data", "bad_uri"),
    of_uri("uri-with-nul", "{root}/raw/a\0b", "bad_uri"),
    of_uri("uri-of-a-mib", "{root}/raw/" + "a" * MIB, "bad_uri"),
    Attack(name="names-a-file-twice", kind="manifests", make=_names_twice, expected=_letter("duplicate_uri")),
    Attack(name="repeats-its-keys", kind="manifests", make=_keys_twice, expected=_ONE_ROW),
    Attack(
        name="takes-one-id-twice",
        kind="manifests",
        make=_same_id,
        expected=Seen(letters={"id_already_used": 1}, statuses={"compacted": 1}, rows=1),
    ),
    _named_otherwise("_attack.json"),
    _named_otherwise("folder/attack.json"),
)

ATTACKS = (*_BYTES, *_FIELDS, *_PLACES)
