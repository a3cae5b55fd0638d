"""Definition of a resource or data source: its schema and its specific functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from coder.provisionerd.terraform.provider.diagnostics import Diagnostic
from coder.provisionerd.terraform.provider.schema import Schema
from coder.provisionerd.terraform.provider.values import ValueObject


@dataclass(frozen=True, slots=True)
class ProviderContext:
    """Context of a provider instance besides the configuration."""

    environment: Mapping[str, str]
    "CODER_* variables of the job (not of this process)."
    url: str
    "Access URL: the provider block's, else CODER_AGENT_URL, else a placeholder."
    new_id: Callable[[], str]
    "Function that returns random UUID texts."
    os: str = "linux"
    arch: str = "amd64"


Body = ValueObject
PlanCheck = Callable[[ProviderContext, Body, Body], Iterable[Diagnostic]]
"(context, configuration, planned state)"
Create = Callable[[ProviderContext, Body, Body], Iterable[Diagnostic]]
"(context, configuration, state to complete in place)"
Refresh = Callable[[ProviderContext, Body], None]
"(context, state to change in place)"
Read = Callable[[ProviderContext, Body, Body], Iterable[Diagnostic]]
"(context, configuration, state to complete in place)"


@dataclass(frozen=True, slots=True)
class ResourceKind:
    schema: Schema
    plan: PlanCheck | None = None
    create: Create | None = None
    refresh: Refresh | None = None


@dataclass(frozen=True, slots=True)
class DataKind:
    schema: Schema
    read: Read
