"""Count the steps a backtracking matcher needs for a pattern and a text, in the order of Python's `re`.

One step is one compared letter or one tried branch. The library does not report its steps, and seconds depend on the
machine. Shortcuts of the library (a literal that a match must begin with) are left out: they change what a step costs,
not how the number of steps grows.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

_parser: Any = vars(re)["_parser"]
_c: Any = vars(re)["_constants"]

Go = Callable[[int], bool]
"Goes on behind a part of the pattern from here."
Part = Callable[[int, Go], bool]

_CATEGORIES = {
    _c.CATEGORY_DIGIT: r"\d",
    _c.CATEGORY_NOT_DIGIT: r"\D",
    _c.CATEGORY_SPACE: r"\s",
    _c.CATEGORY_NOT_SPACE: r"\S",
    _c.CATEGORY_WORD: r"\w",
    _c.CATEGORY_NOT_WORD: r"\W",
}
_SINGLE = {_c.LITERAL, _c.NOT_LITERAL, _c.ANY, _c.IN}


class TooManyError(Exception):
    """More steps than were allowed."""


class Steps:
    """One pattern, asked of texts as one of its methods would."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.tree = _parser.parse(pattern.pattern, pattern.flags)
        self._ignores_case = bool(pattern.flags & re.IGNORECASE)
        self._dot_all = bool(pattern.flags & re.DOTALL)
        self._many_lines = bool(pattern.flags & re.MULTILINE)
        self._text = ""
        self._most = self._taken = 0
        self._groups: dict[int, tuple[int, int]] = {}
        self._whole = self._sequence(list(self.tree))

    def of(self, use: str, text: str, most: int) -> int:
        """Steps of `pattern.<use>(text)`. Raises TooManyError."""
        self._text, self._taken, self._most, at = text, 0, most, 0
        with _deep():
            while at <= len(text):
                self._groups = {}
                ends: list[int] = []

                def ended(end: int, ends: list[int] = ends) -> bool:
                    ends.append(end)
                    return use != "fullmatch" or end == len(text)

                found = self._whole(at, ended)
                if use in {"match", "fullmatch"} or (found and use == "search"):
                    break
                at = max(ends[-1], at + 1) if found else at + 1
        return self._taken

    def _step(self) -> None:
        self._taken += 1
        if self._taken > self._most:
            raise TooManyError

    # ---- parts

    def _sequence(self, nodes: list[Any]) -> Part:
        parts = [self._part(op, value) for op, value in nodes]

        def run(at: int, go: Go, number: int = 0) -> bool:
            if number == len(parts):
                return go(at)
            return parts[number](at, lambda end: run(end, go, number + 1))

        return run

    def _part(self, op: Any, value: Any) -> Part:
        if op in _SINGLE:
            fits = self._letter(op, value)
            return lambda at, go: fits(at) and go(at + 1)
        if op in {_c.MAX_REPEAT, _c.MIN_REPEAT, _c.POSSESSIVE_REPEAT}:
            return self._repeat(op, *value)
        if op is _c.SUBPATTERN:
            return self._group(value[0], self._sequence(list(value[3])))
        if op is _c.BRANCH:
            ways = [self._sequence(list(way)) for way in value[1]]
            return lambda at, go: any(way(at, go) for way in ways)
        if op is _c.ATOMIC_GROUP:
            return self._atomic(self._sequence(list(value)))
        if op in {_c.ASSERT, _c.ASSERT_NOT}:
            return self._look(op is _c.ASSERT, value[0], value[1])
        if op is _c.AT:
            return lambda at, go: self._is_at(value, at) and go(at)
        if op is _c.GROUPREF:
            return self._again(value)
        raise NotImplementedError(op)

    def _letter(self, op: Any, value: Any) -> Callable[[int], bool]:
        known: dict[str, bool] = {}

        def fits(at: int) -> bool:
            self._step()
            if at >= len(self._text):
                return False
            letter = self._text[at]
            if letter not in known:
                known[letter] = self._is(op, value, letter) or (
                    self._ignores_case and self._is(op, value, letter.swapcase())
                )
            return known[letter]

        return fits

    def _is(self, op: Any, value: Any, letter: str) -> bool:
        if op is _c.LITERAL:
            return bool(ord(letter[0]) == value)
        if op is _c.NOT_LITERAL:
            return bool(ord(letter[0]) != value)
        if op is _c.ANY:
            return self._dot_all or letter != "\n"
        if op is _c.RANGE:
            return bool(value[0] <= ord(letter[0]) <= value[1])
        if op is _c.CATEGORY:
            return re.fullmatch(_CATEGORIES[value], letter[0]) is not None
        negated = value[0][0] is _c.NEGATE
        return any(self._is(one, what, letter) for one, what in value[negated:]) != bool(negated)

    def _repeat(self, op: Any, least: int, most: Any, inner: Any) -> Part:
        part = self._sequence(list(inner))
        atomic, lazy = op is _c.POSSESSIVE_REPEAT, op is _c.MIN_REPEAT
        most = sys.maxsize if most is _c.MAXREPEAT else most
        if len(inner) == 1 and inner[0][0] in _SINGLE:
            return self._run(self._letter(*inner[0]), least, most, atomic=atomic, lazy=lazy)

        def more(at: int, go: Go, count: int) -> bool:
            self._step()

            def again(end: int) -> bool:
                return (end > at or count < least) and more(end, go, count + 1)

            if lazy and count >= least and go(at):
                return True
            if count < most and part(at, again):
                return True
            return not lazy and count >= least and go(at)

        greedy: Part = lambda at, go: more(at, go, 0)  # noqa: E731
        return self._atomic(greedy) if atomic else greedy

    def _run(self, fits: Callable[[int], bool], least: int, most: int, *, atomic: bool, lazy: bool) -> Part:
        """Of single letters: no deeper for each of them."""

        def lazily(at: int, go: Go) -> bool:
            end = at
            while end - at < least:
                if not fits(end):
                    return False
                end += 1
            while not go(end):
                if end - at >= most or not fits(end):
                    return False
                end += 1
            return True

        def greedily(at: int, go: Go) -> bool:
            end = at
            while end - at < most and fits(end):
                end += 1
            if end - at < least:
                return False
            for last in (end,) if atomic else range(end, at + least - 1, -1):
                self._step()
                if go(last):
                    return True
            return False

        return lazily if lazy else greedily

    def _group(self, number: int | None, part: Part) -> Part:
        def run(at: int, go: Go) -> bool:
            before = self._groups.get(number) if number is not None else None

            def ended(end: int) -> bool:
                if number is not None:
                    self._groups[number] = (at, end)
                return go(end)

            if part(at, ended):
                return True
            if number is not None and before is not None:
                self._groups[number] = before
            return False

        return run

    def _atomic(self, part: Part) -> Part:
        def run(at: int, go: Go) -> bool:
            ends: list[int] = []
            return part(at, lambda end: ends.append(end) is None) and go(ends[0])

        return run

    def _look(self, wanted: bool, direction: int, inner: Any) -> Part:
        part, width = self._sequence(list(inner)), inner.getwidth()[0]

        def run(at: int, go: Go) -> bool:
            start = at if direction > 0 else at - width
            return (start >= 0 and part(start, lambda _end: True)) == wanted and go(at)

        return run

    def _is_at(self, place: Any, at: int) -> bool:
        self._step()
        text, size = self._text, len(self._text)
        if place in {_c.AT_BEGINNING, _c.AT_BEGINNING_STRING}:
            lines = self._many_lines and place is _c.AT_BEGINNING
            return at == 0 or (lines and text[at - 1] == "\n")
        if place is _c.AT_END:
            return at == size or (text[at] == "\n" and (self._many_lines or at == size - 1))
        if place is _c.AT_END_STRING:
            return at == size
        sides = [0 <= one < size and re.match(r"\w", text[one]) is not None for one in (at - 1, at)]
        return (sides[0] != sides[1]) == (place is _c.AT_BOUNDARY)

    def _again(self, number: int) -> Part:
        def run(at: int, go: Go) -> bool:
            self._step()
            start, end = self._groups.get(number, (0, -1))
            if end < start or not self._text.startswith(self._text[start:end], at):
                return False
            return go(at + end - start)

        return run


