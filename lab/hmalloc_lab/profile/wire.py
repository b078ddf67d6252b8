"""The wire format of protocol buffers, as far as a profile needs it: fields with numbers, of numbers and bytes."""

from collections.abc import Iterator

_VARINT, _EIGHT_BYTES, _BYTES, _FOUR_BYTES = 0, 1, 2, 5
_FIXED = {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}
_WORD = (1 << 64) - 1


class Malformed(Exception):
    """These bytes are no message, or not a whole one."""


def fields(message: memoryview) -> Iterator[tuple[int, int | memoryview]]:
    """Each field's number and value, in the order of the message."""
    at, end = 0, len(message)
    while at < end:
        tag, at = _varint(message, at)
        number, kind = tag >> 3, tag & 7
        if number == 0:
            raise Malformed
        if kind == _VARINT:
            value, at = _varint(message, at)
            yield number, value
            continue
        if kind == _BYTES:
            length, at = _varint(message, at)
        elif kind in _FIXED:
            length = _FIXED[kind]
        else:
            raise Malformed
        if at + length > end:
            raise Malformed
        part, at = message[at:at + length], at + length
        yield number, part if kind == _BYTES else int.from_bytes(part, "little")


def numbers(value: int | memoryview) -> list[int]:
    """Of a repeated field, which is packed or not."""
    if isinstance(value, int):
        return [value]
    found, at = [], 0
    while at < len(value):
        number, at = _varint(value, at)
        found.append(number)
    return found


def number(value: int | memoryview) -> int:
    if not isinstance(value, int):
        raise Malformed
    return value


def part(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise Malformed
    return value


def _varint(message: memoryview, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(message) and shift < 70:
        byte = message[at]
        at += 1
        value |= (byte & 0x7f) << shift
        if byte < 0x80:
            return value & _WORD, at
        shift += 7
    raise Malformed
