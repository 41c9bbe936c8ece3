"""Headless Chromium through its debugging pipe: opens a page, and tells what it did and what it shows.

Needs no driver and no package: messages are JSON, ended by a zero byte, on two file handles of the process.
"""

import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome-headless-shell")
_IN, _OUT = 3, 4  # the handles that Chromium reads and writes

PATIENCE_SECONDS = 120.0
"""So long a browser may be silent while something is waited for, on a machine with much else to do."""


def found_browser() -> str | None:
    """The Chromium of this machine, if any; COMPACTOR_CHROMIUM names one elsewhere."""
    named = os.environ.get("COMPACTOR_CHROMIUM")
    return named or next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    """A running Chromium with one tab. A context manager.

    Args:
        program: What to start.

    Attributes:
        requests: Addresses that were asked for, but for the pages that were opened and data within them.
        complaints: What went to the console or to the log.
    """

    def __init__(self, program: str) -> None:
        self._program = program
        self._numbers = itertools.count(1)
        self._session = ""
        self._buffer = b""
        self.requests: list[str] = []
        self.complaints: list[str] = []

    def __enter__(self) -> Self:
        self._profile = tempfile.TemporaryDirectory(prefix="compactor-chromium-", ignore_cleanup_errors=True)
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()
        # The shell moves the handles to where Chromium expects them; a child gets them under their own numbers.
        options = [
            *("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--remote-debugging-pipe"),
            *(
                "--no-first-run",
                "--disable-background-networking",
                "--hide-scrollbars",
                f"--user-data-dir={self._profile.name}",
            ),
        ]
        script = f'exec "$0" "$@" {_IN}<&{to_browser} {_OUT}>&{from_browser}'
        self._process = subprocess.Popen(
            ["bash", "-c", script, self._program, *options, "about:blank"],
            pass_fds=(to_browser, from_browser),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(to_browser)
        os.close(from_browser)
        # A tab of our own: the first one need not be there as soon as Chromium answers.
        tab = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=tab, flatten=True)["sessionId"]
        for domain in ("Page", "Network", "Log", "Runtime"):
            self.call(f"{domain}.enable")
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Asked to, it ends its helpers as well, which else go on writing to the profile for a moment.
        os.write(self._write, json.dumps({"id": next(self._numbers), "method": "Browser.close"}).encode() + b"\0")
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)
        self._profile.cleanup()

    def call(self, method: str, **parameters: object) -> dict[str, Any]:
        """Have something done, and wait for the answer."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == number:
                assert "error" not in answer, answer["error"]
                return dict(answer["result"])
            self._note(answer)

    def open(self, path: Path, *, width: int, dark: bool = False) -> None:
        """Show a file in a window of some width, and wait until it is loaded."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.call("Emulation.setEmulatedMedia", features=[scheme])
        self._opened = path.as_uri()
        self._is_loaded = False
        self.call("Page.navigate", url=self._opened)
        while not self._is_loaded:
            self._note(self._next())

    def value(self, expression: str) -> Any:
        """What a JavaScript expression is on the page."""
        found = self.call("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def press(self, key: str) -> None:
        """Press a key, such as `Tab`."""
        codes = {"Tab": 9, "Enter": 13}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, windowsVirtualKeyCode=codes[key], **text)

    def _next(self) -> dict[str, Any]:
        while b"\0" not in self._buffer:
            is_ready, _, _ = select.select([self._read], [], [], PATIENCE_SECONDS)
            assert is_ready, f"{self._program} said nothing for {PATIENCE_SECONDS:g} s"
            data = os.read(self._read, 1 << 16)
            assert data, f"{self._program} ended"
            self._buffer += data
        message, _, self._buffer = self._buffer.partition(b"\0")
        return dict(json.loads(message))

    def _note(self, event: Mapping[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        if method == "Page.loadEventFired":
            self._is_loaded = True
        elif method == "Network.requestWillBeSent":
            url = parameters["request"]["url"]
            if url != self._opened and not url.startswith("data:"):
                self.requests.append(url)
        elif method == "Log.entryAdded":
            self.complaints.append(parameters["entry"]["text"])
        elif method in {"Runtime.consoleAPICalled", "Runtime.exceptionThrown"}:
            self.complaints.append(json.dumps(parameters))
