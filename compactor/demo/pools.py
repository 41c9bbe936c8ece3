"""The vocabulary of the shop: JSON snippets that events are made of."""

import random
from functools import cache
from itertools import product

COUNTRIES = (
    ("DE", "Berlin", "de-DE"),
    ("DE", "München", "de-DE"),
    ("FR", "Paris", "fr-FR"),
    ("GB", "London", "en-GB"),
    ("US", "New York", "en-US"),
    ("US", "Austin", "en-US"),
    ("ES", "Málaga", "es-ES"),
    ("PL", "Łódź", "pl-PL"),
    ("JP", "東京", "ja-JP"),
    ("BR", "São Paulo", "pt-BR"),
)
EVENT_NAMES = (
    *("page_view",) * 9,
    *("product_view",) * 6,
    *("search",) * 3,
    *("add_to_cart",) * 2,
    "remove_from_cart",
    "checkout_start",
    "purchase",
)
CATEGORIES = ("shoes", "jackets", "books", "kitchen", "garden", "audio", "phones", "toys", "sports", "beauty")
REFERRERS = ("null", "null", '"search.example.com"', '"news.example.org/deals"', '"social.example.net"')
EXPERIMENTS = ("[]", '["pay-b"]', '["find-2","pay-a"]', '["badge","find-2","slim"]')
SYSTEMS = (
    ("desktop", "Windows", "Windows NT 10.0"),
    ("desktop", "macOS", "Macintosh"),
    ("desktop", "Linux", "X11; Linux x86_64"),
    ("mobile", "Android", "Android 14"),
    ("tablet", "Android", "Android 13"),
)
_POOL_SEED = 20251221  # fixes the shop; the seed of the events varies the day
_USERS = 20_000
_PRODUCTS = 4_000


@cache
def devices() -> tuple[str, ...]:
    """Snippets of the five keys of each device."""
    return tuple(
        f'"device":"{kind}","os":"{system}","browser":"Chrome","version":"{major % 7 + 3}.{major % 10}.0",'
        f'"agent":"Chrome/{major}.0.{build} ({token})"'
        for (kind, system, token), major, build in product(SYSTEMS, range(118, 132), (5993, 6045, 6099, 6167))
    )


@cache
def users() -> tuple[str, ...]:
    """Snippets of the two keys of each user; two in five are not members and have no id."""
    rng = random.Random(_POOL_SEED)  # noqa: S311 - made-up data, no secret
    known = [f'"user_id":"u-{rng.randrange(10_000_000):07d}","member":true' for _ in range(_USERS * 3 // 5)]
    return (*known, *('"user_id":null,"member":false',) * (_USERS - len(known)))


@cache
def products() -> tuple[tuple[str, str], ...]:
    """The path of each product in the shop, and a snippet of its four keys; prices keep two decimals, as in 1.10."""
    rng = random.Random(_POOL_SEED + 1)  # noqa: S311 - made-up data, no secret
    made = []
    for number in range(_PRODUCTS):
        category = rng.choice(CATEGORIES)
        price = f"{rng.randrange(1, 400)}.{rng.choice(('00', '10', '49', '50', '90', '99'))}"
        snippet = f'"sku":"p-{number:05d}","category":"{category}","price":{price},"currency":"EUR"'
        made.append((f"{category}/{number:05d}", snippet))
    return tuple(made)
