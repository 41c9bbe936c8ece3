"""What is generated from the code is of today."""

from tools.generate import RENEWED, ROOT, out_of_date


def test_generated_files_are_of_today() -> None:
    """No table, comment, manual page or schema differs from what `make generate` writes."""
    assert all(list(ROOT.glob(pattern)) for pattern in RENEWED)
    assert [path.relative_to(ROOT).as_posix() for path, _ in out_of_date()] == [], "run `make generate`"
