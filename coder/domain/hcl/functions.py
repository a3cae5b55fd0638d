"""Terraform's functions. Values in, value out; an unknown argument makes the result unknown.

Files are a mapping of paths to bytes, so that nothing here opens one. What depends on the moment or on chance
(timestamp, uuid, bcrypt) is unknown.
"""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import ipaddress
import itertools
import json
import math
import posixpath
import re
import unicodedata
import urllib.parse
import uuid
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal
from typing import Any

from coder.domain.hcl import values as v
from coder.domain.hcl.format import go_format
from coder.domain.hcl.times import TIMES
from coder.domain.hcl.values import UNKNOWN, UNTYPED, EvaluationError, SetValue, Value

Function = Callable[..., Value]

_MAX_PRODUCT = 10_000
"Ours: combinations setproduct may make."


def function_table(files: Mapping[str, bytes]) -> dict[str, Function]:
    """All functions; those that read files see `files`, paths relative to the template's root."""
    table = {name: _strict(function) for name, function in {**_TEXT, **_NUMBERS, **_ENCODINGS, **TIMES}.items()}
    table |= {name: _shallow(function, typed=name in _TYPED) for name, function in _COLLECTIONS.items()}
    table |= {name: _strict(function) for name, function in _file_functions(files).items()}
    for name in ("timestamp", "plantimestamp", "uuid", "bcrypt", "templatefile", "templatestring"):
        table[name] = lambda *_arguments: UNKNOWN
    return table


def _strict(function: Function) -> Function:
    """Unknown anywhere in the arguments: the result is unknown."""

    def call(*arguments: Value) -> Value:
        return UNKNOWN if any(v.has_unknown(one) for one in arguments) else function(*arguments)

    return call


_TYPED = frozenset({"alltrue", "anytrue", "contains", "index", "issensitive", "keys", "length", "sort"})
"Functions whose result has one type, whatever goes in."


def _shallow(function: Function, *, typed: bool) -> Function:
    """Only a whole unknown argument matters; collections may hold unknown elements."""

    def call(*arguments: Value) -> Value:
        return (UNKNOWN if typed else UNTYPED) if any(v.is_unknown(one) for one in arguments) else function(*arguments)

    return call


def _gone(name: str, instead: str) -> Value:
    raise EvaluationError(f'the "{name}" function was deprecated in Terraform v0.12 and is gone; use {instead}')


# --- text
def _title(text: str) -> str:
    """Capitals after all but letters, digits and underscores; outside of ASCII after white space only (as in Go)."""
    return re.sub(r"(^|[\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]|\s)(\w)", lambda m: m[1] + _upper(m[2]), text)


def _upper(text: str) -> str:
    """Letter by letter, as Go does it: what would become two letters stays."""
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in text)


def _characters(text: str) -> list[str]:
    """What a reader calls characters: marks, joiners and variation selectors belong to what they follow."""
    if text.isascii():
        return list(text)
    found: list[str] = []
    for char in text:
        joined = found and (
            unicodedata.combining(char)
            or unicodedata.category(char) in {"Mn", "Me", "Mc"}
            or char in "\u200d\ufe0f"
            or 0x1F3FB <= ord(char) <= 0x1F3FF
            or found[-1].endswith("\u200d")
        )
        if joined:
            found[-1] += char
        else:
            found.append(char)
    return found


def _substr(text: str, start: int, length: int) -> str:
    chars = _characters(text)
    begin = max(0, len(chars) + start) if start < 0 else start
    return "".join(chars[begin:] if length == -1 else chars[begin : begin + length])


def _replace(text: str, search: str, by: str) -> str:
    if len(search) > 1 and search.startswith("/") and search.endswith("/"):
        return str(_re2(search[1:-1]).sub(lambda match: _expanded(match, by), text))
    return text.replace(search, by)


