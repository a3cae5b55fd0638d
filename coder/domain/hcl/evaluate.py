"""Evaluation of expressions. Pure: names come from a `Scope`, functions from a table.

Unknown values propagate instead of failing; an undefined name is an EvaluationError.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from decimal import Decimal
from typing import cast

from coder.domain.hcl import tree
from coder.domain.hcl.bounds import TooMuchError
from coder.domain.hcl.directives import render_template
from coder.domain.hcl.functions import MAKES_TEXT
from coder.domain.hcl.scope import EvaluationScope
from coder.domain.hcl.values import (
    OUT_OF_RANGE,
    UNKNOWN,
    UNTYPED,
    EvaluationError,
    Namespace,
    SetValue,
    Value,
    has_unknown,
    is_unknown,
    number,
    to_bool,
    to_number,
    to_text,
    type_name,
    unify,
)


def evaluate(expression: tree.Expression, scope: EvaluationScope) -> Value:
    """Evaluate an expression. Raises EvaluationError."""
    scope.budget.spend(1)
    handler = _HANDLERS.get(type(expression))
    if handler is None:
        raise EvaluationError(f"unsupported expression {type(expression).__name__}")
    return handler(expression, scope)


def _literal(expression: tree.Literal, _scope: EvaluationScope) -> Value:
    return expression.value


def _template(expression: tree.TemplateExpression, scope: EvaluationScope) -> Value:
    parts = expression.parts
    if len(parts) == 1 and isinstance(parts[0], tree.Expression) and not isinstance(parts[0], tree.Directive):
        return evaluate(parts[0], scope)  # "${x}" is x itself, whatever its type
    text = render_template(parts, scope, evaluate)
    scope.budget.spend(len(text) if isinstance(text, str) else 0)
    return text


def _tuple(expression: tree.Tuple, scope: EvaluationScope) -> Value:
    return [evaluate(item, scope) for item in expression.items]


def _object(expression: tree.Object, scope: EvaluationScope) -> Value:
    results: dict[str, Value] = {}
    for key, value in expression.items:
        name = key.name if isinstance(key, tree.Variable) else evaluate(key, scope)
        if is_unknown(name):
            return UNTYPED
        results[to_text(name)] = evaluate(value, scope)
    return results


def _variable(expression: tree.Variable, scope: EvaluationScope) -> Value:
    if expression.name not in scope.names:
        raise EvaluationError(f'There is no variable named "{expression.name}".')
    return scope.names[expression.name]


def _attribute(expression: tree.HclAttribute, scope: EvaluationScope) -> Value:
    return member(evaluate(expression.of, scope), expression.name)


def member(of: Value, name: str) -> Value:
    """Return `of.name`. Raises EvaluationError."""
    if is_unknown(of):
        return UNTYPED
    if isinstance(of, dict):
        if name in of:
            value: Value = of[name]
            return value
        raise EvaluationError(f'This object does not have an attribute named "{name}".')
    if isinstance(of, Namespace):
        return of.member(name)
    raise EvaluationError(f"{type_name(of)} has no attributes")


def _index(expression: tree.Index, scope: EvaluationScope) -> Value:
    of, key = evaluate(expression.of, scope), evaluate(expression.key, scope)
    return index(of, key)


def index(of: Value, key: Value) -> Value:
    """Return `of[key]`. Raises EvaluationError."""
    if is_unknown(of) or is_unknown(key):
        return UNTYPED
    if isinstance(of, SetValue):
        raise EvaluationError("elements of a set have no index")
    if isinstance(of, list):
        position = to_number(key)
        if position != int(position) or not 0 <= position < len(of):
            raise EvaluationError("The given key does not identify an element in this collection value.")
        item: Value = of[int(position)]
        return item
    return member(of, to_text(key))


def _splat(expression: tree.Splat, scope: EvaluationScope) -> Value:
    of = evaluate(expression.of, scope)
    if is_unknown(of):
        return UNTYPED
    items = of if isinstance(of, list) else [] if of is None else [of]
    return [evaluate(expression.each, scope.with_names(**{_SPLAT_ITEM: item})) for item in items]


_SPLAT_ITEM = "*"


def _splat_item(_expression: tree.SplatItem, scope: EvaluationScope) -> Value:
    return scope.names[_SPLAT_ITEM]


def _parentheses(expression: tree.Parentheses, scope: EvaluationScope) -> Value:
    return evaluate(expression.inner, scope)


def _unary(expression: tree.UnaryOperation, scope: EvaluationScope) -> Value:
    value = evaluate(expression.operand, scope)
    if is_unknown(value):
        return UNKNOWN
    return -to_number(value) if expression.operator == "-" else not to_bool(value)


_COMPARISONS = {"<": operator.lt, ">": operator.gt, "<=": operator.le, ">=": operator.ge}


def _binary(expression: tree.BinaryOperation, scope: EvaluationScope) -> Value:
    sign = expression.operator
    left = evaluate(expression.left, scope)
    right = evaluate(expression.right, scope)
    if is_unknown(left) or is_unknown(right):
        return UNKNOWN
    if sign in {"==", "!="}:
        scope.budget.visit(left, right)
        return _same(left, right) is (sign == "==")
    if sign in {"&&", "||"}:
        a, b = to_bool(left), to_bool(right)
        return (a and b) if sign == "&&" else (a or b)
    if sign in _COMPARISONS:
        return bool(_COMPARISONS[sign](to_number(left), to_number(right)))
    return _arithmetic(sign, to_number(left), to_number(right))


def _same(left: Value, right: Value) -> bool:
    if isinstance(left, bool) is not isinstance(right, bool):
        return False  # 1 and true are different, unlike in Python
    return bool(left == right)


_MAX_BITS = 8192
"""Ours: no template needs larger numbers, and they cost the server time."""


def _arithmetic(sign: str, left: int | float, right: int | float) -> Value:
    if sign in {"/", "%"} and right == 0:
        raise EvaluationError("Division by zero")
    try:
        return number(_calculated(sign, left, right))
    except (ArithmeticError, ValueError) as error:  # too large for a float, or more digits than Python writes
        raise EvaluationError(OUT_OF_RANGE) from error


def _calculated(sign: str, left: int | float, right: int | float) -> int | float:
    """Return the result of `left sign right`. Raises EvaluationError, ArithmeticError, ValueError."""
    if isinstance(left, int) and isinstance(right, int):
        if left.bit_length() + right.bit_length() > _MAX_BITS:
            raise EvaluationError(OUT_OF_RANGE)
        if sign == "%":  # the sign of the dividend, unlike in Python
            return abs(left) % abs(right) * (-1 if left < 0 else 1)
        if sign == "/":
            return left // right if left % right == 0 else left / right
        return int(_OPERATIONS[sign](left, right))
    if sign == "%":
        return math.fmod(left, right)
    if sign == "/":
        return left / right
    # Decimals: Terraform's numbers are exact enough that 0.1 + 0.2 is 0.3. A division that was cut off is not exact:
    # rounding to floats makes 1 / 3 * 3 equal 1, as with more digits.
    operate = _OPERATIONS[sign]
    if max(len(repr(item).lstrip("-0.").replace(".", "")) for item in (left, right) if isinstance(item, float)) > 15:
        return float(operate(left, right))
    return float(operate(Decimal(repr(left)), Decimal(repr(right))))


_OPERATIONS = {"+": operator.add, "-": operator.sub, "*": operator.mul}


def _conditional(expression: tree.Conditional, scope: EvaluationScope) -> Value:
    condition = evaluate(expression.condition, scope)
    if is_unknown(condition):
        return UNKNOWN
    chosen, other = (
        (expression.if_true, expression.if_false) if to_bool(condition) else (expression.if_false, expression.if_true)
    )
    value = evaluate(chosen, scope)
    # Text keeps its type, so the other side need not be evaluated.
    return _of_common_type(value, other, scope) if isinstance(value, bool | int | float | list | dict) else value


def _of_common_type(value: Value, other: tree.Expression, scope: EvaluationScope) -> Value:
    """Convert both sides of a conditional to one type: next to a text a number becomes text. A side that fails is
    ignored."""
    try:
        instead = evaluate(other, scope)
    except TooMuchError:
        raise
    except EvaluationError:
        return value
    scope.budget.visit(value, instead)
    return value if has_unknown(value) or has_unknown(instead) else unify([value, instead])[0]


def _call(expression: tree.FunctionCall, scope: EvaluationScope) -> Value:
    name = expression.name.removeprefix("core::")
    if name in {"try", "can"}:
        return _attempt(name, expression, scope)
    function = scope.functions.get(name)
    if function is None:
        raise EvaluationError(f'There is no function named "{name}".')
    arguments = [evaluate(argument, scope) for argument in expression.arguments]
    if expression.expand_last and arguments:
        last = arguments.pop()
        if is_unknown(last):
            return UNKNOWN
        arguments.extend(_expanded(last))
    scope.budget.visit(*arguments, with_text=name in MAKES_TEXT)
    try:
        result = function(*arguments)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError, RecursionError) as problem:
        raise EvaluationError(f"Call to function {name!r} failed: {problem}") from problem
    scope.budget.spend(len(result) if isinstance(result, str | list | dict) else 1)
    return result


def _expanded(value: Value) -> list[Value]:
    """Return the arguments that `f(value...)` stands for. Raises EvaluationError with the original's sentence."""
    if value is None:
        raise EvaluationError("The expanding argument (indicated by ...) must not be null.")
    if not isinstance(value, list):
        raise EvaluationError("The expanding argument (indicated by ...) must be of a tuple, list, or set type.")
    return value


