"""Appearance settings of the deployment."""

from __future__ import annotations

from typing import Any

from coder.api.base import codec
from coder.coderd.services.site import deployment
from coder.coderd.store.site import site_settings
from tests.kit.server.server_in_process import running_coderd

PATH = "/api/v2/appearance"


def _appearance(**banner: Any) -> dict[str, Any]:
    return {
        "application_name": "",
        "logo_url": "",
        "service_banner": {"enabled": False},
        "announcement_banners": [banner],
    }


async def test_banner_requires_colour() -> None:
    async with running_coderd(first_user=True) as world:
        for colour in ("", "red", "#12345", "#12345g", "#1234567"):
            refused = await world.put(PATH, _appearance(enabled=True, message="m", background_color=colour))
            assert refused.status_code == 400 and "Invalid color format" in refused.text, colour
        taken = await world.put(PATH, _appearance(enabled=True, message="m", background_color="#aB12cd"))
        assert taken.status_code == 200, taken.text


STORED_BANNERS: list[dict[str, Any]] = [{}, {"background_color": ""}, {"background_color": "red"}]


async def test_stored_banner_without_colour() -> None:
    async with running_coderd(first_user=True) as world:
        for stored in STORED_BANNERS:
            look = _appearance(enabled=True, message="m", **stored)
            await world.ctx.db.run(site_settings.put_config, deployment._APPEARANCE, codec.encode(look).decode())
            view = (await world.get(PATH)).json()["announcement_banners"]
            for banners in ([*look["announcement_banners"]], view):
                changed = await world.put(PATH, {**look, "application_name": "x", "announcement_banners": banners})
                assert changed.status_code == 200, f"{stored}: {changed.text}"
