"""Has something happen as work is counted."""

from collections.abc import Callable

from compactor.wiring.app import App


def on_each(app: App, happens: Callable[[], object]) -> App:
    """Have something happen after each manifest that a command on these ports counts."""
    meter = app.state.meter

    def on_change() -> None:
        if meter.done:
            happens()

    meter.on_change = on_change
    return app
