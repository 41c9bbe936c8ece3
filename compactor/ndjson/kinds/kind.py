"""What a file is that is not NDJSON."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of file.

    Attributes:
        name: What it is, as in "looks like one JSON array".
        move: What to do with it.
        is_json: Whether `input.format = "json"` reads it.
    """

    name: str
    move: str
    is_json: bool = False

    @property
    def words(self) -> str:
        return f"looks like {self.name}; {self.move}"