def _attempt(name: str, expression: tree.FunctionCall, scope: EvaluationScope) -> Value:
    for argument in expression.arguments:
        try:
            value = evaluate(argument, scope)
        except TooMuchError:
            raise
        except EvaluationError:
            continue
        if is_unknown(value):
            return UNTYPED  # the chosen alternative is unknown as well
        return True if name == "can" else value
    if name == "can":
        return False
    raise EvaluationError("no expression in try() succeeded")


def _for(expression: tree.ForExpression, scope: EvaluationScope) -> Value:
    collection = evaluate(expression.collection, scope)
    if is_unknown(collection):
        return UNTYPED
    results: list[tuple[Value, Value]] = []
    for key, value in pairs(collection):
        names = {expression.value_name: value}
        if expression.key_name:
            names[expression.key_name] = key
        inner = scope.with_names(**names)
        if expression.condition is not None:
            condition = evaluate(expression.condition, inner)
            if is_unknown(condition):
                return UNTYPED
            if not to_bool(condition):
                continue
        result_key = None if expression.key is None else evaluate(expression.key, inner)
        results.append((result_key, evaluate(expression.value, inner)))
    if expression.key is None:
        return [value for _, value in results]
    return _keyed(results, grouped=expression.grouped)


def _keyed(results: list[tuple[Value, Value]], *, grouped: bool) -> Value:
    result: dict[str, Value] = {}
    groups: dict[str, list[Value]] = {}
    for key, value in results:
        if is_unknown(key):
            return UNTYPED
        name = to_text(key)
        if grouped:
            groups.setdefault(name, []).append(value)
        elif name in result:
            raise EvaluationError(f"Two different items produced the key {name!r} in this 'for' expression.")
        else:
            result[name] = value
    return {**groups} if grouped else result


def pairs(collection: Value) -> list[tuple[Value, Value]]:
    """Return key and value of each element, maps in order of their keys. Raises EvaluationError."""
    if isinstance(collection, dict):
        return [(key, collection[key]) for key in sorted(collection)]
    if isinstance(collection, SetValue):
        return [(item, item) for item in collection]
    if isinstance(collection, list):
        return list(enumerate(collection))
    raise EvaluationError(f"{type_name(collection)} cannot be iterated")


_Handler = Callable[[tree.Expression, EvaluationScope], Value]
_HANDLERS = cast(
    "dict[type[tree.Expression], _Handler]",
    {
        tree.Literal: _literal,
        tree.TemplateExpression: _template,
        tree.Tuple: _tuple,
        tree.Object: _object,
        tree.ForExpression: _for,
        tree.Variable: _variable,
        tree.HclAttribute: _attribute,
        tree.Index: _index,
        tree.Splat: _splat,
        tree.SplatItem: _splat_item,
        tree.Parentheses: _parentheses,
        tree.UnaryOperation: _unary,
        tree.BinaryOperation: _binary,
        tree.Conditional: _conditional,
        tree.FunctionCall: _call,
    },
)
"""Each handler declares the class that it is listed under."""
