"""The sentences with which Go's encoding/json rejects a document: clients of the original print and compare them.

Only the words imitate Go; Python decodes. A document that Python rejects is scanned once more, by token, for the first
byte that Go's scanner refuses (its states are those of encoding/json/scanner.go).
"""

from __future__ import annotations

import re
from typing import Final

UNEXPECTED_EOF: Final = "unexpected EOF"
"""A stream that ends inside a value (json.Decoder)."""
UNEXPECTED_END: Final = "unexpected end of JSON input"
"""A text that ends inside a value (json.Unmarshal)."""
MAX_EXPLAINED = 16 << 10
"""Ours: bytes of a text that is scanned for its fault: the scanner needs 12 milliseconds for the worst of them, and any
stranger may send it."""
KINDS: Final[dict[type, str]] = {
    str: "string",
    int: "number",
    float: "number",
    bool: "bool",
    dict: "object",
    list: "array",
}
"""What Go calls a decoded value."""

_SPACE = re.compile(rb"[ \t\r\n]*+")
_STRING = re.compile(rb'"(?:[^"\\\x00-\x1f]++|\\(?:["\\/bfnrt]|u[0-9a-fA-F]{4}))*+')
_DIGITS = re.compile(rb"[0-9]*+")
_LITERALS = {ord("t"): b"true", ord("f"): b"false", ord("n"): b"null"}
_OPEN_OBJECT, _OPEN_ARRAY = ord("{"), ord("[")
_ESCAPES = b'"\\/bfnrtu'
_HEX = b"0123456789abcdefABCDEF"
_SHORT_ESCAPES = {7: r"\a", 8: r"\b", 9: r"\t", 10: r"\n", 11: r"\v", 12: r"\f", 13: r"\r", 92: r"\\", 39: r"\'"}


def explain_syntax(raw: bytes, end: str = UNEXPECTED_EOF) -> str:
    """Return why Go rejects the first JSON value of `raw`: `end` when the text ends inside it, "EOF" for blanks alone,
    "" for a valid value and for one of more than `MAX_EXPLAINED` bytes. Bytes after the first value are ignored, as
    json.Decoder does."""
    if len(raw) > MAX_EXPLAINED:
        return ""
    try:
        _scan(raw)
    except _RejectedByteError as rejected:
        if rejected.position < len(raw):
            return f"invalid character {quote_byte(raw[rejected.position])} {rejected.place}"
        return end if raw.strip(b" \t\r\n") else "EOF"
    return ""


def explain_rest(raw: bytes) -> str:
    """Return `explain_syntax` for a text of exactly one value (json.Unmarshal); "" for a valid one, and for
    one of more than `MAX_EXPLAINED` bytes."""
    if len(raw) > MAX_EXPLAINED:
        return ""
    reason = explain_syntax(raw, UNEXPECTED_END)
    if reason:
        return UNEXPECTED_END if reason == "EOF" else reason
    position = _SPACE.match(raw, _scan(raw)).end()  # type: ignore[union-attr]
    return f"invalid character {quote_byte(raw[position])} after top-level value" if position < len(raw) else ""


class WrittenNumber(float):
    """A number with the text that a document has for it, such as "1e3"."""

    def __new__(cls, text: str) -> WrittenNumber:
        number = super().__new__(cls, text)
        number.text = text
        return number

    text: str


def explain_type(value: object, target: str, field: str = "") -> str:
    """Return why Go cannot store `value`: `field` is "Struct.path.to.field", or empty for the document itself."""
    place = f"Go struct field {field} of type {target}" if field else f"Go value of type {target}"
    kind = "number" if isinstance(value, WrittenNumber) else KINDS.get(type(value), "object")
    is_number = target.startswith(("int", "float")) or target == "time.Duration"
    number = f" {getattr(value, 'text', value)}" if kind == "number" and is_number else ""
    return f"json: cannot unmarshal {kind}{number} into {place}"


def quote_byte(byte: int) -> str:
    """Return a byte as Go's scanner quotes it: as a character of Latin-1 in single quotes."""
    char = chr(byte)
    if char == '"':
        return "'\"'"
    if byte in _SHORT_ESCAPES:
        return f"'{_SHORT_ESCAPES[byte]}'"
    if byte < 0x80:
        return f"'{char}'" if char.isprintable() else f"'\\x{byte:02x}'"
    return f"'{char}'" if char.isprintable() else f"'\\u{byte:04x}'"


