"""The dashboard in a real browser: the first account, sign-in, attaching a machine and following its state.

One flow in a user's order; each test continues where the previous one ended. No test reloads the page or waits a fixed
time: the expected content has to appear.
"""

from __future__ import annotations

import platform
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect

from tests.kit.dashboard.browser import PHONE, WIDE, excess, expect_message, is_error, missing, visitor
from tests.kit.server.server_process import Loopback, end, open_loopback

EMAIL = "ana.admin@example.com"
PASSWORD = "Browser-Password-7-very-long"
MACHINE = "hello-world"
REASON = "This machine is managed outside Coder and cannot be started, stopped or restarted here."


pytestmark = [
    pytest.mark.browser,
    pytest.mark.system,
    pytest.mark.skipif(bool(missing()), reason=missing() or "-"),
]


@pytest.fixture(scope="module")
def server(browser: Browser) -> Iterator[Loopback]:  # the browser comes first because it may skip the test
    with open_loopback() as found:
        yield found


@pytest.fixture(scope="module")
def context(browser: Browser, server: Loopback) -> Iterator[BrowserContext]:
    found = visitor(browser, server.url, permissions=["clipboard-read", "clipboard-write"])
    yield found
    found.close()


@pytest.fixture(scope="module")
def page(context: BrowserContext) -> Iterator[Page]:
    """One tab for the whole flow. A script error or a policy violation fails the last test."""
    found = context.new_page()
    problems: list[str] = []
    found.on("pageerror", lambda error: problems.append(str(error)))
    found.on("console", lambda said: problems.append(said.text) if "Content Security Policy" in said.text else None)
    yield found
    assert problems == []


def test_setup_creates_first_account(page: Page) -> None:
    page.goto("/")
    expect(page).to_have_url(re.compile(r"/setup$"))
    expect(page).to_have_title(re.compile(r"^Set up your account - "))
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Create account").click()
    expect(page.get_by_role("alert")).to_be_visible()
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Create account").click()
    expect_message(page, 'User "ana-admin" created successfully.')
    expect(page).to_have_url(re.compile(r"/templates/new/builder$"))
    expect(page).to_have_title(re.compile(r"^Template Builder - "))
    expect(page.get_by_text("ana-admin", exact=True)).to_be_visible()
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Workspaces").click()
    expect(page.get_by_role("heading", name="No workspaces yet")).to_be_visible()


def test_expired_session_keeps_input(page: Page, context: BrowserContext) -> None:
    # Not by its role: another request may be rejected before the search is sent, and the dialog hides the page.
    search = page.locator("input[aria-label='Search workspaces']")
    kept = context.cookies()
    context.clear_cookies(name="coder_session_token")
    search.fill("name:typed-before")
    dialog = page.get_by_role("dialog", name="Your session has ended")
    expect(dialog).to_be_visible()
    dialog.get_by_label("Password").fill(PASSWORD)
    dialog.get_by_role("button", name="Sign in", exact=True).click()
    expect(dialog).to_have_count(0)
    expect(search).to_have_value("name:typed-before")
    assert context.cookies() != kept
    search.fill("owner:me")


def test_sign_out_and_in_again(page: Page) -> None:
    page.get_by_role("button", name="Open user menu").click()
    page.get_by_role("menuitem", name="Sign out").click()
    expect(page).to_have_url(re.compile(r"/login"))
    page.goto("/templates")
    expect(page).to_have_url(re.compile(r"/login\?redirect=%2Ftemplates$"))
    page.get_by_label("Email").fill(EMAIL)
    page.get_by_label("Password").fill("not-the-password-1")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_contain_text("Incorrect email or password")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("heading", name="No templates yet")).to_be_visible()
    page.goto("/setup")
    expect(page).to_have_url(re.compile(r"/workspaces$"))  # set-up is complete, and the user is signed in


def test_list_adds_new_workspace_live(page: Page, server: Loopback) -> None:
    expect(page.get_by_role("heading", name="No workspaces yet")).to_be_visible()
    server.sign_in(EMAIL, PASSWORD)
    server.push_external_template()
    server.create_external(MACHINE)
    row = page.get_by_test_id(f"workspace-{MACHINE}")
    expect(row).to_contain_text("External")
    expect(row).to_contain_text("Not attached")
    row.get_by_role("link", name=MACHINE).click()
    expect(page).to_have_url(re.compile(rf"/@ana-admin/{MACHINE}$"))
    expect(page).to_have_title(re.compile(rf"^ana-admin/{MACHINE} - "))
    expect(page.get_by_text("Workspace status: Not attached")).to_be_attached()


