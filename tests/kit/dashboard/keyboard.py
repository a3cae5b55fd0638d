"""Walk a page of the dashboard with the Tab key, as a user without a pointer does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from playwright.sync_api import Locator, Page

MOST = 600
"""Longer than the way through any page of the showcase."""
WALKS = 3
"""Walks of a page that changes meanwhile: a control that appears behind the focus is reached by the next one."""
LEAVING = {
    "Esc, then Tab leaves the editor": ("Escape", "Tab"),
    "Ctrl+Shift+L leaves the terminal": ("Control+Shift+L",),
}
"""Description of an element that keeps Tab for its own use -> the keys that it names."""
# What the frame loads last: the inbox, and an administrator's bar at the bottom.
_COMPLETE = """() => (!document.querySelector("[data-testid=user-dropdown-trigger]")
    || document.querySelector("header button[aria-label^=Inbox]") !== null)
    && [...document.querySelectorAll("[data-bottom-bar]")].every(bar => bar.childElementCount > 0)"""
_CONTROLS = "a[href], button, input, select, textarea, summary, [tabindex]"
_PREPARE = f"""() => {{
    window.__walked = new Map();
    window.__present = new WeakSet(document.querySelectorAll("{_CONTROLS}"));
    document.activeElement?.blur();
    getSelection().removeAllRanges();
    scrollTo(0, 0);
}}"""
# The focused element: a number by the order of the visits, its words, and whether a user sees where the focus is.
_FOCUSED = """() => {
    const one = document.activeElement;
    if (!one || one === document.body) return null;
    const seen = window.__walked.has(one);
    if (!seen) window.__walked.set(one, window.__walked.size);
    const box = one.getBoundingClientRect();
    const style = element => getComputedStyle(element);
    const outlined = element => style(element).outlineStyle !== "none" && parseFloat(style(element).outlineWidth) > 0;
    const around = [one, one.parentElement, one.closest("label, .cm-editor")].filter(Boolean);
    const ring = around.some(outlined) || style(one).boxShadow.includes("inset");
    const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;  // of the part in the window
    const [x, y] = [middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight)];
    const there = document.elementFromPoint(x, y);
    const labels = [...one.labels ?? []];
    const clear = there !== null
        && (one.contains(there) || there.contains(one) || labels.some(label => label.contains(there)));
    const described = (one.getAttribute("aria-describedby") ?? "").split(" ")
        .map(id => document.getElementById(id)?.textContent ?? "").join(" ");
    const text = one.getAttribute("aria-label") || labels[0]?.textContent || one.innerText || one.title || "";
    return {
        number: window.__walked.get(one), seen, ring, clear, described,
        terminal: one.matches(".xterm-helper-textarea"),
        parts: one.matches("iframe, input:is([type=date], [type=time])"),
        text: `${one.getAttribute("role") ?? one.tagName.toLowerCase()} ${JSON.stringify(text.trim().slice(0, 60))}`,
        cover: clear ? "" : there === null ? "outside of the window" : there.outerHTML.slice(0, 120),
    };
}"""
# What Tab has to reach: of a group of radio buttons only one, of tabs only the current, and nothing behind a dialog.
_MISSED = f"""() => [...document.querySelectorAll("{_CONTROLS}")]
    .filter(one => one.tabIndex >= 0 && !one.matches(":disabled, [type=hidden]")
        && !one.closest("[inert], [aria-hidden=true]")
        && !one.matches("[role=tablist]:has([tabindex='0'])")
        && one.checkVisibility({{ visibilityProperty: true }}) && !window.__walked.has(one)
        && !(one.type === "radio" && [...document.getElementsByName(one.name)].some(it => window.__walked.has(it))))
    .map(one => ({{
        appeared: !window.__present.has(one),
        text: `never reached: ${{one.ariaLabel ?? ""}} ${{one.outerHTML.slice(0, 120)}}`,
    }}))"""


@dataclass(frozen=True)
class Walk:
    """The way of the Tab key through a page."""

    stops: tuple[str, ...]
    faults: tuple[str, ...]


def walk(page: Page) -> Walk:
    """Press Tab from the top of the page until the focus has left it, and return the stops and what is wrong there.

    Wrong is a stop without a visible focus, one that something covers, one that the Tab key cannot leave, and a control
    that the focus never reaches. A page that shows a further control behind the focus meanwhile is walked again: an
    agent that is reported missing, for instance, appears in an administrator's bar.
    """
    stops, faults = _walk_once(page)
    missed: list[dict[str, Any]] = page.evaluate(_MISSED)
    for _ in range(WALKS - 1):
        if not any(control["appeared"] for control in missed):
            break
        stops, faults = _walk_once(page)
        missed = page.evaluate(_MISSED)
    return Walk(tuple(stops), (*faults, *(control["text"] for control in missed)))


def _walk_once(page: Page) -> tuple[list[str], list[str]]:
    page.wait_for_function(_COMPLETE)
    page.evaluate(_PREPARE)
    stops: list[str] = []
    faults: list[str] = []
    number, ends = -1, 0
    for _ in range(MOST):
        page.keyboard.press("Tab")
        at: dict[str, Any] | None = page.evaluate(_FOCUSED)
        if at is not None and at["number"] == number and not at["parts"]:
            at = _left(page, at)
            if at is not None and at["number"] == number:
                faults += [f"Tab does not leave {at['text']}"][: not ends or number != 0]  # or it is the only stop
                break
        if at is None:  # the end of the document, from which Tab leads to its start
            ends += 1
            if ends == 2:
                break
            continue
        if at["seen"] and (at["number"] != number or ends):
            faults += [f"Tab returns to {at['text']}"][: at["number"] != 0]
            break
        if at["seen"]:
            continue
        number = at["number"]
        stops.append(at["text"])
        faults += [f"no visible focus on {at['text']}"][: not at["ring"] and not at["terminal"]]
        faults += [f"{at['text']} is covered: {at['cover']}"][: not at["clear"] and not at["terminal"]]
    else:
        faults.append(f"more than {MOST} stops")
    return stops, faults


def _left(page: Page, at: dict[str, Any]) -> dict[str, Any] | None:
    """Leave an element that keeps Tab by the keys that its description names; return the focused element then."""
    for text, keys in LEAVING.items():
        if text in at["described"]:
            for key in keys:
                page.keyboard.press(key)
            found: dict[str, Any] | None = page.evaluate(_FOCUSED)
            return found
    return at


def press_tab_to(page: Page, control: Locator) -> None:
    """Press Tab until the control has the focus: Tab moves it before the key press ends."""
    for _ in range(MOST):
        page.keyboard.press("Tab")
        if control.evaluate("one => one === document.activeElement"):
            return
    raise AssertionError(f"Tab does not reach {control}")
