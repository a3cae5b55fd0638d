"""What is wrong with the text of a flag, in the words that scripts and people know from Go programs.

Pure: one function a kind, one table of them. Sources: the messages of Go's strconv, time and net/url packages.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from coder.base.config import LIST_KINDS, Option
from coder.base.duration import parse_duration
from coder.base.errors import CoderError

_BOOLS = frozenset({"1", "t", "true", "yes", "on", "0", "f", "false", "no", "off", ""})
_INT64 = 1 << 63
_NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_DURATION = re.compile(r"[+-]?(?:(?:\d+\.?\d*|\.\d+)[^\d.\s]+)*(?:\d+\.?\d*|\.\d+)")
_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2}).{0,2}")


def fault(option: Option, value: str) -> str:
    """ "" when nothing is wrong."""
    if option.choices:
        words = value.split(",") if option.kind in LIST_KINDS else [value]
        known = {choice.lower() for choice in option.choices}
        wrong = [word.strip() for word in words if word.strip().lower() not in known]
        listed = " ".join(option.choices)
        return f"invalid choice: {wrong[0]}, should be one of [{listed}]" if wrong else ""
    check = _FAULTS.get(option.kind)
    return check(value) if check else ""


def _duration(value: str) -> str:
    try:
        parse_duration(value)
    except CoderError:
        if value.strip() and _DURATION.fullmatch(value):
            return f'time: missing unit in duration "{value}"'
        return f'time: invalid duration "{value}"'
    return ""


def _int(value: str) -> str:
    digits = value[1:] if value[:1] in {"+", "-"} else value
    if not (digits.isascii() and digits.isdigit()):
        return f'strconv.ParseInt: parsing "{value}": invalid syntax'
    # Nineteen digits are the most there can be: longer ones are never counted.
    number = int(digits.lstrip("0")[:20] or "0") * (-1 if value.startswith("-") else 1)
    return "" if -_INT64 <= number < _INT64 else f'strconv.ParseInt: parsing "{value}": value out of range'


def _float(value: str) -> str:
    return "" if _NUMBER.fullmatch(value) else f'strconv.ParseFloat: parsing "{value}": invalid syntax'


def _bool(value: str) -> str:
    return "" if value.lower() in _BOOLS else f'strconv.ParseBool: parsing "{value}": invalid syntax'


def url_fault(value: str) -> str:
    """As Go's net/url tells it; it takes nearly everything for a path."""
    said = f'parse "{value}": '
    if any(ord(letter) < 0x20 or ord(letter) == 0x7F for letter in value):
        return f"{said}net/url: invalid control character in URL"
    scheme, colon, rest = value.partition(":")
    if colon and not scheme:
        return f"{said}missing protocol scheme"
    is_scheme = re.fullmatch(r"[A-Za-z][A-Za-z0-9+.-]*", scheme) is not None
    if colon and not is_scheme and "/" not in scheme:
        return f"{said}first path segment in URL cannot contain colon"
    if colon and is_scheme and rest.startswith("//"):
        host = re.split(r"[/?#]", rest[2:], maxsplit=1)[0].rpartition("@")[2]
        if wrong := _host_fault(host):
            return said + wrong
    if wrong_escape := _ESCAPE.search(value.partition("?")[0]):
        return f'{said}invalid URL escape "{wrong_escape[0]}"'
    return ""


def _host_fault(host: str) -> str:
    bare, _, port = host.rpartition(":") if re.search(r":[^\]]*$", host) else (host, "", "0")
    if port and not port.isdigit():
        return f'invalid port ":{port}" after host'
    wrong = re.search(r'[\s<>"\\^`{|}]', bare)
    return f'invalid character "{wrong[0]}" in host name' if wrong else ""


def _host_port(value: str) -> str:
    if not value:
        return "must not be empty"
    if not re.search(r":[^:\]]*$", value):
        return f"address {value}: missing port in address"
    host = value.rpartition(":")[0]
    return f"address {value}: too many colons in address" if ":" in host and not host.startswith("[") else ""


def _regexp(value: str) -> str:
    try:
        re.compile(value)
    except re.error as error:
        return f"error parsing regexp: {error.msg}: `{value}`"
    return ""


_FAULTS: dict[str, Callable[[str], str]] = {
    "bool": _bool,
    "duration": _duration,
    "float64": _float,
    "host:port": _host_port,
    "int": _int,
    "regexp": _regexp,
    "url": url_fault,
}
