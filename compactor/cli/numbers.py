"""Parses the numbers that options take."""

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """A range of finite numbers. click takes `nan` for a number in any range, and `inf` in one without an end."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value!r} is not a finite number.", param, ctx)
        return number
