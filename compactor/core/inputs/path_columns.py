"""The values that the folders of a file give to its rows: `country=DE/` makes a column `country`, as Hive does."""

from urllib.parse import unquote

from compactor.core.layout import canonical, is_s3, is_text

MAX_PATH_COLUMNS = 16
"""The most folders of a path that become columns."""

MAX_PATH_CHARACTERS = 4096
"""The most characters that their keys and values have."""

_NULL = "__HIVE_DEFAULT_PARTITION__"
"""What Hive writes for a value that is null."""


def path_columns(uri: str) -> dict[str, str]:
    """The keys and values in the folders of a file, outermost first. Of a key that is there twice, the last one counts.

    Percent-encoded characters are decoded, because Hive and Spark encode those that a folder may not have.
    """
    folders = canonical(uri).split("/")[3 if is_s3(uri) else 1 : -1]
    found: dict[str, str] = {}
    for folder in folders:
        key, separator, value = folder.partition("=")
        if not (key and separator) or value == _NULL or not is_text(folder):
            continue
        key, value = _decoded(key), _decoded(value)
        if len(found) < MAX_PATH_COLUMNS:
            found[key] = value
    return found


def are_path_columns(found: object) -> bool:
    """Whether a document from outside holds keys and values as `path_columns` gives them."""
    if not isinstance(found, dict) or len(found) > MAX_PATH_COLUMNS:
        return False
    texts = [*found.keys(), *found.values()]
    return (
        all(isinstance(text, str) and is_text(text) for text in texts) and sum(map(len, texts)) <= MAX_PATH_CHARACTERS
    )


def _decoded(text: str) -> str:
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError:
        return text