def test_attach_command_hides_token(page: Page, server: Loopback) -> None:
    token = agent_token(server)
    command = page.get_by_test_id("command")
    expect(page.get_by_text(f"attach an agent to the {MACHINE} workspace")).to_be_visible()
    expect(command).to_contain_text(f'curl -fsSL "{server.url}/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="••')
    expect(command).not_to_contain_text(token)
    whole = f'curl -fsSL "{server.url}/api/v2/init-script/linux/amd64" | CODER_AGENT_TOKEN="{token}" sh'
    page.get_by_test_id("copy").click()
    expect_message(page, "Copied to the clipboard.")
    is_on_the_clipboard(page, whole)
    page.get_by_role("button", name="Show token").click()
    expect(command).to_have_text(whole)
    page.get_by_role("button", name="Hide token").click()
    expect(command).not_to_contain_text(token)


def is_on_the_clipboard(page: Page, text: str) -> None:
    """Wait for the clipboard: a page writes it some time after the click."""
    page.wait_for_function("async text => (await navigator.clipboard.readText()) === text", arg=text)


def test_platform_changes_attach_command(page: Page, server: Loopback) -> None:
    token = agent_token(server)
    page.get_by_label("Platform").select_option("windows/amd64")
    script = f"{server.url}/api/v2/init-script/windows/amd64"
    expect(page.get_by_test_id("command")).to_contain_text(f'iwr -useb "{script}" | iex')
    expect(page.get_by_test_id("command")).not_to_contain_text(token)
    page.get_by_test_id("copy").click()
    is_on_the_clipboard(page, f'$env:CODER_AGENT_TOKEN="{token}"; iwr -useb "{script}" | iex')
    page.get_by_label("Platform").select_option("darwin/arm64")
    expect(page.get_by_test_id("command")).to_contain_text("/init-script/darwin/arm64")


def test_token_rotation(page: Page, server: Loopback) -> None:
    before = agent_token(server)
    page.get_by_role("button", name="Rotate token").click()
    page.get_by_test_id("confirm-button").click()
    expect_message(page, "Token rotated.")
    after = agent_token(server)
    assert after != before
    page.get_by_role("button", name="Show token").click()
    expect(page.get_by_test_id("command")).to_contain_text(after)
    page.get_by_role("button", name="Hide token").click()


def test_external_workspace_has_no_start_or_stop(page: Page) -> None:
    expect(page.get_by_text(REASON)).to_be_visible()
    for name in ("Start", "Stop", "Restart"):
        expect(page.get_by_role("button", name=name, exact=True)).to_have_count(0)


PROGRAM = f"cache/bin/coder-linux-{'amd64' if platform.machine() == 'x86_64' else 'arm64'}"
"""Folder from which the server offers the program for this machine."""


def shown_command(page: Page) -> str:
    """Return the command shown for this machine, including its token."""
    page.get_by_label("Platform").select_option(PROGRAM.rpartition("coder-")[2].replace("-", "/"))
    page.get_by_role("button", name="Show token").click()
    expect(page.get_by_test_id("command")).not_to_contain_text("•")
    return page.get_by_test_id("command").inner_text()


