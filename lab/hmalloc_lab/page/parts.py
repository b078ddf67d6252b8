"""What the pages have in common: templates, a policy that forbids every connection, and the way into a file."""

import base64
import errno
import hashlib
import os
import re
import stat
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup, escape

from ..errors import Failure
from . import formats

_TEMPLATES = Path(__file__).parent / "templates"
# A folder that takes no file, a file of somebody else's or mounted by itself, a name that is as long as it may be.
_ONLY_ITSELF = (errno.EACCES, errno.EPERM, errno.EROFS, errno.EBUSY, errno.ENAMETOOLONG, errno.EEXIST)


def environment(**filters: Callable) -> Environment:
    """Templates that know how numbers are written, and these filters besides."""
    found = Environment(loader=FileSystemLoader(_TEMPLATES), autoescape=True, undefined=StrictUndefined,
                        trim_blocks=True, lstrip_blocks=True)
    found.filters |= {"ratio": formats.ratio, "quantity": formats.quantity, "significant": formats.significant,
                      "number": formats.number, "counted": formats.counted, "marked": marked, **filters}
    return found


@cache
def templates() -> Environment:
    """Those of the report."""
    # Here, because they need the laboratory's packages, and the page of `hmalloc profile` does not.
    from . import heatmap, overview

    return environment(anchor=heatmap.anchor, spread=overview.spread)


def marked(text: str) -> Markup:
    """Words that Markdown has as **strong**, *emphasised* or `code`; all else stays text."""
    words = str(escape(text))
    for mark, tag in ((r"\*\*", "strong"), (r"\*", "em"), ("`", "code")):
        words = re.sub(f"{mark}(.+?){mark}", rf"<{tag}>\1</{tag}>", words)
    return Markup(words)


def joined(names: tuple[str, ...]) -> str:
    """Scripts or style sheets, one after the other."""
    return "\n".join((_TEMPLATES / name).read_text(encoding="utf-8") for name in names)


def policy(scripts: list[str]) -> str:
    """Forbids every connection, and every script but these: what a name smuggles in does not run."""
    digests = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{digest}'" for digest in digests)
    return f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; base-uri 'none'"


def replace_file(path: Path, text: str) -> None:
    """A reader finds the old page or the new one, never half of it."""
    try:
        if not path.parent.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
        if _is_only_a_way(path):
            path.write_text(text, encoding="utf-8")
        else:
            _replace(path, text)
    except OSError as error:
        raise Failure(f"{path}: {error.strerror}", 1) from error


def _is_only_a_way(path: Path) -> bool:
    """A link, a pipe, a device: what is behind it gets the text, and it stays what it is."""
    return path.is_symlink() or (path.exists() and not path.is_file())


def _replace(path: Path, text: str) -> None:
    try:
        _write_beside(path, text)
    except OSError as error:
        if error.errno not in _ONLY_ITSELF:
            raise
        path.write_text(text, encoding="utf-8")


def _write_beside(path: Path, text: str) -> None:
    beside = path.with_name(f"{path.name}.{os.getpid()}.new")
    with beside.open("x", encoding="utf-8") as file:
        try:
            if path.exists():  # who may read it is as before
                os.fchmod(file.fileno(), stat.S_IMODE(path.stat().st_mode))
            file.write(text)
            file.flush()
            os.replace(beside, path)
        except OSError:
            with suppress(OSError):
                beside.unlink()
            raise
