"""Suggested commands, as their reader has to type them. No I/O."""

import re
from dataclasses import dataclass, replace

from compactor.core.text.safe_text import quoted

_COMMAND = re.compile(r"\bcompactor (?:redrive \w+|schema retire|\w+)")
_RETIRE = "schema retire"


@dataclass(frozen=True, slots=True)
class Suggestions:
    """Commands for a job, whose settings are found without a word, or for a folder that a person compacts."""

    folder: str = ""  # what `compact` wrote, as commands name it; empty for a job
    again: str = ""  # the command that compacts this folder again; empty for a job
    mark: str = ""  # what is written on both sides of a command
    stream: str = ""  # the stream that is meant; empty unless the settings have several

    def marked(self) -> "Suggestions":
        """The same commands between back-quotes."""
        return replace(self, mark="`")

    def call(self, command: str, *words: str) -> str:
        """A command such as `redrive files`, with words that may come from outside."""
        return self._marked(" ".join([self._placed(f"compactor {command}"), *map(quoted, words)]))

    def at(self, text: str) -> str:
        """A text of this program, with the folder in each command that it names."""
        return _COMMAND.sub(lambda found: self._marked(self._placed(found[0])), text)

    def of(self, command: str) -> str:
        """A whole command, with the folder in its place. What would plan an input file compacts the folder again."""
        if self.again and command.startswith("compactor plan "):
            return self._marked(self.again)
        return self._marked(_COMMAND.sub(lambda found: self._placed(found[0]), command, count=1))

    def again_with(self, words: str = "") -> str:
        """The command that compacts the folder again, with further words; empty for a job."""
        return self._marked(f"{self.again} {words}".rstrip()) if self.again else ""

    @property
    def then_again(self) -> str:
        """What follows a redrive: a job takes new manifests by itself, a folder waits for its next `compact`."""
        return f", then {self.again_with()}" if self.again else ""

    def _marked(self, command: str) -> str:
        return f"{self.mark}{command}{self.mark}"

    def _placed(self, command: str) -> str:
        if self.stream:
            return f"{command} --stream {self.stream}"
        if not self.folder:
            return command
        if command.endswith(_RETIRE):  # DST comes before the action
            return f"compactor schema {quoted(self.folder)} retire"
        return f"{command} {quoted(self.folder)}"
