"""That this proxy lives, said to its server every half minute; and what is wrong when it cannot be said.

A token the server does not know ends the process: nothing it does is wanted any more. A server that is away is asked
again and again; what this proxy has keys for goes on meanwhile.
"""

from __future__ import annotations

import socket
from collections.abc import Callable
from uuid import UUID, uuid4

import trio

from coder.api.proxies.proxies import RegisterWorkspaceProxyRequest, RegisterWorkspaceProxyResponse
from coder.api.site.build_info import BuildInfoResponse
from coder.base.errors import CoderError
from coder.base.log import get_logger
from coder.base.retry import Backoff
from coder.base.version import BUILD_VERSION
from coder.net.errors import HttpError, NetError
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.primary import Primary, is_token_refused

EVERY = 30.0
"""Seconds between two registrations, as upstream's."""
SILENCE = 90.0
"""Seconds after which the server stops naming us to our siblings: from then on we are not well."""

_log = get_logger("registration")

OnAnswer = Callable[[RegisterWorkspaceProxyResponse], None]


class Registration:
    """What this process says of itself, and what came back."""

    def __init__(self, primary: Primary, config: ProxyConfig) -> None:
        self._primary = primary
        self._config = config
        self.replica_id: UUID = uuid4()
        self.primary_info: BuildInfoResponse | None = None
        self.problem = ""
        "Why the last attempt failed, in words; empty when it worked."
        self.registered = trio.Event()
        "Set by the first answer."
        self._last_success: float | None = None
        self._doubted = trio.Event()

    def doubt(self) -> None:
        """Somebody was refused for our token: ask at once whether it still holds."""
        self._doubted.set()

    def explain_unwell(self) -> str:
        """What is wrong with being registered; empty when nothing is."""
        if self._last_success is None:
            return f"this proxy is not registered: {self.problem or 'it has just started'}"
        silent = trio.current_time() - self._last_success
        return f"the server was not reached for {int(silent)} s: {self.problem}" if silent > SILENCE else ""

    async def keep(self, on_answer: OnAnswer) -> None:
        """Registers for ever. Raises CoderError when the server refuses for good."""
        backoff = Backoff(0.5, EVERY)
        while True:
            self._doubted = trio.Event()
            delay = EVERY
            try:
                on_answer(await self._once())
                backoff.reset()
                self.problem = ""
                self._last_success = trio.current_time()
                self.registered.set()
            except CoderError as error:
                refusal = _final(error, self._primary.url)
                if refusal is not None:
                    raise refusal from error
                self.problem = _in_words(error)
                delay = backoff.next_delay()
                _log.warn("the server could not be told that this proxy lives, trying again", reason=self.problem)
            with trio.move_on_after(delay):
                await self._doubted.wait()

    async def _once(self) -> RegisterWorkspaceProxyResponse:
        if self.primary_info is None:
            info = await self._primary.build_info()
            if info.workspace_proxy:
                raise CoderError(
                    "primary_is_proxy",
                    f"{self._primary.url} is a workspace proxy itself",
                    f"Give the server's own address by --primary-access-url; it says it is {info.dashboard_url}.",
                )
            self.primary_info = info
        return await self._primary.register(self._introduction())

    def _introduction(self) -> RegisterWorkspaceProxyRequest:
        server = self._config.server
        return RegisterWorkspaceProxyRequest(
            access_url=server.access_url,
            wildcard_hostname=server.wildcard_access_url,
            derp_enabled=server.derp_server_enable,
            derp_only=self._config.derp_only,
            replica_id=self.replica_id,
            replica_hostname=socket.gethostname(),
            replica_error="",
            replica_relay_address=server.derp_server_relay_url,
            version=BUILD_VERSION,
        )

    async def say_goodbye(self) -> None:
        """Tells the server that this process ends; it finds out by itself, too."""
        if not self.registered.is_set():
            return
        try:
            await self._primary.deregister(self.replica_id)
        except CoderError as error:
            _log.debug("the server was not told that this process ends", reason=error.message)


def _in_words(error: CoderError) -> str:
    """What went wrong and what helps; hints about refusals are for people at a terminal."""
    return f"{error} ({error.hint})" if isinstance(error, NetError) and error.hint else str(error)


def _final(error: CoderError, primary: str) -> CoderError | None:
    """What to end with; None for what may be otherwise in a moment."""
    if is_token_refused(error):
        return CoderError(
            "proxy_token",
            f"{primary} does not accept the token of this workspace proxy",
            "The proxy was deleted, or given another token. `coder workspace-proxy regenerate-token NAME` prints a "
            "new one for --proxy-session-token.",
        )
    if isinstance(error, HttpError) and error.status == 400:
        wrong = "; ".join(f"{item.get('field', '')}: {item.get('detail', '')}" for item in error.validations)
        return CoderError(
            "proxy_refused",
            f"{primary} does not accept what this workspace proxy says of itself ({wrong or error.message})",
            "Correct --access-url, --wildcard-access-url and the options of the relay.",
        )
    return error if error.code == "primary_is_proxy" else None
