"""Hosts of applications in every spelling."""

from __future__ import annotations

from pathlib import Path

from tests.kit.agents.scripted_agent import eventually
from tests.unit.appproxy.apps.test_apps import view_context

OPEN = "open--dev--admin.apps.test"
SAME = (
    OPEN,
    OPEN.upper(),
    "Open--Dev--Admin.Apps.Test",
    f"{OPEN}:80",
    f"{OPEN}:3000",
    "open--main--dev--admin.apps.test",
)
"""Spellings of the host of a public application."""
ODD = (
    *[
        f"{OPEN}{end}"
        for end in (
            "..",
            ":",
            ":x",
            ":99999",
            ":-1",
            ":80:80",
            "%00",
            "%2e",
            "/",
            "\\",
            "@evil.test",
            "#",
            "?",
            ".evil.test",
            ".apps.test",
        )
    ],
    *[
        f"{label}.apps.test"
        for label in (
            "xn--open--dev--admin",
            "xn--",
            "xn--80ak6aa92e",
            "open--dev--admin.xn--p1ai",
            "op_en--dev--admin",
            "_open--dev--admin",
            "open--dev--admin_",
            "open--dev--",
            "--dev--admin",
            "open----admin",
            "------",
            "--",
            "-",
            "_",
            "",
            ".",
            "..",
            ".open--dev--admin",
            "open--dev--admin.",
            "open--dev.--admin",
            "a.open--dev--admin",
            "o" * 64,
            "o" * 300,
            f"{'o' * 64}--dev--admin",
            f"open--{'d' * 300}--admin",
            f"open--dev--{'a' * 5000}",
            "open--dev--adm\u0131n",
            "\uff4fpen--dev--admin",
            "open\u200b--dev--admin",
            "open--dev--admin%00",
            "open%2d%2ddev--admin",
            "open---dev--admin",
            "open--dev--admin--x--y",
            "x---open--dev--admin---",
            "---open--dev--admin",
            "*",
            "*--*--*",
            "open--dev--*",
            "99999999999999999999--main--dev--admin",
            "\u0661--main--dev--admin",
            "-1--main--dev--admin",
            "1e3--main--dev--admin",
            "0x50--main--dev--admin",
            "80s s--main--dev--admin",
            "s--main--dev--admin",
            "[::1]",
            "[",
            "127.0.0.1",
        )
    ],
    *[
        f"open--dev--admin.{rest}"
        for rest in (
            "apps",
            "test",
            "apps.test.",
            "app.test",
            "xapps.test",
            "apps_test",
            "apps..test",
            "apps.test.apps.test",
        )
    ],
)
"""Hosts of no application. One of them is accepted nevertheless, see `LENIENT`."""
LENIENT = {"open--dev--admin.apps.test.", f"{OPEN}:99999"}
"""Spellings that are equal: with a trailing dot, or with a port."""


async def test_application_host_spellings(tmp_path: Path) -> None:
    wrong = []
    async with view_context(tmp_path) as s:

        async def asked(host: str) -> tuple[int, bool]:
            response = await s.get("/echo", token="", headers={"Host": host.encode()})
            return response.status_code, response.text.startswith('{"method"')

        async def reached() -> bool:
            return (await asked(OPEN))[1]

        await eventually(reached)
        for host in SAME:
            if not (await asked(host))[1]:
                wrong.append(f"the application itself: {host}")
        for host in ODD:
            status, came_in = await asked(host)
            if status >= 500 or (came_in and host.strip() not in {*LENIENT, OPEN}):
                wrong.append(f"{host[:80]!r}: {status} {came_in}")
    assert not wrong, "\n".join(wrong)
