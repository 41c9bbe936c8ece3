"""Reads a page of a report back: its tables, its elements, and what it asks for."""

from dataclasses import dataclass, field
from html.parser import HTMLParser


@dataclass
class Element:
    name: str
    attributes: dict[str, str | None]


@dataclass
class ReadPage(HTMLParser):
    """A page as a browser would take it apart.

    Attributes:
        elements: All of them, in order.
        tables: Rows of cells by the id of the table.
        text: All that is written, without styles.
    """

    elements: list[Element] = field(default_factory=list)
    tables: dict[str, list[list[str]]] = field(default_factory=dict)
    text: str = ""
    _open: list[str] = field(default_factory=list)
    _table: str = ""
    is_balanced: bool = True

    def __post_init__(self) -> None:
        super().__init__()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        self.elements.append(Element(tag, attributes))
        if tag not in {"meta", "link", "br"}:
            self._open.append(tag)
        if tag == "table":
            self._table = str(attributes["id"]).removeprefix("data-")
            self.tables[self._table] = []
        elif tag == "tr":
            self.tables[self._table].append([])
        elif tag in {"td", "th"}:
            self.tables[self._table][-1].append("")

    def handle_endtag(self, tag: str) -> None:
        self.is_balanced &= bool(self._open) and self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" in self._open:
            return
        self.text += data
        if self._open and self._open[-1] in {"td", "th"}:
            self.tables[self._table][-1][-1] += data

    def named(self, name: str) -> list[Element]:
        return [each for each in self.elements if each.name == name]

    def numbers(self, table: str, column: str, *, foot: bool = False) -> list[int]:
        """A column of whole numbers; its last row only, or all but that one."""
        heading, *rows = self.tables[table]
        cells = [row[heading.index(column)] for row in rows]
        return [int(cell.replace(",", "")) for cell in (cells[-1:] if foot else cells[:-1])]


def read_page(text: str) -> ReadPage:
    page = ReadPage()
    page.feed(text)
    page.close()
    return page
