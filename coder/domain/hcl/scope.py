"""Evaluation scope: the names and functions an expression may use, and its cost limit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from coder.domain.hcl.values import (
    EvaluationError,
    Value,
)

Function = Callable[..., Value]


@dataclass(slots=True)
class EvaluationBudget:
    """Cost limit of all expressions in one rendering; an untrusted template must not block a server."""

    left: int = 1_000_000
    """Remaining units: one for each expression evaluated and for each character or element created."""

    def spend(self, amount: int) -> None:
        self.left -= amount
        if self.left < 0:
            raise EvaluationError("the template requires too much computation")


@dataclass(frozen=True, slots=True)
class EvaluationScope:
    names: Mapping[str, Value]
    functions: Mapping[str, Function] = field(default_factory=dict)
    budget: EvaluationBudget = field(default_factory=EvaluationBudget)

    def with_names(self, **names: Value) -> EvaluationScope:
        return EvaluationScope({**self.names, **names}, self.functions, self.budget)
