"""Position of the parser among the tokens of a file, and its depth."""

from __future__ import annotations

from coder.domain.hcl.lexer import HclError, Lexer, Token
from coder.domain.hcl.tree import Span

_MAX_DEPTH = 60
"""Ours: real templates are not nested deeper."""


class TokenCursor:
    def __init__(self, text: str, name: str, start: int = 0, end: int | None = None, line: int = 1) -> None:
        self._text = text
        self._name = name
        self._lexer = Lexer(text, name, start, end, line)
        self._tokens = self._lexer.tokens()
        self._at = 0
        self._depth = 0
        self._counted = (start, line)
        "Offset and line at which `line_at` stopped."

    def peek(self, ahead: int = 0) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def take(self) -> Token:
        token = self.peek()
        self._at += 1
        return token

    def accept(self, kind: str) -> bool:
        if self.peek().kind == kind:
            self._at += 1
            return True
        return False

    def expect(self, kind: str, complaint: str) -> Token:
        if self.peek().kind != kind:
            raise self.fail(complaint)
        return self.take()

    def fail(self, complaint: str) -> HclError:
        return self._lexer.fail(complaint, self.peek().start)

    def skip_newlines(self) -> None:
        while self.peek().kind == "newline":
            self._at += 1

    def span(self, start: Token) -> Span:
        end = self._tokens[self._at - 1].end if self._at else start.end
        return Span(start.start, end, start.line)

    def line_at(self, at: int) -> int:
        """Return the line of an offset, counted from the last one: from the beginning each time, a text of many
        interpolations would be read as often as it has some."""
        start, line = self._counted
        line += self._text.count("\n", start, at) if at >= start else -self._text.count("\n", at, start)
        self._counted = (at, line)
        return line

    def _enter(self) -> int:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self.fail("Nested too deeply")
        return self._depth
