"""Near misses: what a misspelt command, flag, value or variable probably means.

A suggestion is printed only for a close match, so lines without one stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coder.base.config import Option
from coder.base.json_types import Json

_CLOSE = 0.8
"""Similarity (`difflib`, 0 to 1) from which a word counts as misspelt."""
_CLOSE_CHOICE = 0.7
"""The same for a value of a short list: `jsno` is `json`."""
_UNKNOWN_FLAG = re.compile(r"unknown flag: --(\S+)$")


def nearest(word: str, candidates: Iterable[str], cutoff: float = _CLOSE) -> str:
    """Return the candidate that `word` probably means; "" if none is close."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=cutoff)
    return by_folded[found[0]] if found else ""


def near_misses(word: str, candidates: Iterable[str]) -> list[str]:
    """Return at most three candidates that `word` may mean, the closest first: names are less regular than words."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    return [by_folded[found] for found in get_close_matches(word.casefold(), by_folded, n=3)]


def name_hint(name: str, known: Iterable[str], list_command: str) -> str:
    """Return the next step for an unknown name: the names that were probably meant, or the command that lists all."""
    found = [f'"{item}"' for item in near_misses(name, known)]
    if found:
        return f"Did you mean {' or '.join(found)}?"
    return f"List what you can see with `{list_command}`." if list_command else ""


_QUOTED = '("[^"]*")'
_GO_FAULTS = (
    (
        re.compile(rf"strconv\.Parse(?:Int|Uint): parsing {_QUOTED}: invalid syntax"),
        r"\1 is not a whole number",
        "Write a number, like 3.",
    ),
    (
        re.compile(rf"strconv\.Parse(?:Int|Uint): parsing {_QUOTED}: value out of range"),
        r"\1 is out of range",
        "Write a smaller number.",
    ),
    (
        re.compile(rf"strconv\.ParseBool: parsing {_QUOTED}: invalid syntax"),
        r"\1 is not a truth value",
        "Write true or false.",
    ),
    (
        re.compile(rf"time: (?:missing unit in|invalid) duration {_QUOTED}"),
        r"\1 is not a duration",
        "Write it like 90s, 15m or 2h30m.",
    ),
)
"""Texts of Go's packages that scripts know, the same for people, and the next step."""


def plain_fault(message: str) -> tuple[str, str]:
    """Return a message without the names of Go's packages, and the next step; "" for other messages."""
    for pattern, plain, step in _GO_FAULTS:
        text, count = pattern.subn(plain, message)
        if count:
            return text, step
    return message, ""


def for_usage_error(message: str, options: Sequence[Option]) -> str:
    """Return the line that follows the message of an invalid command line; "" without a close match."""
    if match := _UNKNOWN_FLAG.search(message):
        found = nearest(match[1], (option.flag for option in options if option.flag and not option.hidden))
        return f"Did you mean --{found}?\n" if found else ""
    if word := _rejected_choice(message):
        choices = (choice for option in options for choice in option.choices)
        found = nearest(word, choices, _CLOSE_CHOICE)
        return f'Did you mean "{found}"?\n' if found else ""
    return ""


def _rejected_choice(message: str) -> str:
    """Return the value that a message of `flag_values.py` or `base/config.py` rejects; "" for other messages."""
    _, named, rest = message.partition("invalid choice: ")
    if named:
        return rest.partition(", should be one of [")[0]
    before, listed, _ = message.partition(" is not one of ")
    return before.rpartition(": ")[2].strip('"') if listed else ""


def for_subcommand(group: str, word: str, words: Iterable[str]) -> str:
    """Return the line that follows the message of an unknown subcommand; "" without a close match."""
    found = nearest(word, words)
    return f"Did you mean `coder {f'{group} {found}'.strip()}`?\n" if found else ""


def quoted_variables(environment: Mapping[str, str], known: Iterable[str]) -> list[str]:
    """Return the known variables whose value has quotation marks around it: a shell removes them, but files for
    `docker --env-file` and manifests of Kubernetes keep them, and no setting is meant to have them."""
    values = ((name, environment.get(name, "").strip()) for name in known)
    return [name for name, value in values if len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]]


def misspelt_variables(environment: Mapping[str, str], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that look like a misspelt setting, with the setting's name.

    Every command runs this, so it compares no word with `difflib`, whose import costs more than a short command.
    """
    names = {name for name in known if name}
    for name in environment:
        if name.startswith("CODER_") and name not in names:
            found = next((item for item in names if abs(len(item) - len(name)) <= 1 and _is_typo(name, item)), "")
            if found:
                yield name, found


def unknown_keys(document: Mapping[str, Json], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the dotted keys of a settings file that no setting has, with the probable setting ("" without one)."""
    keys = {key for key in known if key}
    groups = {".".join(words[:end]) for key in keys for words in (key.split("."),) for end in range(1, len(words))}

    def walk(node: Mapping[str, Json], prefix: str) -> Iterator[tuple[str, str]]:
        for name, value in node.items():
            key = f"{prefix}{name}"
            if key in keys:
                continue
            if key in groups and isinstance(value, Mapping):
                yield from walk(value, f"{key}.")
            elif key not in groups:
                yield key, nearest(key, keys | groups)
            elif value is not None:
                yield key, ""

    return walk(document, "")


def variables_warning(environment: Mapping[str, str], known: Iterable[str]) -> str:
    """Return the line about misspelt variables, which have no effect; "" without any."""
    found = [f"{name} (did you mean {meant}?)" for name, meant in misspelt_variables(environment, known)]
    return f"WARN: unknown variables have no effect: {', '.join(found)}\n" if found else ""


_DIFFERENT = frozenset({"CODER_SCALETEST_OUTPUT", "CODER_SCALETEST_OUTPUTS"})
"""Variables of two commands that differ by one letter."""


def _is_typo(name: str, known: str) -> bool:
    """Return whether one letter is missing, extra or different, or two neighbours are swapped: CODER_AGENT_URL is no
    CODER_AGENT_KEY."""
    if name in _DIFFERENT:
        return False
    short, long = sorted((name, known), key=len)
    if len(short) == len(long):
        at = [index for index, (a, b) in enumerate(zip(short, long, strict=True)) if a != b]
        is_swapped = len(at) == 2 and at[1] - at[0] == 1 and short[at[0]] == long[at[1]] and short[at[1]] == long[at[0]]
        return len(at) == 1 or is_swapped
    return len(long) - len(short) == 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
