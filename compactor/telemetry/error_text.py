"""Errors in words for logs, records and terminals: never with what a line of the data holds."""

from compactor.core.errors import CompactorError, EngineFailed

MAX_CHARACTERS = 500
"""Of a text in the log: what happened is in its head."""

_OF_CODE = (ImportError, AttributeError, NameError, NotImplementedError)
"""Errors of Python whose text can only name parts of programs."""


def described(error: BaseException, *, max_characters: int = MAX_CHARACTERS) -> str:
    """An error in words that hold nothing of the data.

    The compactor's own messages say what, where and what was expected. Those of others quote what they choked on, as
    `invalid literal for int() with base 10: '4111 1111'` does, so of them only the kind and the place are told.

    Args:
        error: Any.
        max_characters: Longer texts are cut.
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
    """Where it was raised, as seen from the compactor: the innermost function of its own on the way."""
    place = ""
    frame = error.__traceback__
    while frame is not None:
        module = str(frame.tb_frame.f_globals.get("__name__", ""))
        if not place or module.partition(".")[0] == "compactor":
            place = f" in {module}.{frame.tb_frame.f_code.co_name}, line {frame.tb_lineno}"
        frame = frame.tb_next
    return place
