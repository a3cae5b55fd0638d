"""Characters to tokens. Strings and heredocs stay whole here; `parser` splits them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from coder.base.errors import CoderError


class HclError(CoderError):
    """A file that is not HCL. The message is `file:line,column: problem`."""

    def __init__(self, message: str, line: int = 0, column: int = 0, file: str = "") -> None:
        super().__init__("bad_hcl", f"{file}:{line},{column}: {message}" if line else message)
        self.problem = message
        self.line = line
        self.column = column


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    "identifier, number, string, heredoc, newline, end, or the punctuation itself"
    text: str
    start: int
    end: int
    line: int


_SPACE = re.compile(r"[ \t\r\ufeff]+|//[^\n]*|#[^\n]*|/\*.*?\*/", re.DOTALL)
_IDENTIFIER = re.compile(r"[^\W\d][\w-]*", re.UNICODE)
_NUMBER = re.compile(r"\d+(?:\.\d+)?(?:[eE][+-]?\d+)?")
_HEREDOC = re.compile(r"<<-?([^\W\d][\w-]*)\r?\n", re.UNICODE)
_PUNCTUATION = (
    "...",
    "&&",
    "||",
    "==",
    "!=",
    "<=",
    ">=",
    "=>",
    "{",
    "}",
    "[",
    "]",
    "(",
    ")",
    "=",
    ",",
    ":",
    ".",
    "?",
    "+",
    "-",
    "*",
    "/",
    "%",
    "<",
    ">",
    "!",
)


_MAX_NESTED = 60
"""Ours: nesting depth of strings within interpolations within strings."""


class Lexer:
    """Tokens of one text, or of a part of it (`start` to `end`) with positions of the whole."""

    def __init__(self, text: str, file: str = "", start: int = 0, end: int | None = None, line: int = 1) -> None:
        self._text = text
        self._file = file
        self._at = start
        self._end = len(text) if end is None else end
        self._line = line
        self._nested = 0

    def tokens(self) -> list[Token]:
        """Return the tokens. Raises HclError."""
        results: list[Token] = []
        while True:
            token = self._next()
            results.append(token)
            if token.kind == "end":
                return results

    def fail(self, message: str, at: int) -> HclError:
        line = self._text.count("\n", 0, at) + 1
        column = at - (self._text.rfind("\n", 0, at) + 1) + 1
        return HclError(message, line, column, self._file)

    def _next(self) -> Token:
        while True:
            space = _SPACE.match(self._text, self._at, self._end)
            if not space:
                break
            self._line += space.group(0).count("\n")
            self._at = space.end()
        at = self._at
        if at >= self._end:
            return self._make("end", at)
        char = self._text[at]
        if char == "\n":
            return self._make("newline", at + 1)
        if char == '"':
            return self._make("string", self._string_end(at))
        for kind, pattern in (("identifier", _IDENTIFIER), ("number", _NUMBER)):
            match = pattern.match(self._text, at, self._end)
            if match:
                return self._make(kind, match.end())
        heredoc = _HEREDOC.match(self._text, at, self._end)
        if heredoc:
            return self._make("heredoc", self._heredoc_end(heredoc))
        if self._text.startswith("/*", at):
            # As division and multiplication it would be an error, too; but each one searches the rest of the file.
            raise self.fail("Unterminated comment", at)
        for mark in _PUNCTUATION:
            if self._text.startswith(mark, at):
                return self._make(mark, at + len(mark))
        raise self.fail(f"Invalid character {char!r}", at)

    def _make(self, kind: str, end: int) -> Token:
        token = Token(kind, self._text[self._at : end], self._at, end, self._line)
        self._line += token.text.count("\n")
        self._at = end
        return token

    def _string_end(self, at: int) -> int:
        """Return the offset behind the closing quote; quotes inside `${...}` belong to inner strings."""
        index = at + 1
        while index < self._end:
            char = self._text[index]
            if char == "\\":
                index += 2
            elif char == '"':
                return index + 1
            elif char == "\n":
                break
            elif self._text.startswith(("$${", "%%{"), index):
                index += 3
            elif self._text.startswith(("${", "%{"), index):
                index = self.interpolation_end(index + 2)
            else:
                index += 1
        raise self.fail("Unterminated template string", at)

    def interpolation_end(self, index: int) -> int:
        """Return the offset behind the brace that closes an interpolation whose inside starts at `index`."""
        depth = 1
        start = index
        self._nested += 1
        if self._nested > _MAX_NESTED:
            raise self.fail("Nested too deeply", start)
        while index < self._end:
            char = self._text[index]
            if char == '"':
                index = self._string_end(index)
                continue
            if char == "{":
                depth += 1
            elif char == "}":
                depth -= 1
                if depth == 0:
                    self._nested -= 1
                    return index + 1
            index += 1
        raise self.fail("Unterminated interpolation", start)

    def _heredoc_end(self, opening: re.Match[str]) -> int:
        closing = re.compile(rf"^[ \t]*{re.escape(opening.group(1))}[ \t]*\r?$", re.MULTILINE)
        match = closing.search(self._text, opening.end(), self._end)
        if not match:
            raise self.fail(f"Unterminated heredoc {opening.group(1)}", opening.start())
        return match.end()