def typed(server: Loopback, command: str) -> subprocess.Popen[bytes]:
    """Run the command in a shell of this machine, as a user would; the server has the program for it."""
    shelf, machine = server.folder / PROGRAM, server.folder / "machine"
    shelf.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(server.program_file(), shelf)
    machine.mkdir()
    env = server.env("machine") | {"TMPDIR": str(machine)}
    with (server.folder / "machine.log").open("ab") as log:
        process = subprocess.Popen(
            ["sh", "-c", command],
            env=env,
            cwd=machine,
            start_new_session=True,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    server.agents.append(process)  # ended with everything else
    return process


def test_state_and_log_update_live(page: Page, server: Loopback) -> None:
    state = page.get_by_test_id("agent-status")
    expect(state).to_have_attribute("data-status", re.compile("connecting|timeout"))
    agent = typed(server, shown_command(page))
    expect(state).to_have_attribute("data-status", "connected")
    expect(state).to_have_text("Connected")
    (
        server.folder / PROGRAM
    ).unlink()  # the running agent is not affected; other tests require a server without programs
    expect(page.get_by_test_id("command")).to_have_count(0)
    expect(page.get_by_text(f"coder ssh {MACHINE}")).to_be_visible()
    server.write_agent_log(agent_token(server), "hello from the machine")
    server.write_agent_log(agent_token(server), "and something went wrong", level="error")
    lines = page.get_by_test_id("agent-log")
    expect(lines).to_contain_text("hello from the machine")
    expect(lines.locator("[data-level=error]")).to_contain_text("and something went wrong")
    end(agent, signal.SIGKILL)
    expect(state).to_have_attribute("data-status", "disconnected")
    server.start_agent(agent_token(server))
    expect(state).to_have_attribute("data-status", "connected")
    expect(lines.get_by_text("hello from the machine")).to_have_count(1)


def test_page_survives_server_restart(page: Page, server: Loopback) -> None:
    assert server.server is not None
    end(server.server)
    expect(page.get_by_text("Connection to the server lost.")).to_be_visible()
    expect(page.get_by_role("heading", name=MACHINE)).to_be_visible()
    server.start_server()
    expect(page.get_by_text("Connection to the server lost.")).to_have_count(0)
    expect(page.get_by_test_id("agent-status")).to_have_attribute("data-status", "connected")
    server.write_agent_log(agent_token(server), "after the restart")
    expect(page.get_by_test_id("agent-log").get_by_text("after the restart")).to_have_count(1)
    expect(page.get_by_test_id("agent-log").get_by_text("hello from the machine")).to_have_count(1)


def test_empty_log_blocks_no_connection(page: Page) -> None:
    """A browser opens one WebSocket at a time: a handshake that waits for a first line would block the next ones."""
    agent = page.get_by_role("article").get_attribute("data-agent")
    page.evaluate(
        """path => new Promise((done, failed) => {
            const socket = new WebSocket(location.origin.replace("http", "ws") + path);
            socket.onopen = () => { socket.close(); done(); };
            socket.onerror = failed;
        })""",
        f"/api/v2/workspaceagents/{agent}/logs?follow&after=999999",
    )


@pytest.fixture
def ordinary(server: Loopback) -> Iterator[str]:
    """A workspace that the server starts and stops; its process ends with the test."""
    server.push_local_template()
    server.coder("create", "mine", "--template=local-process", "-y")
    yield "mine"
    if '"mine"' in server.coder("list", "-o", "json"):
        server.coder("delete", "mine", "-y")


def test_workspace_stop_start_restart_delete(page: Page, server: Loopback, ordinary: str) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Workspaces").click()
    page.get_by_role("link", name=ordinary, exact=True).click()
    state, status = page.get_by_test_id("agent-status"), page.get_by_test_id("workspace-status")
    expect(state).to_have_attribute("data-status", "connected")
    expect(page.get_by_role("button", name="Start", exact=True)).to_be_disabled()
    page.get_by_role("button", name="Stop", exact=True).click()
    expect(status).to_contain_text("Workspace status: Stopped")
    expect(page.get_by_text("Start it to use its agents.")).to_be_visible()
    page.get_by_role("button", name="Start", exact=True).click()
    expect(state).to_have_attribute("data-status", "connected")
    # A build may end before the browser shows its log or an intermediate state: only the final state is checked.
    before = page.get_by_role("article").get_attribute("data-agent")
    page.get_by_role("button", name="Restart").click()
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_role("article")).not_to_have_attribute("data-agent", before or "")
    expect(status).to_contain_text("Workspace status: Running")
    expect(state).to_have_attribute("data-status", "connected")
    server.coder("delete", ordinary, "-y")
    expect(page.get_by_text("This workspace was deleted")).to_be_visible()


TERMINAL_SIZES = (
    WIDE,
    {"width": 1000, "height": 417},
    {"width": 1920, "height": 1080},
    PHONE,
    {"width": 844, "height": 390},
    {"width": 320, "height": 568},
    WIDE,
)
# The rows, the end of the last one, and their available height: the box fills the window except for its padding.
_ROWS = """() => {
    const box = document.querySelector("[data-testid=terminal]");
    const rows = [...box.querySelectorAll(".xterm-rows > div")];
    const [first, last, room] = [rows[0], rows.at(-1), box].map(one => one.getBoundingClientRect());
    return { rows: rows.length, top: first.top - room.top, left: room.bottom - last.bottom, row: last.height,
        right: room.right - box.querySelector(".xterm-screen").getBoundingClientRect().right,
        below: box.parentElement.getBoundingClientRect().bottom - innerHeight,
        page: document.documentElement.scrollHeight - innerHeight };
}"""
# Above 0 while a row is cut off or missing, while the page is longer than the window, or ends before it.
_LEFT_OUT = f"""() => {{
    const now = ({_ROWS})();
    const cut = Math.max(-now.top, -now.left, -now.right), spare = now.left - now.row;
    return Math.ceil(Math.max(cut, spare, now.page, Math.abs(now.below)) - 0.01);
}}"""


