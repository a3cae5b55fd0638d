"""Registration of this proxy at its server every half minute, and the reason if that fails.

A rejected token ends the process, since the proxy was deleted. An unreachable server is retried; requests that the
cached keys cover continue meanwhile.
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
from coder.net.errors import HttpError, NetError, requested_delay
from coder.net.masking import masked
from coder.wsproxy.config import ProxyConfig
from coder.wsproxy.primary import Primary, is_token_refused

INTERVAL_SECONDS = 30.0
"""Seconds between two registrations, as upstream does."""
MAX_SILENCE = 90.0
"""Seconds after which the server no longer lists this proxy to its siblings, so that it counts as unhealthy."""

_log = get_logger("registration")

OnAnswer = Callable[[RegisterWorkspaceProxyResponse], None]


class Registration:
    """Registration state of this process."""

    def __init__(self, primary: Primary, config: ProxyConfig) -> None:
        self._primary = primary
        self._config = config
        self.replica_id: UUID = uuid4()
        self.primary_info: BuildInfoResponse | None = None
        self.problem = ""
        "Reason of the last failed attempt; empty after a success."
        self.registered = trio.Event()
        "Event that is set by the first answer."
        self._last_success: float | None = None
        self._doubted = trio.Event()

    def check_now(self) -> None:
        """Check the proxy's token immediately, because a call with it was rejected."""
        self._doubted.set()

    def unhealthy_reason(self) -> str:
        """Return why the proxy is not registered; empty if it is."""
        if self._last_success is None:
            return f"this proxy is not registered: {self.problem or 'it has just started'}"
        silent = trio.current_time() - self._last_success
        return f"the server was not reached for {int(silent)} s: {self.problem}" if silent > MAX_SILENCE else ""

    async def keep(self, on_answer: OnAnswer) -> None:
        """Register periodically, forever. Raise CoderError if the server rejects the proxy for good."""
        backoff = Backoff(0.5, INTERVAL_SECONDS, jitter=0.3)
        while True:
            self._doubted = trio.Event()
            began, delay = trio.current_time(), INTERVAL_SECONDS
            try:
                on_answer(await self._register_once())
                backoff.reset()
                self.problem = ""
                self._last_success = trio.current_time()
                self.registered.set()
            except CoderError as error:
                refusal = _final_error(error, self._primary.url)
                if refusal is not None:
                    raise refusal from error
                self.problem = _describe_error(error)
                requested = requested_delay(error)
                attempt = 0.0 if requested else trio.current_time() - began
                delay = max(backoff.next_delay(attempt), requested)
                _log.warn("the proxy could not be registered, retrying", reason=self.problem)
            with trio.move_on_after(delay):
                await self._doubted.wait()

    async def _register_once(self) -> RegisterWorkspaceProxyResponse:
        if self.primary_info is None:
            info = await self._primary.build_info()
            if info.workspace_proxy:
                raise CoderError(
                    "primary_is_proxy",
                    f"{masked(self._primary.url)} is a workspace proxy itself",
                    f"Set the server's own URL in --primary-access-url: {info.dashboard_url}.",
                )
            self.primary_info = info
        return await self._primary.register(self._registration_body())

    def _registration_body(self) -> RegisterWorkspaceProxyRequest:
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

    async def deregister_proxy(self) -> None:
        """Deregister from the server, which otherwise notices the missing registrations."""
        if not self.registered.is_set():
            return
        try:
            await self._primary.deregister(self.replica_id)
        except CoderError as error:
            _log.debug("the proxy could not be deregistered", reason=error.message)


def _describe_error(error: CoderError) -> str:
    """Return the error with its hint; hints about rejected tokens are for terminals."""
    text = f"{error} ({error.hint})" if isinstance(error, NetError) and error.hint else str(error)
    return " ".join(text.split())  # a proxy's page has lines


def _final_error(error: CoderError, primary: str) -> CoderError | None:
    """Return the error to exit with; None for temporary errors."""
    if is_token_refused(error):
        return CoderError(
            "proxy_token",
            f"{primary} does not accept the token of this workspace proxy",
            "The proxy was deleted, or given another token. `coder workspace-proxy regenerate-token NAME` prints a "
            "new one for --proxy-session-token.",
        )
    if isinstance(error, HttpError) and error.status == 400 and (error.is_enveloped or error.validations):
        validations = "; ".join(f"{item.get('field', '')}: {item.get('detail', '')}" for item in error.validations)
        return CoderError(
            "proxy_refused",
            f"{primary} rejects the registration of this workspace proxy ({validations or error.message})",
            "Correct --access-url, --wildcard-access-url and the options of the relay.",
        )
    return error if error.code == "primary_is_proxy" else None
