"""Templates with `%{ if }` and `%{ for }`: rendering of a string's parts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from coder.domain.hcl import tree
from coder.domain.hcl.bounds import require_size
from coder.domain.hcl.parser import parse_expression_untrusted
from coder.domain.hcl.values import UNKNOWN, EvaluationError, SetValue, Value, is_unknown, to_bool, to_text

if TYPE_CHECKING:
    from coder.domain.hcl.scope import EvaluationScope

Part = str | tree.Expression
Evaluate = Callable[[tree.Expression, "EvaluationScope"], Value]
_FOR = re.compile(r"for\s+([\w-]+)(?:\s*,\s*([\w-]+))?\s+in\s+(.+)", re.DOTALL)


def render_template(parts: tuple[Part, ...], scope: EvaluationScope, evaluate: Evaluate) -> Value:
    """Return the text, or UNKNOWN when a part is. Raises EvaluationError."""
    return _Rendering(parts, evaluate).run(scope)


class _Rendering:
    def __init__(self, parts: tuple[Part, ...], evaluate: Evaluate) -> None:
        self._parts = parts
        self._evaluate = evaluate

    def run(self, scope: EvaluationScope) -> Value:
        text, stop = self._until(0, scope, frozenset())
        if stop != len(self._parts):
            raise EvaluationError("unexpected directive in template")
        return text

    def _until(self, at: int, scope: EvaluationScope, ends: frozenset[str]) -> tuple[Value, int]:
        """Return the text of the parts from `at` up to a directive in `ends`, and the directive's position."""
        texts: list[Value] = []
        while at < len(self._parts):
            part = self._parts[at]
            if isinstance(part, tree.Directive):
                word = part.source.split(None, 1)[0] if part.source else ""
                if word in ends:
                    break
                text, at = self._directive(word, part, at, scope)
                texts.append(text)
                continue
            texts.append(part if isinstance(part, str) else self._evaluate(part, scope))
            at += 1
        if any(is_unknown(text) for text in texts):
            return UNKNOWN, at
        return _joined([to_text(text) for text in texts]), at

    def _directive(self, word: str, part: tree.Directive, at: int, scope: EvaluationScope) -> tuple[Value, int]:
        if word == "if":
            return self._if(part, at, scope)
        if word == "for":
            return self._for(part, at, scope)
        raise EvaluationError(f"unexpected directive {word!r} in template")

    def _if(self, part: tree.Directive, at: int, scope: EvaluationScope) -> tuple[Value, int]:
        condition = self._evaluate(parse_expression_untrusted(part.source[2:]), scope)
        if_true, end = self._until(at + 1, scope, frozenset({"else", "endif"}))
        if_false: Value = ""
        if self._word(end) == "else":
            if_false, end = self._until(end + 1, scope, frozenset({"endif"}))
        self._expect(end, "endif")
        if is_unknown(condition):
            return UNKNOWN, end + 1
        return (if_true if to_bool(condition) else if_false), end + 1

    def _for(self, part: tree.Directive, at: int, scope: EvaluationScope) -> tuple[Value, int]:
        match = _FOR.fullmatch(part.source)
        if not match:
            raise EvaluationError("malformed for directive in template")
        first, second, source = match.groups()
        collection = self._evaluate(parse_expression_untrusted(source), scope)
        texts: list[Value] = []
        for key, value in [] if is_unknown(collection) else _pairs(collection):
            names = {first: key, second: value} if second else {first: value}
            texts.append(self._until(at + 1, scope.with_names(**names), frozenset({"endfor"}))[0])
        end = self._skip(at + 1)
        if is_unknown(collection) or any(is_unknown(text) for text in texts):
            return UNKNOWN, end + 1
        return _joined([to_text(text) for text in texts]), end + 1

    def _skip(self, at: int) -> int:
        """Return the position of the endfor that matches the for whose body starts at `at`."""
        depth = 1
        while at < len(self._parts):
            depth += {"for": 1, "endfor": -1}.get(self._word(at), 0)
            if depth == 0:
                return at
            at += 1
        raise EvaluationError("endfor is missing in template")

    def _word(self, at: int) -> str:
        part = self._parts[at] if at < len(self._parts) else ""
        return part.source.split(None, 1)[0] if isinstance(part, tree.Directive) and part.source else ""

    def _expect(self, at: int, word: str) -> None:
        if self._word(at) != word:
            raise EvaluationError(f"{word} is missing in template")


def _joined(texts: list[str]) -> str:
    require_size(sum(map(len, texts)))  # "${x}${x}${x}…": many times what it is written as
    return "".join(texts)


def _pairs(collection: Value) -> list[tuple[Value, Value]]:
    if isinstance(collection, dict):
        return [(key, collection[key]) for key in sorted(collection)]
    if isinstance(collection, SetValue):
        return [(item, item) for item in collection]
    if isinstance(collection, list):
        return list(enumerate(collection))
    raise EvaluationError("only collections can be iterated")
