"""Has something happen as work is counted."""

from collections.abc import Callable

from compactor.wiring.app import App


def on_each(app: App, happens: Callable[[], object]) -> App:
    """Have something happen after each manifest that a command on these ports counts."""
    meter, seen = app.state.meter, [0]

    def on_change() -> None:
        is_more, seen[0] = meter.done > seen[0], meter.done
        if is_more:
            happens()

    meter.on_change = on_change
    return app
