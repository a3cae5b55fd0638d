"""Near misses: what a misspelt command, flag, value or variable probably means.

A suggestion is printed only for a close match, so lines without one stay as they were.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from coder.base.config import Option

_CLOSE = 0.8
"""Similarity (`difflib`, 0 to 1) from which a word counts as misspelt."""
_UNKNOWN_FLAG = re.compile(r"unknown flag: --(\S+)$")
_NO_CHOICE = re.compile(r"invalid choice: (.*), should be one of \[|: \"?([^\":]*)\"? is not one of ")


def nearest(word: str, candidates: Iterable[str]) -> str:
    """Return the candidate that `word` probably means; "" if none is close."""
    from difflib import get_close_matches

    by_folded = {candidate.casefold(): candidate for candidate in candidates}
    found = get_close_matches(word.casefold(), by_folded, n=1, cutoff=_CLOSE)
    return by_folded[found[0]] if found else ""


def for_usage_error(message: str, options: Sequence[Option]) -> str:
    """Return the line that follows the message of an invalid command line; "" without a close match."""
    if match := _UNKNOWN_FLAG.search(message):
        found = nearest(match[1], (option.flag for option in options if option.flag and not option.hidden))
        return f"Did you mean --{found}?\n" if found else ""
    if match := _NO_CHOICE.search(message):
        found = nearest(match[1] or match[2] or "", (choice for option in options for choice in option.choices))
        return f'Did you mean "{found}"?\n' if found else ""
    return ""


def for_subcommand(group: str, word: str, words: Iterable[str]) -> str:
    """Return the line that follows the message of an unknown subcommand; "" without a close match."""
    found = nearest(word, words)
    return f"Did you mean `coder {f'{group} {found}'.strip()}`?\n" if found else ""


def misspelt_variables(environment: Mapping[str, str], known: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield the variables that look like a misspelt setting, with the setting's name."""
    names = {name for name in known if name}
    for name in environment:
        if (
            name.startswith("CODER_")
            and name not in names
            and (found := nearest(name, names))
            and _is_typo(name, found)
        ):
            yield name, found


def _is_typo(name: str, known: str) -> bool:
    """Return whether one letter is missing, extra, different or swapped: CODER_AGENT_URL is no CODER_AGENT_KEY."""
    if sorted(name) == sorted(known):
        return True
    short, long = sorted((name, known), key=len)
    if len(short) == len(long):
        return sum(a != b for a, b in zip(short, long, strict=True)) == 1
    return len(long) - len(short) == 1 and any(long[:at] + long[at + 1 :] == short for at in range(len(long)))