@contextmanager
def _deep() -> Iterator[None]:
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(50_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(before)


# ---- texts that are hard for a pattern


def sample(nodes: Any) -> str:
    """A text that this part of a pattern takes, as short as may be."""
    return "".join(_sample(op, value) for op, value in nodes)


def _sample(op: Any, value: Any) -> Any:
    if op is _c.LITERAL:
        return chr(value)
    if op is _c.IN and value[0][0] is not _c.NEGATE:
        first, what = value[0]
        known = {_c.CATEGORY_DIGIT: "0", _c.CATEGORY_SPACE: " "}
        return str(known.get(what, "a")) if first is _c.CATEGORY else chr(what[0] if first is _c.RANGE else what)
    if op in _SINGLE:
        refused = {what for one, what in value[1:] if one is _c.LITERAL} if op is _c.IN else {value}
        return next(letter for letter in "a0!~\x02" if ord(letter) not in refused)
    if op in {_c.MAX_REPEAT, _c.MIN_REPEAT, _c.POSSESSIVE_REPEAT}:
        return sample(value[2]) * max(value[0], 1)
    if op is _c.SUBPATTERN:
        return sample(value[3])
    if op is _c.BRANCH:
        return sample(value[1][0])
    return sample(value) if op is _c.ATOMIC_GROUP else ""


def samples(tree: Any) -> tuple[list[str], list[str]]:
    """Samples of each part and of each alternative; and of what comes before each part that may go on and on."""
    pieces: dict[str, None] = {}
    starts: dict[str, None] = {"": None}

    def walk(nodes: Any, before: str) -> None:
        pieces[sample(nodes)] = None
        for op, value in nodes:
            pieces[_sample(op, value)] = None
            if op in {_c.MAX_REPEAT, _c.MIN_REPEAT}:
                starts[before] = None
            if op in {_c.MAX_REPEAT, _c.MIN_REPEAT, _c.POSSESSIVE_REPEAT}:
                walk(value[2], before)
            elif op is _c.SUBPATTERN:
                walk(value[3], before)
            elif op is _c.BRANCH:
                for way in value[1]:
                    walk(way, before)
            elif op is _c.ATOMIC_GROUP:
                walk(value, before)
            elif op is _c.IN and value[0][0] is not _c.NEGATE:
                pieces.update((_sample(_c.IN, [one]), None) for one in value)
            before += _sample(op, value)

    walk(tree, "")
    for start in starts:  # a beginning over and over, of which none comes to its end
        pieces |= dict.fromkeys((start, f"{start} ", f"{start}\n"))
    return [piece for piece in pieces if piece], list(starts)
