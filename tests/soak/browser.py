"""A browser that asks malloc for all it has, driven by its own protocol (WebDriver) on a screen that nobody sees."""

import contextlib
import glob
import json
import os
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from session import TroubleError, until

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "integration"))
from redis import free_port  # noqa: E402

PAGE = Path(__file__).resolve().parent / "programs/browse.html"
PAGES = 25  # a round


def binary():
    return next(iter(sorted(glob.glob("/usr/lib/*/webkit2gtk-4.*/MiniBrowser"), reverse=True)), None)


def missing():
    return "" if binary() else "not installed: libwebkit2gtk-4.1-0"


class Driver:
    def __init__(self, port):
        self.address = f"http://127.0.0.1:{port}"

    def ask(self, method, path, body=None):
        request = urllib.request.Request(self.address + path, method=method, headers={"Content-Type": "application/json"},
                                         data=None if body is None else json.dumps(body).encode())
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.load(answer)["value"]
        except urllib.error.HTTPError as error:
            raise TroubleError(f"{method} {path}: {error.read()[:200]!r}") from error
        except (OSError, ValueError) as error:
            raise TroubleError(f"{method} {path}: {error}") from error

    def up(self):
        with contextlib.suppress(TroubleError):
            return self.ask("GET", "/status")["ready"]
        return False


@contextlib.contextmanager
def screen():
    """Its name, as DISPLAY has it.  The server, which is on glibc, finds a free one."""
    reading, writing = os.pipe()
    command = ["Xvfb", "-displayfd", str(writing), "-screen", "0", "1024x768x24", "-nolisten", "tcp"]
    with subprocess.Popen(command, pass_fds=(writing,), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                          stderr=subprocess.DEVNULL) as server:
        os.close(writing)
        try:
            with os.fdopen(reading) as answer:
                yield ":" + answer.readline().strip()
        finally:
            server.terminate()


def webkit(session):
    """Each round a browser is started, reads pages, and ends: a page's process, a network's, and the window's."""

    def browse(driver):
        wanted = {"binary": binary(), "args": ["--automation"]}
        made = driver.ask("POST", "/session", {"capabilities": {"alwaysMatch": {"webkitgtk:browserOptions": wanted}}})
        at = f"/session/{made['sessionId']}"
        said = []
        for page in range(PAGES):
            driver.ask("POST", at + "/url", {"url": f"file://{PAGE}?{page}"})
            script = {"script": "return window.said || ''", "args": []}
            until(lambda script=script: driver.ask("POST", at + "/execute/sync", script), f"page {page} is done", 120)
            said.append(driver.ask("POST", at + "/execute/sync", script))
        driver.ask("DELETE", at)
        if failed := [one for one in said if one.startswith("failed")]:
            raise TroubleError(failed[0])
        return " ".join(said)

    port = free_port()
    # Malloc=1: its own allocator hands on to malloc.
    with screen() as display, session.server("WebKitWebDriver", f"--port={port}", status=-signal.SIGTERM, DISPLAY=display, Malloc=1,
                                             LIBGL_ALWAYS_SOFTWARE=1, HOME=session.folder) as (process, log):
        driver = Driver(port)
        until(driver.up, "WebKitWebDriver answers")
        said = session.repeat(lambda: browse(driver))
        process.terminate()
    if "hmalloc: " in log.read_text():
        raise TroubleError(log.read_text()[:300])
    return said
