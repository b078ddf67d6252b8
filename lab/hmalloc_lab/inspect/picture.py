"""What lies where: a picture of the slices of each chunk, for a terminal or as an SVG file."""

from collections.abc import Iterator
from dataclasses import dataclass

from .heap import FREE, Chunk, Snapshot

_FULL = "▁▂▃▄▅▆▇█"
LEGEND = f"{_FULL} a slice of 32 KB with blocks, by how much of it is in use\n" \
         "L of blocks above 32 KB   M metadata   G guard   ░ free   · free, given back"
_CELL, _GAP, _LEFT, _TOP = 8, 1, 120, 46
_COLOURS = {"L": "#7a5195", "M": "#b0b0b0", "G": "#2f4b7c", "░": "#f2c14e", "·": "#eeeeee"}


@dataclass(frozen=True)
class Row:
    start: int
    cells: str
    in_use: float
    """Bytes of blocks in use."""


def rows(snapshot: Snapshot) -> list[Row]:
    """One for each chunk, by address."""
    slice_bytes, chunk_bytes = snapshot.layout["slice.bytes"], snapshot.layout["chunk.bytes"]
    cells = {chunk.start: _empty(chunk, chunk_bytes // slice_bytes) for chunk in snapshot.chunks}
    in_use = dict.fromkeys(cells, 0.0)

    def put(start: int, length: int, cell: str, used: float) -> None:
        chunk = start // chunk_bytes * chunk_bytes
        if chunk in cells:
            at = (start - chunk) // slice_bytes
            cells[chunk][at:at + length // slice_bytes] = [cell] * (length // slice_bytes)
            in_use[chunk] += used

    for each in snapshot.superblocks:
        held = (len(each.states) - each.count(FREE)) * each.size
        put(each.base, each.length, _FULL[min(held * len(_FULL) // each.length, len(_FULL) - 1)], held)
    for run in [*snapshot.runs, *snapshot.cached_runs]:
        put(run.start, run.length, "L", run.length)
    return [Row(start, "".join(cells[start]), in_use[start]) for start in sorted(cells)]


def _empty(chunk: Chunk, slices: int) -> list[str]:
    """What is neither free nor in use is about to become one of them."""

    def cell(at: int) -> str:
        if at < chunk.metadata:
            return "M"
        if chunk.guards >> at & 1:
            return "G"
        return "░" if chunk.dirty >> at & 1 or not chunk.free >> at & 1 else "·"

    return [cell(at) for at in range(slices)]


def svg(snapshot: Snapshot) -> str:
    found = rows(snapshot)
    width = _LEFT + 64 * (_CELL + _GAP) + 10
    height = _TOP + len(found) * (_CELL + _GAP) + 10
    return "\n".join([
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" font-family="sans-serif" '
        'font-size="11">',
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="10" y="16">{_escape(snapshot.title)}: a row for each chunk of 2 MB, a cell for each slice of 32 KB'
        '</text>',
        *_legend(), *(line for at, row in enumerate(found) for line in _row(row, _TOP + at * (_CELL + _GAP))), "</svg>", ""])


def _legend() -> Iterator[str]:
    x = 10
    for cell, text in (("▁", "nearly empty"), ("▄", "half"), ("█", "full of blocks"), ("L", "blocks above 32 KB"),
                       ("░", "free, resident"), ("·", "free, given back"), ("M", "metadata"), ("G", "a guard")):
        yield f'<rect x="{x}" y="26" width="{_CELL}" height="{_CELL}" fill="{_colour(cell)}"/>'
        yield f'<text x="{x + _CELL + 4}" y="34">{text}</text>'
        x += 26 + 6 * len(text)


def _row(row: Row, y: int) -> Iterator[str]:
    yield f'<text x="10" y="{y + _CELL}" font-family="monospace" font-size="9">{row.start:012x}</text>'
    at = 0
    while at < len(row.cells):
        end = at + 1
        while end < len(row.cells) and row.cells[end] == row.cells[at]:
            end += 1
        width = (end - at) * (_CELL + _GAP) - _GAP
        x, colour = _LEFT + at * (_CELL + _GAP), _colour(row.cells[at])
        yield f'<rect x="{x}" y="{y}" width="{width}" height="{_CELL}" fill="{colour}"/>'
        at = end


def _colour(cell: str) -> str:
    """The fuller, the darker."""
    if cell in _COLOURS:
        return _COLOURS[cell]
    share = _FULL.index(cell) / (len(_FULL) - 1)
    return "#" + "".join(f"{round(light + (dark - light) * share):02x}" for light, dark in ((198, 0), (219, 76), (239, 109)))


def _escape(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
