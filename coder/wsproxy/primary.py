"""Client of a proxy for the calls to its server (the server side is `services/proxies/proxy_calls.py`)."""

from __future__ import annotations

from types import TracebackType
from typing import TypeVar
from uuid import UUID

import msgspec

from coder.api.agents.agent_connection import AgentConnectionInfo
from coder.api.base import codec
from coder.api.base.struct import ApiStruct
from coder.api.proxies import sealed_keys
from coder.api.proxies.proxies import (
    AppStat,
    CryptoKey,
    CryptoKeysResponse,
    DeregisterWorkspaceProxyRequest,
    IssueSignedAppTokenResponse,
    IssueTokenRequest,
    MayStayRequest,
    MayStayResponse,
    RegisterWorkspaceProxyRequest,
    RegisterWorkspaceProxyResponse,
    ReportAppStatsRequest,
)
from coder.api.proxies.proxy_token import TOKEN_HEADER, TOKEN_MISSING, TOKEN_REFUSED
from coder.api.site.build_info import BuildInfoResponse
from coder.base.secret import Secret
from coder.net.errors import HttpError, NetError
from coder.net.http1 import HttpClient
from coder.net.masking import masked
from coder.net.policy import DialPolicy

_ROOT = "/api/v2/workspaceproxies/me"
COORDINATE = f"{_ROOT}/coordinate?version=2.0"
TIMEOUT = 20.0
"""Timeout in seconds, as a visitor can be waiting for the answer."""
KEEP = 8
"""Maximum idle connections, as visitors come in bursts."""

T = TypeVar("T")


def is_token_refused(error: Exception) -> bool:
    """Return whether the server rejected the proxy's own token."""
    return isinstance(error, HttpError) and error.status == 401 and error.message in {TOKEN_MISSING, TOKEN_REFUSED}


class Primary:
    """Calls to the server. All raise HttpError if it rejects them and NetError if it is unreachable."""

    def __init__(self, url: str, token: Secret) -> None:
        self.url = url
        self.policy = DialPolicy(url, token, token_header=TOKEN_HEADER)
        self._http = HttpClient(self.policy, keep=KEEP)

    async def __aenter__(self) -> Primary:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._http.aclose()

    async def build_info(self) -> BuildInfoResponse:
        return await self._get("/api/v2/buildinfo", BuildInfoResponse)

    async def is_direct_blocked(self) -> bool:
        """Return whether the deployment restricts peers to relays."""
        info = await self._get("/api/v2/workspaceagents/connection", AgentConnectionInfo)
        return info.disable_direct_connections

    async def register(self, body: RegisterWorkspaceProxyRequest) -> RegisterWorkspaceProxyResponse:
        return self._read(await self._post("register", body), RegisterWorkspaceProxyResponse)

    async def deregister(self, replica_id: UUID) -> None:
        await self._post("deregister", DeregisterWorkspaceProxyRequest(replica_id=replica_id))

    async def crypto_keys(self, feature: str) -> list[CryptoKey]:
        return (await self._get(f"{_ROOT}/crypto-keys?feature={feature}", CryptoKeysResponse)).crypto_keys

    async def issue_ticket(self, issue_request: IssueTokenRequest) -> str:
        body = await self._post("issue-signed-app-token", issue_request)
        return self._read(body, IssueSignedAppTokenResponse).signed_token_str

    async def may_stay(self, body: MayStayRequest) -> bool:
        return self._read(await self._post("may-stay", body), MayStayResponse).may_stay

    async def report_stats(self, stats: list[AppStat]) -> None:
        await self._post("app-stats", ReportAppStatsRequest(stats=stats))

    async def _get(self, path: str, kind: type[T]) -> T:
        return self._read((await self._http.request("GET", path, timeout=TIMEOUT)).body, kind)

    async def _post(self, call: str, request_body: ApiStruct) -> bytes:
        # Without this header, the server answers with HTML pages for browsers.
        headers = [("Content-Type", "application/json"), ("Accept", "application/json")]
        headers += [(sealed_keys.HEADER, sealed_keys.READ)] * (call == "register")
        body = codec.encode(request_body)
        return (await self._http.request("POST", f"{_ROOT}/{call}", body=body, headers=headers, timeout=TIMEOUT)).body

    def _read(self, body: bytes, kind: type[T]) -> T:
        try:
            return codec.decode(body, kind)
        except (msgspec.DecodeError, msgspec.ValidationError) as error:
            raise NetError(
                "protocol", f"{masked(self.url)} does not answer as a Coder server", "Check --primary-access-url."
            ) from error
