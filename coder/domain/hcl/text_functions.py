"""Terraform's functions on text and paths, and their search patterns."""

from __future__ import annotations

import posixpath
import re
import unicodedata
from collections.abc import Iterator

from coder.domain.foundation.patterns import Match, Pattern
from coder.domain.hcl.bounds import require_size
from coder.domain.hcl.format import go_format
from coder.domain.hcl.values import EvaluationError, TableFunction, Value, to_text


def _title(text: str) -> str:
    """Capitalize words: letters after all but letters, digits and underscores; outside ASCII after white space only (as
    in Go)."""
    return re.sub(r"(^|[\x00-\x2f\x3a-\x40\x5b-\x5e\x60\x7b-\x7f]|\s)(\w)", lambda m: m[1] + _upper(m[2]), text)


def _upper(text: str) -> str:
    """Convert to capitals letter by letter, as Go does: a letter that would become two is kept."""
    return "".join(char.upper() if len(char.upper()) == 1 else char for char in text)


def characters(text: str) -> list[str]:
    """Split into grapheme clusters: marks, joiners and variation selectors belong to the preceding character."""
    if text.isascii():
        return list(text)
    results: list[str] = []
    for char in text:
        joined = results and (
            unicodedata.combining(char)
            or unicodedata.category(char) in {"Mn", "Me", "Mc"}
            or char in "\u200d\ufe0f"
            or 0x1F3FB <= ord(char) <= 0x1F3FF
            or results[-1].endswith("\u200d")
        )
        if joined:
            results[-1] += char
        else:
            results.append(char)
    return results


def _substr(text: str, start: int, length: int) -> str:
    chars = characters(text)
    begin = max(0, len(chars) + start) if start < 0 else start
    return "".join(chars[begin:] if length == -1 else chars[begin : begin + length])


def _replace(text: str, search: str, by: str) -> str:
    if len(search) > 1 and search.startswith("/") and search.endswith("/"):
        made = 0

        def expanded(match: Match) -> str:
            nonlocal made
            made += len(by) + by.count("$") * len(match.group(0) or "")
            require_size(made)
            return _expanded(match, by)

        return str(compile_re2(search[1:-1]).sub(expanded, text))
    require_size(len(text) + text.count(search) * len(by))
    return text.replace(search, by)


def _expanded(match: Match, template: str) -> str:
    """Expand Go's templates: `$name`, `${name}` (the longest possible name; empty if undefined) and `$$`."""

    def group(reference: re.Match[str]) -> str:
        name = reference[1] or reference[2]
        if name is None:
            return "$"
        if name.isdigit():
            return str(match.group(int(name)) or "") if int(name) <= match.re.groups else ""
        return str(match.group(name) or "") if name in match.re.groupindex else ""

    return re.sub(r"\$(?:(\w+)|\{(\w+)\}|\$)", group, template, flags=re.ASCII)


def compile_re2(pattern: str) -> Pattern:
    import re2

    options = re2.Options()
    options.log_errors = False
    try:
        result: Pattern = re2.compile(pattern, options)
        return result
    except re2.error as problem:
        raise EvaluationError(f"invalid regular expression pattern: {problem}") from problem


def _captures(matches: Iterator[Match]) -> list[Value]:
    """Return the captures of all matches; groups inside groups repeat the text."""
    captured, made = [], 0
    for match in matches:
        made += (match.re.groups + 1) * (len(match.group(0) or "") + 1)
        require_size(made)
        captured.append(_captured(match))
    return captured


def _captured(match: Match) -> Value:
    if match.re.groupindex:
        return {name: match.group(name) for name in match.re.groupindex}
    return list(match.groups()) if match.re.groups else match.group(0)


def _regex(pattern: str, text: str) -> Value:
    match = compile_re2(pattern).search(text)
    if match is None:
        raise EvaluationError("pattern did not match any part of the given string")
    return _captures(iter([match]))[0]


def _basename(path: str) -> str:
    return posixpath.basename(path.rstrip("/")) or ("/" if path else ".")


def _indent(spaces: int, text: str) -> str:
    require_size(len(text) + text.count("\n") * max(int(spaces), 0))
    return text.replace("\n", "\n" + " " * int(spaces))


TEXT_FUNCTIONS: dict[str, TableFunction] = {
    "chomp": lambda s: to_text(s).rstrip("\r\n"),
    "endswith": lambda s, suffix: to_text(s).endswith(to_text(suffix)),
    "format": lambda pattern, *rest: go_format(to_text(pattern), rest),
    "formatlist": lambda pattern, *rest: _formatlist(to_text(pattern), rest),
    "indent": lambda n, s: _indent(n, to_text(s)),
    "join": lambda separator, *lists: _join(to_text(separator), [to_text(item) for items in lists for item in items]),
    "lower": lambda s: to_text(s).lower(),
    "regex": lambda pattern, s: _regex(to_text(pattern), to_text(s)),
    "regexall": lambda pattern, s: _captures(compile_re2(to_text(pattern)).finditer(to_text(s))),
    "replace": lambda s, a, b: _replace(to_text(s), to_text(a), to_text(b)),
    "split": lambda separator, s: to_text(s).split(to_text(separator)) if to_text(separator) else list(to_text(s)),
    "startswith": lambda s, prefix: to_text(s).startswith(to_text(prefix)),
    "strcontains": lambda s, part: to_text(part) in to_text(s),
    "strrev": lambda s: "".join(reversed(characters(to_text(s)))),
    "substr": lambda s, start, length: _substr(to_text(s), int(start), int(length)),
    "title": lambda s: _title(to_text(s)),
    "trim": lambda s, cut: to_text(s).strip(to_text(cut)),
    "trimprefix": lambda s, prefix: to_text(s).removeprefix(to_text(prefix)),
    "trimspace": lambda s: to_text(s).strip(),
    "trimsuffix": lambda s, suffix: to_text(s).removesuffix(to_text(suffix)),
    "upper": lambda s: _upper(to_text(s)),
    "basename": lambda s: _basename(to_text(s)),
    "dirname": lambda s: posixpath.dirname(to_text(s)) or ".",
    "abspath": lambda s: posixpath.normpath(to_text(s)) if to_text(s).startswith("/") else to_text(s),
    "pathexpand": to_text,
}


def _join(separator: str, texts: list[str]) -> str:
    require_size(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _formatlist(pattern: str, arguments: tuple[Value, ...]) -> list[str]:
    length = max((len(argument) for argument in arguments if isinstance(argument, list)), default=1)
    results, made = [], 0
    for i in range(length):
        values = tuple(argument[i] if isinstance(argument, list) else argument for argument in arguments)
        results.append(go_format(pattern, values))
        made += len(results[-1])
        require_size(made)
    return results