def test_workspace_create_use_delete(page: Page, context: BrowserContext) -> None:
    page.get_by_role("navigation", name="Main").get_by_role("link", name="Workspaces").click()
    page.get_by_role("button", name="New workspace").click()
    page.get_by_role("list", name="Templates").get_by_role("link", name="local-process").click()
    expect(page).to_have_title(re.compile("^Create workspace - "))
    page.get_by_label("Workspace name").fill("made-here")
    page.get_by_test_id("create").click()
    expect(page).to_have_url(re.compile(r"/@ana-admin/made-here$"))
    expect(page.get_by_test_id("agent-status")).to_have_attribute("data-status", "connected")
    with context.expect_page() as opened:
        page.get_by_role("link", name="Terminal").click()
    terminal = opened.value
    expect(terminal.get_by_test_id("terminal-status")).to_have_attribute("data-status", "connected")
    terminal.keyboard.type("echo $((6*7))-from-here\n")
    expect(terminal.get_by_test_id("terminal")).to_contain_text("42-from-here")
    terminal.keyboard.press("Control+Shift+F")
    terminal.get_by_label("Search the terminal", exact=True).fill("42-from")
    expect(terminal.get_by_role("search")).to_contain_text("1 of 1")
    terminal.keyboard.press("Escape")
    expect(terminal.get_by_role("search")).to_have_count(0)
    terminal.keyboard.press("Control+Shift+L")
    expect(terminal.get_by_role("link", name="ana-admin/made-here")).to_be_focused()
    for size in TERMINAL_SIZES:
        terminal.set_viewport_size(size)  # type: ignore[arg-type]
        assert excess(terminal, _LEFT_OUT) <= 0, (size, terminal.evaluate(_ROWS))
    terminal.reload()  # the same terminal: the screen content is restored
    expect(terminal.get_by_test_id("terminal")).to_contain_text("42-from-here")
    terminal.close()
    page.get_by_test_id("workspace-options-button").click()
    page.get_by_test_id("delete-button").click()
    expect(page.get_by_test_id("confirm-button")).to_be_disabled()
    page.get_by_test_id("delete-dialog-name-confirmation").fill("made-here")
    page.get_by_test_id("confirm-button").click()
    expect(page.get_by_text("This workspace was deleted")).to_be_visible()


def test_missing_pages(page: Page) -> None:
    page.goto(f"/@ana-admin/{MACHINE}-not")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.goto("/@ana-admin/hello-world/no-such-page")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.goto("/no-such-page")
    page.get_by_role("link", name="Back to workspaces").click()
    expect(page.get_by_test_id(f"workspace-{MACHINE}")).to_be_visible()


def test_pages_without_account(browser: Browser, server: Loopback) -> None:
    context = visitor(browser, server.url)
    page = context.new_page()
    said: list[str] = []
    page.on(
        "console", lambda message: said.append(message.text) if is_error(message) and "404" in message.text else None
    )
    page.goto("/install?os=linux")
    expect(page.get_by_text(f"curl -fsSL {server.url}/install.sh | sh")).to_be_visible()
    expect(page.get_by_text(said_missing(context, server))).to_be_visible()
    shelf = server.folder / "cache/bin"
    shelf.mkdir(parents=True, exist_ok=True)
    (shelf / "coder-linux-arm64").write_bytes(b"\x7fELF of another machine")
    page.reload()
    expect(page.get_by_text(said_missing(context, server))).to_be_visible()
    with page.expect_download() as fetched:
        page.get_by_role("link", name="ARM, 64-bit").click()
    assert fetched.value.path().read_bytes() == b"\x7fELF of another machine"
    assert said == []
    page.goto("/no-such-page")
    expect(page.get_by_role("heading", name="Page not found")).to_be_visible()
    page.goto(f"/@ana-admin/{MACHINE}")
    expect(page).to_have_url(re.compile(rf"/login\?redirect=%2F%40ana-admin%2F{MACHINE}$"))
    context.close()


def said_missing(context: BrowserContext, server: Loopback) -> str:
    """Return the expected note on missing programs: the tested server may be a binary that offers itself."""
    processors = {"amd64": "Intel/AMD, 64-bit", "arm64": "ARM, 64-bit", "armv7": "ARM, 32-bit"}
    missing = [
        words
        for name, words in processors.items()
        if context.request.head(f"{server.url}/bin/coder-linux-{name}").status == 404
    ]
    assert missing
    where = "" if len(missing) == len(processors) else f" on {' and '.join(missing)}"
    return f"This server has no CLI for Linux{where}."


def agent_token(server: Loopback) -> str:
    """Return the machine's token from the CLI."""
    shown = server.coder("external-workspaces", "agent-instructions", MACHINE, "--output=text")
    found = re.search(r'CODER_AGENT_TOKEN="([^"]+)"', shown)
    assert found is not None, shown
    return found[1]
