"""Evaluation scope: the names and functions an expression may use, and its cost limit."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from coder.domain.hcl.bounds import MAX_MADE, TooMuchError, require_size, weigh
from coder.domain.hcl.values import Function, Value


@dataclass(slots=True)
class EvaluationBudget:
    """Cost limit of all expressions in one rendering; an untrusted template must not block a server."""

    left: int = MAX_MADE
    """Remaining units: one for each expression evaluated and for each character or element created."""
    visits: int = 20 * MAX_MADE
    """Remaining visits of elements inside arguments. A visit costs a tenth of making an element, and a template may use
    the same large value often."""

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise TooMuchError

    def visit(self, *values: Value, with_text: bool = False) -> None:
        """Charge for a walk through values before it happens: lists of lists may share their parts, and so have more
        elements than were ever created. `with_text`: the walk copies their texts."""
        if with_text or any(isinstance(value, list | dict) for value in values):
            weight = weigh(values, with_text=with_text)
            require_size(weight)
            self.visits -= weight
            if self.visits < 0:
                raise TooMuchError


@dataclass(frozen=True, slots=True)
class EvaluationScope:
    names: Mapping[str, Value]
    functions: Mapping[str, Function] = field(default_factory=dict)
    budget: EvaluationBudget = field(default_factory=EvaluationBudget)

    def with_names(self, /, **names: Value) -> EvaluationScope:
        return EvaluationScope({**self.names, **names}, self.functions, self.budget)