def _expanded(match: Any, template: str) -> str:
    """Go's templates: `$name`, `${name}` (the longest name there can be; none such: nothing) and `$$`."""

    def group(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        if name.isdigit():
            return str(match.group(int(name)) or "") if int(name) <= match.re.groups else ""
        return str(match.group(name) or "") if name in match.re.groupindex else ""

    return re.sub(r"\$(?:(\w+)|\{(\w+)\}|\$)", group, template, flags=re.ASCII)


def _re2(pattern: str) -> Any:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as problem:
        raise EvaluationError(f"invalid regular expression pattern: {problem}") from problem


def _captured(match: Any) -> Value:
    if match.re.groupindex:
        return {name: match.group(name) for name in match.re.groupindex}
    return list(match.groups()) if match.re.groups else match.group(0)


def _regex(pattern: str, text: str) -> Value:
    match = _re2(pattern).search(text)
    if match is None:
        raise EvaluationError("pattern did not match any part of the given string")
    return _captured(match)


def _basename(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or ("/" if path else ".")


def _indent(spaces: int, text: str) -> str:
    return text.replace("\n", "\n" + " " * int(spaces))


_T = v.to_text
_TEXT: dict[str, Function] = {
    "chomp": lambda s: re.sub(r"(\r\n|\n|\r)+$", "", _T(s)),
    "endswith": lambda s, suffix: _T(s).endswith(_T(suffix)),
    "format": lambda pattern, *rest: go_format(_T(pattern), rest),
    "formatlist": lambda pattern, *rest: _formatlist(_T(pattern), rest),
    "indent": lambda n, s: _indent(n, _T(s)),
    "join": lambda separator, *lists: _T(separator).join(_T(item) for one in lists for item in one),
    "lower": lambda s: _T(s).lower(),
    "regex": lambda pattern, s: _regex(_T(pattern), _T(s)),
    "regexall": lambda pattern, s: [_captured(match) for match in _re2(_T(pattern)).finditer(_T(s))],
    "replace": lambda s, a, b: _replace(_T(s), _T(a), _T(b)),
    "split": lambda separator, s: _T(s).split(_T(separator)) if _T(separator) else list(_T(s)),
    "startswith": lambda s, prefix: _T(s).startswith(_T(prefix)),
    "strcontains": lambda s, part: _T(part) in _T(s),
    "strrev": lambda s: "".join(reversed(_characters(_T(s)))),
    "substr": lambda s, start, length: _substr(_T(s), int(start), int(length)),
    "title": lambda s: _title(_T(s)),
    "trim": lambda s, cut: _T(s).strip(_T(cut)),
    "trimprefix": lambda s, prefix: _T(s).removeprefix(_T(prefix)),
    "trimspace": lambda s: _T(s).strip(),
    "trimsuffix": lambda s, suffix: _T(s).removesuffix(_T(suffix)),
    "upper": lambda s: _upper(_T(s)),
    "basename": lambda s: _basename(_T(s)),
    "dirname": lambda s: posixpath.dirname(_T(s)) or ".",
    "abspath": lambda s: posixpath.normpath(_T(s)) if _T(s).startswith("/") else _T(s),
    "pathexpand": _T,
}


def _formatlist(pattern: str, arguments: tuple[Value, ...]) -> list[str]:
    length = max((len(one) for one in arguments if isinstance(one, list)), default=1)
    return [
        go_format(pattern, tuple(one[i] if isinstance(one, list) else one for one in arguments)) for i in range(length)
    ]


# --- numbers
def _range(*limits: Value) -> list[int | float]:
    numbers = [v.to_number(one) for one in limits]
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else (1 if end >= start else -1)
    found: list[int | float] = []
    while (step > 0 and start < end) or (step < 0 and start > end):
        found.append(start)
        start += step
        if len(found) > 1024:
            raise EvaluationError("more than 1024 values were generated")
    return found


def _log(value: Value, base: Value) -> Value:
    return v.number(math.log(v.to_number(value)) / math.log(v.to_number(base)))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parseint(text: str, base: int) -> int:
    """Capitals are digits of their own above base 36."""
    if not 2 <= base <= 62:
        raise EvaluationError("base must be a whole number between 2 and 62 inclusive")
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    values = [_DIGITS.find(char if base > 36 else char.lower()) for char in digits]
    if not values or len(values) > _MAX_DIGITS or not all(0 <= one < base for one in values):
        raise EvaluationError(f"cannot parse {text!r} as a base {base} integer")
    total = 0
    for one in values:
        total = total * base + one
    return -total if text.startswith("-") else total


_MAX_DIGITS = 4000


def _sum(numbers: list[int | float]) -> int | float:
    if not numbers:
        raise EvaluationError("cannot sum an empty list")
    if all(isinstance(one, int) for one in numbers):
        return sum(numbers)
    return v.number(float(sum(Decimal(repr(one)) for one in numbers)))


def _extreme(choose: Callable[[Iterable[Any]], Any], arguments: tuple[Value, ...]) -> Value:
    return choose([v.to_number(one) for one in arguments])


_N = v.to_number
_NUMBERS: dict[str, Function] = {
    "abs": lambda n: abs(_N(n)),
    "ceil": lambda n: math.ceil(_N(n)),
    "floor": lambda n: math.floor(_N(n)),
    "log": _log,
    "max": lambda *n: _extreme(max, n),
    "min": lambda *n: _extreme(min, n),
    "parseint": lambda s, base: _parseint(_T(s), int(base)),
    "pow": lambda n, power: v.number(float(_N(n)) ** _N(power)),  # floats: no number that fills the memory
    "range": _range,
    "signum": lambda n: (_N(n) > 0) - (_N(n) < 0),
    "sum": lambda items: _sum([_N(one) for one in items]),
    "tonumber": lambda x: None if x is None else _N(x),
    "tobool": lambda x: None if x is None else v.to_bool(x),
    "tostring": lambda x: None if x is None else _T(x),
    "cidrhost": lambda prefix, n: _cidrhost(_T(prefix), int(n)),
    "cidrnetmask": lambda prefix: str(ipaddress.IPv4Network(_T(prefix), strict=False).netmask),
    "cidrsubnet": lambda prefix, bits, n: _cidrsubnet(_T(prefix), int(bits), int(n)),
    "cidrsubnets": lambda prefix, *bits: _cidrsubnets(_T(prefix), [int(one) for one in bits]),
}


def _cidrhost(prefix: str, position: int) -> str:
    network = ipaddress.ip_network(prefix, strict=False)
    offset = position if position >= 0 else network.num_addresses + position
    if not 0 <= offset < network.num_addresses:
        raise EvaluationError(f"prefix of {network.prefixlen} does not accommodate a host numbered {position}")
    return str(network.network_address + offset)


def _cidrsubnet(prefix: str, bits: int, position: int) -> str:
    network = ipaddress.ip_network(prefix, strict=False)
    length = network.prefixlen + bits
    if length > network.max_prefixlen or position >= 1 << bits:
        raise EvaluationError("insufficient address space")
    start = int(network.network_address) + (position << (network.max_prefixlen - length))
    return f"{ipaddress.ip_address(start) if network.version == 4 else ipaddress.IPv6Address(start)}/{length}"


def _cidrsubnets(prefix: str, bits: list[int]) -> list[str]:
    network = ipaddress.ip_network(prefix, strict=False)
    at, found = int(network.network_address), []
    for one in bits:
        size = 1 << (network.max_prefixlen - network.prefixlen - one)
        at = (at + size - 1) // size * size
        address = ipaddress.IPv4Address(at) if network.version == 4 else ipaddress.IPv6Address(at)
        found.append(f"{address}/{network.prefixlen + one}")
        at += size
    return found


# --- encodings
def _digest(name: str) -> Function:
    return lambda s: hashlib.new(name, _T(s).encode(), usedforsecurity=False).hexdigest()


def _yaml(text: str) -> Value:
    from coder.domain.hcl.yaml_text import read_yaml_untrusted

    return read_yaml_untrusted(text)


def _yaml_text(value: Value) -> str:
    """Texts and keys in quotes, texts of several lines as blocks, everything else plain: as Terraform writes it."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else '"')

    Dumper.add_representer(str, represent)
    written = yaml.dump(json.loads(v.to_json(value)), Dumper=Dumper, default_flow_style=False, width=1 << 20)
    return str(written).removesuffix("...\n")


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _csv(text: str) -> list[dict[str, str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error as problem:
        raise EvaluationError("the text is not CSV") from problem
    if not rows:
        raise EvaluationError("missing header line")
    header = rows[0]
    if len(set(header)) < len(header):
        raise EvaluationError("duplicate column name")
    if any(len(row) != len(header) for row in rows):
        raise EvaluationError("wrong number of fields")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


_SPACES: dict[str, uuid.UUID] = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}


def _urldecode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise EvaluationError("invalid URL escape")
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError as problem:
        raise EvaluationError("the decoded text is not UTF-8") from problem


def _rsadecrypt(ciphertext: str, key: str) -> str:
    """PKCS #1 v1.5, of base64."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(key.encode(), None)
        if not isinstance(private, RSAPrivateKey):
            raise EvaluationError("rsadecrypt: the key is not an RSA private key")
        return private.decrypt(base64.b64decode(ciphertext, validate=True), PKCS1v15()).decode()
    except (ValueError, TypeError) as problem:
        raise EvaluationError("rsadecrypt: failed to decrypt") from problem


_ENCODINGS: dict[str, Function] = {
    "base64decode": lambda s: base64.b64decode(_T(s), validate=True).decode(),
    "base64encode": lambda s: _b64(_T(s).encode()),
    "base64gzip": lambda s: _b64(gzip.compress(_T(s).encode(), mtime=0)),
    "base64sha256": lambda s: _b64(hashlib.sha256(_T(s).encode()).digest()),
    "base64sha512": lambda s: _b64(hashlib.sha512(_T(s).encode()).digest()),
    "csvdecode": lambda s: _csv(_T(s)),
    "jsondecode": lambda s: json.loads(_T(s)),
    "jsonencode": v.to_json,
    "md5": _digest("md5"),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "sha512": _digest("sha512"),
    "rsadecrypt": lambda ciphertext, key: _rsadecrypt(_T(ciphertext), _T(key)),
    "urldecode": lambda s: _urldecode(_T(s)),
    "urlencode": lambda s: urllib.parse.quote_plus(_T(s), safe=""),
    "uuidv5": lambda space, name: str(uuid.uuid5(_SPACES.get(space) or uuid.UUID(space), _T(name))),
    "yamldecode": lambda s: _yaml(_T(s)),
    "yamlencode": _yaml_text,
    "textencodebase64": lambda s, encoding: _b64(_T(s).encode(_T(encoding))),
    "textdecodebase64": lambda s, encoding: base64.b64decode(_T(s)).decode(_T(encoding)),
}


# --- collections
def _flatten(items: list[Value]) -> list[Value]:
    return [x for one in items for x in (_flatten(one) if isinstance(one, list) else [one])]


def _coalesce(*items: Value) -> Value:
    for one in items:
        if one is not None and one != "":
            return v.unify([one, *items])[0]
    raise EvaluationError("no non-null, non-empty-string arguments")


def _coalescelist(*lists: Value) -> Value:
    for one in lists:
        if one:
            return one
    raise EvaluationError("no non-null, non-empty arguments")


def _element(items: list[Value], position: Value) -> Value:
    if not items:
        raise EvaluationError("cannot use element function with an empty list")
    if v.to_number(position) < 0:
        raise EvaluationError("cannot use element function with a negative index")
    return items[int(v.to_number(position)) % len(items)]


def _lookup(of: Mapping[str, Value], key: Value, *default: Value) -> Value:
    name = _T(key)
    if name in of:
        return of[name]
    if default:
        return default[0]
    raise EvaluationError(f'the given object has no attribute "{name}"')


def _merge(*maps: Value) -> dict[str, Value]:
    found: dict[str, Value] = {}
    for one in maps:
        found.update(one or {})
    return found


def _one(items: Value) -> Value:
    if len(items) > 1:
        raise EvaluationError("must be a list, set, or tuple value with either zero or one elements")
    return items[0] if items else None


def _index(items: list[Value], value: Value) -> int:
    if value not in items:
        raise EvaluationError("item not found")
    return items.index(value)


def _length(of: Value) -> int:
    if of is None:
        raise EvaluationError("argument must not be null")
    return len(_characters(of) if isinstance(of, str) else of)


def _sets(combine: Callable[[list[Value], list[Value]], list[Value]], sets: tuple[Value, ...]) -> SetValue:
    members = iter(v.unify([item for one in sets for item in one]))
    result, *others = [[next(members) for _ in one] for one in sets]
    for one in others:
        result = combine(result, one)
    return SetValue.of(result)


def _setproduct(*sets: Value) -> list[list[Value]]:
    if math.prod(len(one) for one in sets) > _MAX_PRODUCT:
        raise EvaluationError(f"more than {_MAX_PRODUCT} combinations")
    return [list(one) for one in itertools.product(*sets)]


def _transpose(of: Mapping[str, list[str]]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for key in sorted(of):
        for item in of[key]:
            found.setdefault(item, []).append(key)
    return found


def _matchkeys(items: list[Value], keys: list[Value], wanted: list[Value]) -> list[Value]:
    return [item for item, key in zip(items, keys, strict=True) if key in wanted]


def _reversed(items: Value) -> list[Value]:
    return list(items)[::-1]


def _chunks(items: list[Value], size: int) -> list[list[Value]]:
    return [items[i : i + size] for i in range(0, len(items), size)] if size else [items]


def _distinct(items: list[Value]) -> list[Value]:
    found: list[Value] = []
    for one in v.unify(list(items)):
        if one not in found:
            found.append(one)
    return found


def _slice(items: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(items):
        raise EvaluationError("start and end index must be within the list, in this order")
    return items[start:end]


def _map(of: Value) -> Value:
    if not isinstance(of, dict):
        return of
    return dict(zip(of, v.unify(list(of.values())), strict=True))


_COLLECTIONS: dict[str, Function] = {
    "alltrue": lambda items: all(v.to_bool(one) for one in items),
    "anytrue": lambda items: any(v.to_bool(one) for one in items),
    "chunklist": lambda items, n: _chunks(items, int(n)),
    "coalesce": _coalesce,
    "coalescelist": _coalescelist,
    "compact": lambda items: [one for one in items if one not in (None, "")],
    "concat": lambda *lists: [x for one in lists for x in one],
    "contains": lambda items, value: value in list(items),
    "distinct": _distinct,
    "element": _element,
    "flatten": _flatten,
    "index": _index,
    "issensitive": lambda _value: False,
    "keys": sorted,
    "length": _length,
    "list": lambda *_items: _gone("list", "tolist([ ... ])"),
    "map": lambda *_items: _gone("map", "tomap({ ... })"),
    "ephemeralasnull": lambda value: value,  # nothing rendered here is ephemeral
    "lookup": _lookup,
    "matchkeys": _matchkeys,
    "merge": _merge,
    "nonsensitive": lambda value: value,
    "one": _one,
    "reverse": _reversed,
    "sensitive": lambda value: value,
    "setintersection": lambda *s: _sets(lambda a, b: [x for x in a if x in b], s),
    "setproduct": _setproduct,
    "setsubtract": lambda *s: _sets(lambda a, b: [x for x in a if x not in b], s),
    "setunion": lambda *s: _sets(lambda a, b: a + b, s),
    "slice": lambda items, start, end: _slice(items, int(start), int(end)),
    "sort": lambda items: sorted(_T(one) for one in items),
    "tolist": lambda items: None if items is None else v.unify(list(items)),
    "tomap": _map,
    "toset": lambda items: None if items is None else SetValue.of(v.unify(list(items))),
    "transpose": _transpose,
    "values": lambda of: [of[key] for key in sorted(of)],
    "zipmap": lambda keys, items: dict(zip((_T(key) for key in keys), items, strict=True)),
}


# --- files
def _file_functions(files: Mapping[str, bytes]) -> dict[str, Function]:
    def read(path: Value) -> bytes:
        name = posixpath.normpath(_T(path))
        if name not in files:
            raise EvaluationError(f"no file exists at {_T(path)!r}")
        return files[name]

    def fileset(folder: Value, pattern: Value) -> SetValue:
        base = posixpath.normpath(_T(folder))
        names = (posixpath.relpath(name, base) for name in files)
        wanted = _glob(_T(pattern))
        return SetValue.of([name for name in names if not name.startswith("../") and wanted.fullmatch(name)])

    table: dict[str, Function] = {
        "file": lambda path: read(path).decode("utf-8", "replace"),
        "filebase64": lambda path: _b64(read(path)),
        "fileexists": lambda path: posixpath.normpath(_T(path)) in files,
        "fileset": fileset,
        "filebase64sha256": lambda path: _b64(hashlib.sha256(read(path)).digest()),
        "filebase64sha512": lambda path: _b64(hashlib.sha512(read(path)).digest()),
    }
    for name in ("md5", "sha1", "sha256", "sha512"):
        table[f"file{name}"] = _file_digest(name, read)
    return table


def _glob(pattern: str) -> Any:
    """`*` and `?` stop at slashes, `**` does not; `[a-z]`, `[^a]` and `{one,other}`. Matched in linear time (RE2)."""
    found = ""
    for piece in re.findall(r"\*\*/|\*\*|\*|\?|\[\^?[^\]]+\]|\\.|[{},]|[^*?\[{},\\]+|.", pattern, re.DOTALL):
        if piece.startswith("[") and len(piece) > 1:
            found += "[" + piece[1:].replace("[", "\\[")
        elif piece.startswith("\\") and len(piece) > 1:
            found += re.escape(piece[1])
        else:
            found += _GLOB.get(piece, re.escape(piece))
    try:
        return _re2(f"(?s:{found})")
    except EvaluationError as problem:
        raise EvaluationError("syntax error in pattern") from problem


_GLOB = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")", ",": "|"}


def _file_digest(name: str, read: Callable[[Value], bytes]) -> Function:
    return lambda path: hashlib.new(name, read(path), usedforsecurity=False).hexdigest()
