"""The tree of a parsed file: blocks, attributes, expressions. Plain data; each node has its position."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Span:
    """Half-open range of offsets into the file's text, and the line it starts on (from 1)."""

    start: int
    end: int
    line: int


@dataclass(frozen=True, slots=True)
class Expression:
    span: Span


@dataclass(frozen=True, slots=True)
class Literal(Expression):
    """Number, bool or null."""

    value: int | float | bool | None


@dataclass(frozen=True, slots=True)
class TemplateExpression(Expression):
    """String: texts and interpolated expressions. A plain string has one text or none."""

    parts: tuple[str | Expression | Directive, ...]


@dataclass(frozen=True, slots=True)
class Directive(Expression):
    """`%{ ... }` inside a template, unparsed: keyword and the source of its rest."""

    source: str


@dataclass(frozen=True, slots=True)
class Tuple(Expression):
    items: tuple[Expression, ...]


@dataclass(frozen=True, slots=True)
class Object(Expression):
    items: tuple[tuple[Expression, Expression], ...]
    "A bare word as key is a Variable; it means its own name unless it stands in parentheses."


@dataclass(frozen=True, slots=True)
class ForExpression(Expression):
    key_name: str
    """Name of the key variable; empty when only values are named."""
    value_name: str
    collection: Expression
    key: Expression | None
    """Key expression; None if the result is a tuple."""
    value: Expression
    grouped: bool
    condition: Expression | None


@dataclass(frozen=True, slots=True)
class Variable(Expression):
    name: str


@dataclass(frozen=True, slots=True)
class FunctionCall(Expression):
    name: str
    arguments: tuple[Expression, ...]
    expand_last: bool


@dataclass(frozen=True, slots=True)
class HclAttribute(Expression):
    """`of.name`."""

    of: Expression
    name: str


@dataclass(frozen=True, slots=True)
class Index(Expression):
    """`of[key]`; `.0` is parsed as an index too."""

    of: Expression
    key: Expression


@dataclass(frozen=True, slots=True)
class Splat(Expression):
    """`of.*` or `of[*]`; the rest of the traversal applies to each element."""

    of: Expression
    each: Expression
    "An expression over `SplatItem`."


@dataclass(frozen=True, slots=True)
class SplatItem(Expression):
    pass


@dataclass(frozen=True, slots=True)
class Parentheses(Expression):
    inner: Expression


@dataclass(frozen=True, slots=True)
class UnaryOperation(Expression):
    operator: str
    operand: Expression


@dataclass(frozen=True, slots=True)
class BinaryOperation(Expression):
    operator: str
    left: Expression
    right: Expression


@dataclass(frozen=True, slots=True)
class Conditional(Expression):
    condition: Expression
    if_true: Expression
    if_false: Expression


@dataclass(frozen=True, slots=True)
class HclBody:
    attributes: dict[str, Expression] = field(default_factory=dict)
    blocks: list[HclBlock] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class HclBlock:
    type: str
    labels: tuple[str, ...]
    body: HclBody
    span: Span
    """Span of the header, up to the opening brace."""


@dataclass(frozen=True, slots=True)
class File:
    name: str
    text: str
    body: HclBody

    def source(self, span: Span) -> str:
        """Return the source text of a node."""
        return self.text[span.start : span.end]
