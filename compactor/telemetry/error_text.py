"""Describes errors for logs, records and terminals without quoting any data."""

from compactor.core.errors import CompactorError, EngineFailed

MAX_CHARACTERS = 500
"""Maximum length of an error text in the log."""

_OF_CODE = (ImportError, AttributeError, NameError, NotImplementedError)
"""Python errors whose text contains names from code, never data."""


def described(error: BaseException, *, max_characters: int = MAX_CHARACTERS) -> str:
    """Describe an error without quoting data.

    The compactor's own messages quote no data. Other libraries quote the value they failed on, as in `invalid literal
    for int() with base 10: '4111 1111'`, so their errors are described by type and place only. Longer texts are
    truncated.
    """
    if isinstance(error, CompactorError | EngineFailed):
        text = str(error)
    elif isinstance(error, OSError) and error.errno is not None:
        text = f"{_kind(error)}: {error.strerror}{_of_file(error)}"
    elif isinstance(error, _OF_CODE):
        text = f"{_kind(error)}: {error}"
    else:
        text = f"{_kind(error)}{_place(error)}"
    return text if len(text) <= max_characters else text[: max_characters - 3] + "..."


def _kind(error: BaseException) -> str:
    kind = type(error)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"


def _of_file(error: OSError) -> str:
    return "" if error.filename is None else f": {error.filename}"


def _place(error: BaseException) -> str:
    """The innermost compactor function on the call stack, or else the place where the error was raised."""
    place = ""
    frame = error.__traceback__
    while frame is not None:
        module = str(frame.tb_frame.f_globals.get("__name__", ""))
        if not place or module.partition(".")[0] == "compactor":
            place = f" in {module}.{frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return place
