"""Makes documents like those of Bluesky's stream, which JSONBench publishes. The same seed gives the same lines.

Most are commits with a record whose members depend on its collection. The subject of a like is an object, that of a
follow a string; a deletion has no record; an identity and an account have no commit.
"""

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import orjson

_FIRST_US = 1_732_206_349_000_000
_BLOCK_LINES = 5_000
_BASE32 = "abcdefghijklmnopqrstuvwxyz234567"
_PLAIN = ("sky", "blue", "post", "morning", "coffee", "weather", "music", "cat", "photo", "today", "news", "train")
_WORDS = (
    *_PLAIN,
    "the",
    "a",
    "of",
    "to",
    "in",
    "is",
    "that",
    "for",
    "café",
    "größer",
    "空",
    "青い",
    "мир",
    "🙂",
    '"so"',
    "a\\b",
)
_KINDS = (
    ("like", 46),
    ("post", 20),
    ("follow", 15),
    ("repost", 8),
    ("delete", 7),
    ("block", 2),
    ("identity", 1),
    ("account", 1),
)
_LANGUAGES: tuple[list[str], ...] = (["en"], ["en"], ["pt"], ["ja"], ["de", "en"], [])


def bluesky(seed: int) -> Iterator[bytes]:
    """Blocks of lines, ordered by their time in microseconds, which no two lines share."""
    rng = random.Random(f"bluesky/{seed}")
    people = [f"did:plc:{_letters(rng, 24)}" for _ in range(2_000)]
    names, weights = zip(*_KINDS, strict=True)
    time_us = _FIRST_US
    for block in count():
        kinds = rng.choices(names, weights, k=_BLOCK_LINES)
        if block == 0:  # for contenders that take their columns from the first lines
            kinds[:3] = "post", "identity", "account"
        lines = []
        for kind in kinds:
            time_us += rng.randrange(1, 900)
            lines.append(orjson.dumps(_document(rng, people, kind, time_us)))
        yield b"\n".join([*lines, b""])


def _document(rng: random.Random, people: list[str], kind: str, time_us: int) -> dict[str, Any]:
    did = rng.choice(people)
    head: dict[str, Any] = {"did": did, "time_us": time_us}
    at = _iso(time_us - rng.randrange(1_000, 9_000_000))
    if kind == "identity":
        more = {"did": did, "handle": f"{rng.choice(_PLAIN)}.bsky.social", "seq": time_us // 7, "time": at}
        return {**head, "kind": kind, "identity": more}
    if kind == "account":
        return {
            **head,
            "kind": kind,
            kind: {"active": rng.choice((True, False)), "did": did, "seq": time_us // 7, "time": at},
        }
    commit = {"rev": _letters(rng, 13), "operation": "create"}
    if kind == "delete":
        commit |= {"operation": kind, "collection": f"app.bsky.feed.{rng.choice(('like', 'post'))}"}
        return {**head, "kind": "commit", "commit": {**commit, "rkey": _letters(rng, 13)}}
    collection = f"app.bsky.{'graph' if kind in ('follow', 'block') else 'feed'}.{kind}"
    record = {"$type": collection, "createdAt": at, **_record(rng, people, kind)}
    body = {**commit, "collection": collection, "rkey": _letters(rng, 13), "record": record, "cid": _cid(rng)}
    return {**head, "kind": "commit", "commit": body}


def _record(rng: random.Random, people: list[str], kind: str) -> dict[str, Any]:
    """The members of a record that depend on its collection."""
    if kind in ("follow", "block"):
        return {"subject": rng.choice(people)}
    if kind in ("like", "repost"):
        return {"subject": _link(rng, people)}
    found: dict[str, Any] = {"langs": rng.choice(_LANGUAGES)}
    turn = rng.random()
    if turn < 0.4:  # noqa: PLR2004 - a share of all posts, as those below
        found["reply"] = {"parent": _link(rng, people), "root": _link(rng, people)}
    elif turn < 0.55:  # noqa: PLR2004
        image = {"$type": "blob", "ref": {"$link": _cid(rng)}, "mimeType": "image/jpeg", "size": rng.randrange(10**6)}
        ratio = {"height": rng.randrange(100, 2_000), "width": rng.randrange(100, 2_000)}
        images = [{"alt": _text(rng, 4), "aspectRatio": ratio, "image": image}] * rng.randrange(1, 4)
        found["embed"] = {"$type": "app.bsky.embed.images", "images": images}
    elif turn < 0.65:  # noqa: PLR2004
        page = {"description": _text(rng, 12), "title": _text(rng, 5), "uri": f"https://example.com/{_letters(rng, 8)}"}
        found["embed"] = {"$type": "app.bsky.embed.external", "external": page}
    if rng.random() < 0.1:  # noqa: PLR2004
        tag = {"$type": "app.bsky.richtext.facet#tag", "tag": rng.choice(_PLAIN)}
        found["facets"] = [{"features": [tag], "index": {"byteStart": 0, "byteEnd": rng.randrange(1, 40)}}]
    return {**found, "text": _text(rng, rng.randrange(1, 45))}


def _link(rng: random.Random, people: list[str]) -> dict[str, str]:
    return {"cid": _cid(rng), "uri": f"at://{rng.choice(people)}/app.bsky.feed.post/{_letters(rng, 13)}"}


def _cid(rng: random.Random) -> str:
    return f"bafyrei{_letters(rng, 52)}"


def _text(rng: random.Random, words: int) -> str:
    return " ".join(rng.choices(_WORDS, k=words))


def _letters(rng: random.Random, number: int) -> str:
    return "".join(rng.choices(_BASE32, k=number))


def _iso(time_us: int) -> str:
    at = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=time_us)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03}Z"
