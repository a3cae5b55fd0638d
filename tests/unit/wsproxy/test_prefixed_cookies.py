"""`--host-prefix-cookie` at a workspace proxy: its sessions use only cookies with the prefix `__Host-`."""

from __future__ import annotations

from uuid import UUID

from coder.base.config import Inputs
from coder.coderd.services.apps import app_tokens
from coder.domain.access.session_cookies import PATH_SESSION_COOKIE, SESSION_COOKIE
from coder.domain.apps.app_headers import API_KEY_QUERY
from coder.wsproxy.config import proxy_config
from tests.kit.api.http_clients import http_client
from tests.kit.server.server_in_process import running_coderd
from tests.kit.server.workspace_proxy import new_proxy, running_proxy

APP = "/@admin/none/apps/web/"


def test_the_setting_has_an_effect() -> None:
    flags = {"primary-access-url": "https://coder.test", "proxy-session-token": f"{UUID(int=7)}:s"}
    config = proxy_config(Inputs(flags=flags, env={"CODER_HOST_PREFIX_COOKIE": "true"}))
    assert config.server.host_prefix_cookie


async def test_planted_session_is_rejected() -> None:
    async with running_coderd(first_user=True) as world:
        token = await new_proxy(world)
        async with running_proxy(world, token, host_prefix_cookie=True) as proxy, http_client() as browser:
            await proxy.world.registration.registered.wait()
            sealed = await app_tokens.seal_key(world.ctx, world.token)
            landed = await browser.get(f"{proxy.world.access_url}{APP}?{API_KEY_QUERY}={sealed}")
            (line,) = landed.headers.get_list("set-cookie")
            assert line.startswith(f"__Host-{PATH_SESSION_COOKIE}={world.token}; Path=/; ") and "; Secure" in line

            async def status(cookie: str) -> int:
                browser.cookies.clear()
                answer = await browser.get(proxy.world.access_url + APP, headers={"Cookie": cookie})
                return answer.status_code

            # With a login, the workspace does not exist; without one, the proxy requires a login.
            assert await status(f"__Host-{PATH_SESSION_COOKIE}={world.token}") == 404
            assert await status(f"__Host-{SESSION_COOKIE}={world.token}") == 404
            for planted in (PATH_SESSION_COOKIE, SESSION_COOKIE):
                assert await status(f"{planted}={world.token}") == 303, planted
