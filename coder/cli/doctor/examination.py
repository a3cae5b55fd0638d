"""State of one run of `coder doctor`: what the checks know about the machine and from each other."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime

from coder.cli.core.command import Invocation
from coder.cli.declarations.doctor.doctor import DoctorOptions
from coder.cli.doctor.findings import Finding
from coder.net.policy import DialPolicy


@dataclass
class Examination:
    """What is known so far."""

    invocation: Invocation[DoctorOptions]
    policy: DialPolicy | None = None
    "The way to the deployment; None when no address is known."
    is_reachable: bool = False
    "Whether the deployment's API answered."
    is_signed_in: bool = False
    now: Callable[[], datetime] = field(default=lambda: datetime.now(UTC))

    @property
    def workspace(self) -> str:
        return self.invocation.args[0] if self.invocation.args else ""


@dataclass(frozen=True, slots=True)
class Check:
    """One step of the examination."""

    name: str
    "Finding that stands for the whole step when it gives no result; a key of `REASONS`."
    title: str
    "Text of the progress line."
    limit: float
    "Seconds after which the step is given up."
    run: Callable[[Examination], Awaitable[list[Finding]]]
