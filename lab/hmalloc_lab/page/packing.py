"""What makes the page small: a plotting library of lines and bars alone, and compression that the browser undoes.

The library is the npm package as published, beside this file: nothing has to be fetched, and
`npm view plotly.js-basic-dist-min@4.1.1 dist.integrity` tells whether it is the same.
"""

import base64
import gzip
import tarfile
from functools import cache
from pathlib import Path

PACKAGE = Path(__file__).parent / "plotly.js-basic-dist-min-4.1.1.tgz"


@cache
def plotting_library() -> str:
    """Plotly's basic bundle: scatter, bar and pie."""
    with tarfile.open(PACKAGE) as package:
        return package.extractfile("package/plotly-basic.min.js").read().decode()


def packed(text: str) -> str:
    """Gzip in Base64; unpack.js makes text of it again.  The same text always gives the same."""
    return base64.b64encode(gzip.compress(text.encode(), 9, mtime=0)).decode()


@cache
def packed_library() -> str:
    return packed(plotting_library())