class _RejectedByteError(Exception):
    """The scanner stopped; `position` may be the end of the text."""

    def __init__(self, position: int, place: str) -> None:
        super().__init__(place)
        self.position, self.place = position, place


def _scan(raw: bytes) -> int:
    """Return the position after the first value. Raises _RejectedByteError."""
    opened: list[int] = []
    state = "value"
    position = 0
    while True:
        position = _SPACE.match(raw, position).end()  # type: ignore[union-attr]
        if state == "done" and not opened:
            return position
        byte = raw[position] if position < len(raw) else -1
        if state == "done":
            state, position = _after_value(opened, byte, position)
        elif state == "colon":
            _require(byte == ord(":"), position, "after object key")
            state, position = "value", position + 1
        elif state in {"key", "first key"}:
            if state == "first key" and byte == ord("}"):
                opened.pop()
                state, position = "done", position + 1
                continue
            _require(byte == ord('"'), position, "looking for beginning of object key string")
            state, position = "colon", _string(raw, position)
        elif byte in {_OPEN_OBJECT, _OPEN_ARRAY}:
            opened.append(byte)
            state, position = ("first key" if byte == _OPEN_OBJECT else "first value"), position + 1
        elif state == "first value" and byte == ord("]"):
            opened.pop()
            state, position = "done", position + 1
        else:
            state, position = "done", _scalar(raw, position, byte)


def _after_value(opened: list[int], byte: int, position: int) -> tuple[str, int]:
    in_object = opened[-1] == _OPEN_OBJECT
    if byte == ord(","):
        return ("key" if in_object else "value"), position + 1
    closing = ord("}") if in_object else ord("]")
    _require(byte == closing, position, "after object key:value pair" if in_object else "after array element")
    opened.pop()
    return "done", position + 1


def _scalar(raw: bytes, position: int, byte: int) -> int:
    if byte == ord('"'):
        return _string(raw, position)
    if byte in _LITERALS:
        literal = _LITERALS[byte]
        for offset, expected in enumerate(literal):
            at = position + offset
            place = f"in literal {literal.decode()} (expecting {quote_byte(expected)})"
            _require(at < len(raw) and raw[at] == expected, at, place)
        return position + len(literal)
    _require(byte == ord("-") or 48 <= byte <= 57, position, "looking for beginning of value")
    return _number(raw, position)


def _number(raw: bytes, position: int) -> int:
    if raw[position] == ord("-"):
        position += 1
        _require_digit(raw, position, "in numeric literal")
    # A number that begins with 0 ends there; the next digit is the caller's to reject.
    position = position + 1 if raw[position] == ord("0") else _digits(raw, position)
    if raw[position : position + 1] == b".":
        _require_digit(raw, position + 1, "after decimal point in numeric literal")
        position = _digits(raw, position + 1)
    if raw[position : position + 1] in {b"e", b"E"}:
        position += 2 if raw[position + 1 : position + 2] in {b"+", b"-"} else 1
        _require_digit(raw, position, "in exponent of numeric literal")
        position = _digits(raw, position)
    return position


def _digits(raw: bytes, position: int) -> int:
    return _DIGITS.match(raw, position).end()  # type: ignore[union-attr]


def _string(raw: bytes, position: int) -> int:
    position = _STRING.match(raw, position).end()  # type: ignore[union-attr]
    if raw[position : position + 1] == b'"':
        return position + 1
    if raw[position : position + 1] != b"\\":
        raise _RejectedByteError(position, "in string literal")
    position += 1
    _require(position < len(raw) and raw[position] in _ESCAPES, position, "in string escape code")
    position += 1  # only \u with fewer than four hexadecimal digits is left
    while position < len(raw) and raw[position] in _HEX:
        position += 1
    raise _RejectedByteError(position, r"in \u hexadecimal character escape")


def _require_digit(raw: bytes, position: int, place: str) -> None:
    _require(position < len(raw) and 48 <= raw[position] <= 57, position, place)


def _require(condition: bool, position: int, place: str) -> None:
    if not condition:
        raise _RejectedByteError(position, place)
