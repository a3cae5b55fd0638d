"""Tokens to trees: the structural part (blocks and attributes) and expressions by operator precedence."""

from __future__ import annotations

import math

from coder.domain.foundation.numbers import decimal
from coder.domain.hcl.lexer import Token
from coder.domain.hcl.template_layout import Strip, laid_out
from coder.domain.hcl.token_cursor import TokenCursor
from coder.domain.hcl.tree import (
    BinaryOperation,
    Conditional,
    Directive,
    Expression,
    File,
    ForExpression,
    FunctionCall,
    HclAttribute,
    HclBlock,
    HclBody,
    Index,
    Literal,
    Object,
    Parentheses,
    Span,
    Splat,
    SplatItem,
    TemplateExpression,
    Tuple,
    UnaryOperation,
    Variable,
)
from coder.domain.hcl.values import EvaluationError, read_number, well_formed

_PRECEDENCE = {
    "||": 1,
    "&&": 2,
    "==": 3,
    "!=": 3,
    "<": 4,
    ">": 4,
    "<=": 4,
    ">=": 4,
    "+": 5,
    "-": 5,
    "*": 6,
    "/": 6,
    "%": 6,
}
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\"}


def parse_file_untrusted(text: str, name: str = "") -> File:
    """Parse a whole file. Raises HclError."""
    parser = _Parser(text, name)
    return File(name, text, parser.body("end"))


def parse_expression_untrusted(text: str, name: str = "") -> Expression:
    """Parse a single expression. Raises HclError."""
    parser = _Parser(text, name)
    parser.skip_newlines()
    result = parser.expression()
    parser.skip_newlines()
    parser.expect("end", "Extra characters after expression")
    return result


