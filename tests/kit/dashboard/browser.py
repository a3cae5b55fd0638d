"""Debian's chromium by Playwright, and the checks that every page of the dashboard has to pass."""

from __future__ import annotations

import contextlib
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Locator, Page

from tests.kit.server.server_process import ROOT

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
SOON = 60_000  # milliseconds; a limit for slow machines, not a wait
LAYOUT_MS = SOON
AXE = ROOT / "coder/dashboard/node_modules/axe-core/axe.min.js"
WIDE = {"width": 1280, "height": 800}
PHONE = {"width": 390, "height": 844}


def missing() -> str:
    """Return the requirement for a browser that this machine lacks; "" for none."""
    if not CHROMIUM.exists():
        return "chromium is not installed"
    if shutil.which("terraform") is None:
        return "terraform is not on PATH"
    return "" if (ROOT / "coder/dashboard/dist/index.html").is_file() else "the dashboard is not built"


def launched(*flags: str) -> Iterator[Browser]:
    """Launch a browser for a fixture, with additional command line `flags`.

    Skips the test if Playwright's event loop cannot run.
    """
    import pytest
    from playwright.sync_api import expect, sync_playwright

    if "trio_asyncio" in sys.modules:
        pytest.skip("Playwright's event loop cannot share a process with trio-asyncio; run this file on its own")
    with sync_playwright() as playwright:
        expect.set_options(timeout=SOON)
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=[*FLAGS, *flags])
        yield browser
        browser.close()


# The number of the page's pending requests, and every toast it has shown: toasts disappear after some seconds, and
# polling every second could miss them.
_WATCH = """(() => {
    const asked = window.fetch;
    window.__asking = 0;
    window.fetch = async (...given) => {
        window.__asking += 1;
        const answered = () => setTimeout(() => { window.__asking -= 1; });  // after those who wait for it
        try {
            const answer = await asked(...given);
            answer.clone().arrayBuffer().then(answered, answered);
            return answer;
        } catch (error) {
            answered();
            throw error;
        }
    };
    window.__told = [];
    new MutationObserver(changes => {
        const live = "[aria-live], [role=status], [role=alert]";
        for (const { target, addedNodes } of changes) {
            const one = target.nodeType === Node.ELEMENT_NODE ? target : target.parentElement;
            const inside = [...addedNodes].flatMap(node => [...(node.querySelectorAll?.(live) ?? [])]);
            window.__told.push(...[one?.closest(live), ...inside].filter(Boolean).map(found => found.innerText));
        }
    }).observe(document, { childList: true, characterData: true, subtree: true });
})()"""
_TOLD = "text => window.__told?.some(one => one.includes(text))"
# There is a heading, nothing is pending or loading, and this was so in three checks, between which the page had time
# for its remaining work.
_SETTLED = """async () => {
    const places = () => `${location.pathname} ${document.querySelectorAll("a[href]").length}`;
    let looks = 0, before = "";
    while (looks < 3) {
        await new Promise(done => requestIdleCallback(done));
        await new Promise(done => setTimeout(done, 30));
        const loads = document.querySelector("[aria-label^=Loading], [role=main] [aria-busy=true]") !== null;
        const there = document.querySelector("h1, [data-testid=terminal]") !== null;
        const now = places();
        looks = there && !loads && window.__asking === 0 && now === before ? looks + 1 : 0;
        before = now;
    }
    return true;
}"""


def visitor(browser: Browser, address: str, token: str = "", **options: Any) -> BrowserContext:
    """Return a browser context at a server, signed in with the token if there is one.

    `settled` and `expect_message` work on its pages.
    """
    context = browser.new_context(base_url=address, **options)
    context.set_default_timeout(SOON)
    context.add_init_script(_WATCH)
    if token:
        context.add_cookies([{"name": "coder_session_token", "value": token, "url": address}])
    return context


def expect_message(page: Page, text: str) -> None:
    """Wait until the page has shown the message since it was loaded, however briefly."""
    page.wait_for_function(_TOLD, arg=text)


def settled(page: Page) -> None:
    """Wait until the page is stable: every answer has arrived and is rendered."""
    page.wait_for_function(_SETTLED)


def element(within: Page | Locator, kind: str, name: str) -> Locator:
    """Return the locator for a contract entry: a role with its name, or one of the other kinds."""
    match kind:
        case "testid":
            return within.get_by_test_id(name)
        case "label":
            return within.get_by_label(name)
        case "placeholder":
            return within.get_by_placeholder(name)
        case "text":
            return within.get_by_text(name)
        case _:
            return within.get_by_role(kind, name=name)  # type: ignore[arg-type]


def is_error(message: ConsoleMessage) -> bool:
    """Whether a console message is an error."""
    return message.type == "error"


# A theme is only a set of colours: in the second theme, only the colour rules can have other results.
THEMES: dict[str, dict[str, object]] = {
    "light": {},
    "dark": {"runOnly": {"type": "rule", "values": ["color-contrast", "link-in-text-block"]}},
}
# The next frame starts the colour transitions; measured before their end, text would have neither theme's colours.
SWITCH = """async theme => {
    document.documentElement.dataset.theme = theme;
    await new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)));
    const running = document.getAnimations().filter(one => one instanceof CSSTransition);
    await Promise.allSettled(running.map(one => one.finished));
}"""
TOO_WIDE = "() => document.documentElement.scrollWidth - document.documentElement.clientWidth"


def excess(page: Page, measure: str) -> int:
    """Return the result of a measuring function after layout: 0 or less, or the excess if it does not settle there.

    Takes a function, not an expression: evaluating an expression repeatedly would be `eval`, which the page forbids.
    """
    from playwright.sync_api import TimeoutError as Missed

    with contextlib.suppress(Missed):
        page.wait_for_function(f"() => ({measure})() <= 0", timeout=LAYOUT_MS)
    return int(page.evaluate(measure))


def faults(page: Page) -> list[str]:
    """Return the problems of the current page: serious findings of axe-core in both themes, excess width on a phone."""
    findings: list[str] = []
    page.evaluate(AXE.read_text())
    for theme, rules in THEMES.items():
        page.evaluate(SWITCH, theme)
        results = page.evaluate("options => axe.run(document, { resultTypes: ['violations'], ...options })", rules)
        findings += [
            f"{theme} {item['id']}: {item['nodes'][0]['html'][:200]}"
            for item in results["violations"]
            if item["impact"] in {"serious", "critical"}
        ]
    page.set_viewport_size(PHONE)  # type: ignore[arg-type]
    over = excess(page, TOO_WIDE)
    page.set_viewport_size(WIDE)  # type: ignore[arg-type]
    return [*findings, *[f"{over} px wider than a phone"][: over > 0]]
