"""The command `compactor`, also as `python -m compactor`. From its first moment, Ctrl-C and SIGTERM end it in words."""

import _signal  # type: ignore[import-not-found]  # `signal` takes milliseconds, and Ctrl-C in them a traceback
import gc
import os
import sys

_INTERRUPTED = 130
_SHOW_CURSOR = "\x1b[?25h"  # a progress display hides it


def end_at_once(_number: int = 0, _frame: object = None) -> None:
    """End the process, as a handler of a signal. Nothing is lost: every step of the compactor may be its last."""
    try:
        os.write(2, f"{_SHOW_CURSOR if os.isatty(2) else ''}\ncompactor: interrupted\n".lstrip("\n").encode())
    except OSError:  # nothing reads stderr any more
        pass
    finally:
        os._exit(_INTERRUPTED)


def main() -> None:
    """Run the command. Its modules take some tenths of a second to load."""
    for number, usual in ((_signal.SIGINT, _signal.default_int_handler), (_signal.SIGTERM, _signal.SIG_DFL)):
        if _signal.getsignal(number) == usual:  # else the caller ignores it, as nohup does
            _signal.signal(number, end_at_once)
    gc.disable()  # until the command begins: what modules make as they load is no garbage
    from compactor.cli import main as run  # noqa: PLC0415 - the handler comes first

    run()


if __name__ == "__main__":
    sys.modules["compactor.__main__"] = sys.modules["__main__"]  # one handler, whichever name it has
    main()