class _Parser(TokenCursor):
    # --- structure
    def body(self, closing: str) -> HclBody:
        body = HclBody()
        while True:
            self.skip_newlines()
            if self.accept(closing):
                return body
            name = self.expect("identifier", "Argument or block definition required")
            if self.accept("="):
                if name.text in body.attributes:
                    raise self._lexer.fail(f"The argument {name.text!r} was already set", name.start)
                body.attributes[name.text] = self.expression()
                self._end_of_item(closing)
            else:
                body.blocks.append(self._block(name))
                self._end_of_item(closing)

    def _end_of_item(self, closing: str) -> None:
        if self.peek().kind not in {"newline", "end", closing}:
            raise self.fail("Missing newline after argument or block")

    def _block(self, name: Token) -> HclBlock:
        labels: list[str] = []
        while self.peek().kind in {"identifier", "string"}:
            token = self.take()
            labels.append(token.text if token.kind == "identifier" else self._plain_string(token))
        if not self.accept("{"):
            raise self.fail("Argument or block definition required" if not labels else "Invalid block definition")
        span = self.span(name)
        with_depth = self._enter()
        body = self.body("}")
        self._depth = with_depth - 1
        return HclBlock(name.text, tuple(labels), body, span)

    def _plain_string(self, token: Token) -> str:
        template = self._template(token)
        if any(not isinstance(part, str) for part in template.parts):
            raise self._lexer.fail("Template sequences are not allowed here", token.start)
        return "".join(part for part in template.parts if isinstance(part, str))

    # --- expressions
    def expression(self) -> Expression:
        depth = self._enter()
        try:
            start = self.peek()
            condition = self._binary(1)
            if not self.accept("?"):
                return condition
            self.skip_newlines()
            if_true = self.expression()
            self.skip_newlines()
            self.expect(":", "Missing false expression in conditional")
            self.skip_newlines()
            if_false = self.expression()
            return Conditional(self.span(start), condition, if_true, if_false)
        finally:
            self._depth = depth - 1

    def _binary(self, lowest: int) -> Expression:
        start = self.peek()
        left = self._unary()
        while True:
            operator = self.peek().kind
            precedence = _PRECEDENCE.get(operator, 0)
            if precedence < lowest:
                return left
            self.take()
            self.skip_newlines()
            right = self._binary(precedence + 1)
            left = BinaryOperation(self.span(start), operator, left, right)

    def _unary(self) -> Expression:
        start = self.peek()
        if start.kind in {"-", "!"}:
            depth = self._enter()
            self.take()
            operand = self._unary()
            self._depth = depth - 1
            return UnaryOperation(self.span(start), start.kind, operand)
        return self._traversals(start, self._term())

    def _traversals(self, start: Token, of: Expression) -> Expression:
        while True:
            if self.peek().kind == "." and self.peek(1).kind in {"identifier", "number", "*"}:
                self.take()
                step = self.take()
                if step.kind == "*":
                    return self._splat(start, of, attributes_only=True)
                of = self._dotted(start, of, step)
            elif self.peek().kind == "[":
                if self.peek(1).kind == "*" and self.peek(2).kind == "]":
                    self._at += 3
                    return self._splat(start, of, attributes_only=False)
                self.take()
                self.skip_newlines()
                key = self.expression()
                self.skip_newlines()
                self.expect("]", "Missing close bracket on index")
                of = Index(self.span(start), of, key)
            else:
                return of

    def _dotted(self, start: Token, of: Expression, step: Token) -> Expression:
        if step.kind == "identifier":
            return HclAttribute(self.span(start), of, step.text)
        # `a.0.1` arrives as one number
        for digits in step.text.split("."):
            key = Literal(Span(step.start, step.end, step.line), decimal(digits) or 0)
            of = Index(self.span(start), of, key)
        return of

    def _splat(self, start: Token, of: Expression, *, attributes_only: bool) -> Expression:
        depth = self._enter()  # the rest of the traversals is inside: a thousand splats are a thousand calls
        item_start = self.peek()
        each: Expression = SplatItem(self.span(item_start))
        if attributes_only:
            while self.peek().kind == "." and self.peek(1).kind == "identifier":
                self.take()
                each = HclAttribute(self.span(item_start), each, self.take().text)
            result = self._traversals(start, Splat(self.span(start), of, each))
        else:
            result = Splat(self.span(start), of, self._traversals(item_start, each))
        self._depth = depth - 1
        return result

    def _term(self) -> Expression:
        token = self.take()
        match token.kind:
            case "number":
                return Literal(self.span(token), self._number(token))
            case "string" | "heredoc":
                return self._template(token)
            case "(":
                self.skip_newlines()
                inner = self._inside_parentheses()
                return Parentheses(self.span(token), inner)
            case "[":
                return self._tuple(token)
            case "{":
                return self._object(token)
            case "identifier":
                return self._word(token)
        self._at -= 1
        raise self.fail("Invalid expression")

    def _number(self, token: Token) -> int | float:
        try:
            return read_number(token.text)
        except EvaluationError:
            return math.inf  # only an expression that uses it has no value

    def _inside_parentheses(self) -> Expression:
        # Inside parentheses line breaks have no meaning, so an operator may begin a line.
        depth = 1
        index = self._at
        kept: list[Token] = []
        while depth:
            token = self._tokens[min(index, len(self._tokens) - 1)]
            if token.kind == "end":
                raise self.fail("Unbalanced parentheses")
            depth += {"(": 1, ")": -1}.get(token.kind, 0)
            kept.append(token)
            index += 1
        self._tokens[self._at : index] = _without_loose_newlines(kept)
        inner = self.expression()
        self.skip_newlines()
        self.expect(")", "Unbalanced parentheses")
        return inner

    def _word(self, token: Token) -> Expression:
        if token.text in {"true", "false", "null"}:
            return Literal(self.span(token), {"true": True, "false": False, "null": None}[token.text])
        name = token.text
        while self.peek().kind == ":" and self.peek(1).kind == ":" and self.peek(2).kind == "identifier":
            self._at += 2
            name += "::" + self.take().text
        if self.peek().kind == "(":
            return self._call(token, name)
        return Variable(self.span(token), name)

    def _call(self, start: Token, name: str) -> Expression:
        self.take()
        arguments: list[Expression] = []
        expand = False
        self.skip_newlines()
        while not self.accept(")"):
            arguments.append(self.expression())
            self.skip_newlines()
            expand = self.accept("...")
            self.skip_newlines()
            if not self.accept(",") and self.peek().kind != ")":
                raise self.fail("Missing argument separator")
            self.skip_newlines()
        return FunctionCall(self.span(start), name, tuple(arguments), expand)

    def _tuple(self, start: Token) -> Expression:
        self.skip_newlines()
        if self._is_for():
            return self._for(start, "]")
        items: list[Expression] = []
        while not self.accept("]"):
            items.append(self.expression())
            self.skip_newlines()
            if not self.accept(",") and self.peek().kind != "]":
                raise self.fail("Missing item separator")
            self.skip_newlines()
        return Tuple(self.span(start), tuple(items))

    def _object(self, start: Token) -> Expression:
        self.skip_newlines()
        if self._is_for():
            return self._for(start, "}")
        items: list[tuple[Expression, Expression]] = []
        while not self.accept("}"):
            key = self.expression()
            if not (self.accept("=") or self.accept(":")):
                raise self.fail("Missing key/value separator")
            self.skip_newlines()
            items.append((key, self.expression()))
            if self.peek().kind not in {",", "newline", "}"}:
                raise self.fail("Missing attribute separator")
            self.accept(",")
            self.skip_newlines()
        return Object(self.span(start), tuple(items))

    def _is_for(self) -> bool:
        return self.peek().text == "for" and self.peek().kind == "identifier" and self.peek(1).kind == "identifier"

    def _for(self, start: Token, closing: str) -> Expression:
        self.take()
        names = [self.expect("identifier", "Invalid 'for' expression").text]
        if self.accept(","):
            names.append(self.expect("identifier", "Invalid 'for' expression").text)
        if self.take().text != "in":
            raise self.fail("Invalid 'for' expression")
        self.skip_newlines()
        collection = self.expression()
        self.skip_newlines()
        self.expect(":", "Invalid 'for' expression")
        self.skip_newlines()
        key: Expression | None = None
        value = self.expression()
        self.skip_newlines()
        if self.accept("=>"):
            self.skip_newlines()
            key, value = value, self.expression()
            self.skip_newlines()
        grouped = self.accept("...")
        self.skip_newlines()
        condition: Expression | None = None
        if self.peek().kind == "identifier" and self.peek().text == "if":
            self.take()
            self.skip_newlines()
            condition = self.expression()
            self.skip_newlines()
        self.expect(closing, "Invalid 'for' expression")
        key_name = names[0] if len(names) > 1 else ""
        return ForExpression(self.span(start), key_name, names[-1], collection, key, value, grouped, condition)

    # --- strings
    def _template(self, token: Token) -> TemplateExpression:
        if token.kind == "string":
            start, end, escapes, indent = token.start + 1, token.end - 1, True, False
        else:
            first_line = self._text.index("\n", token.start)
            start, end, escapes = first_line + 1, self._text.rindex("\n", token.start, token.end) + 1, False
            indent = token.text.startswith("<<-")
        parts, strips = self._parts(start, end, escapes=escapes)
        pieces = laid_out(parts, strips, by_line=not escapes, indented=indent)
        return TemplateExpression(Span(token.start, token.end, token.line), tuple(pieces))

    def _parts(self, start: int, end: int, *, escapes: bool) -> tuple[list[str | Expression], list[Strip]]:
        """Return the parts of a template, and the strip markers (`~`) of each part that is no text."""
        parts: list[str | Expression] = []
        strips: list[Strip] = []
        text: list[str] = []
        index = start
        while index < end:
            if self._text.startswith(("$${", "%%{"), index):
                text.append(self._text[index + 1 : index + 3])
                index += 3
            elif self._text.startswith(("${", "%{"), index):
                close = self._lexer.interpolation_end(index + 2)
                if text:
                    parts.append("".join(text))
                    text = []
                parts.append(self._interpolated(index, close))
                strips.append((self._text[index + 2] == "~", self._text[close - 2] == "~"))
                index = close
            elif escapes and self._text[index] == "\\":
                piece, index = self._escape(index)
                text.append(piece)
            else:
                text.append(self._text[index])
                index += 1
        if text:
            parts.append("".join(text))
        return parts, strips

    def _interpolated(self, start: int, close: int) -> Expression:
        inside = start + 3 if self._text[start + 2] == "~" else start + 2
        end = close - 2 if self._text[close - 2] == "~" else close - 1
        line = self.line_at(start)
        if self._text[start] == "%":
            return Directive(Span(start, close, line), self._text[inside:end].strip())
        parser = _Parser(self._text, self._name, inside, end, line)
        parser._depth = self._enter()
        parser.skip_newlines()
        result = parser.expression()
        parser.skip_newlines()
        parser.expect("end", "Extra characters after interpolation expression")
        self._depth -= 1
        return result

    def _escape(self, index: int) -> tuple[str, int]:
        char = self._text[index + 1 : index + 2]
        if char in _ESCAPES:
            return _ESCAPES[char], index + 2
        length = {"u": 4, "U": 8}.get(char)
        if length:
            digits = self._text[index + 2 : index + 2 + length]
            try:
                return str(well_formed(chr(int(digits, 16)))), index + 2 + length
            except (ValueError, OverflowError):
                pass
        raise self._lexer.fail("Invalid escape sequence", index)


def _without_loose_newlines(tokens: list[Token]) -> list[Token]:
    """Drop line breaks outside braces (object items end at line breaks)."""
    kept: list[Token] = []
    braces = 0
    for token in tokens:
        braces += {"{": 1, "}": -1}.get(token.kind, 0)
        if token.kind != "newline" or braces:
            kept.append(token)
    return kept
