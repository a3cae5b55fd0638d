"""The dashboard's table with 20,000 rows: does it scroll as quickly as a short one? The table alone, without a server.

Rows rendered, long tasks and CPU of the page's thread are counted, since a frame rate is that of the machine. The same
table without the browser's observer renders all rows, as it did before it rendered parts; it is the peer.
"""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, sync_playwright

from tests.kit.dashboard.browser import CHROMIUM, FLAGS, WIDE
from tests.kit.server.server_process import ROOT

DASHBOARD = ROOT / "coder/dashboard"
ROWS, PEER_ROWS = 20_000, 2_000
"""All rows of the peer at once take minutes: it has a tenth."""
STEPS = 200
ENTRY = """
import { createRoot } from "react-dom/client";
import { DataTable } from "%(table)s";
const count = Number(new URLSearchParams(location.hash.slice(1)).get("rows"));
const data = Array.from({ length: count }, (_, index) => ({ id: `row${index}`, index }));
const column = (id) => ({
  id, header: id, width: "12%%", sort: (row) => row.index,
  cell: (row) => <span className="text-muted">{id} {row.index}</span>,
});
createRoot(document.getElementById("root")).render(
  <DataTable label="Many" data={data} rowKey={(row) => row.id}
    selection={{ selected: {}, onChange: () => undefined, name: (row) => row.id }}
    columns={["Name", "Status", "Template", "Owner", "Used", "Version", "Disk"].map(column)} />,
);
"""
OBSERVE = """
window.__long = [];
new PerformanceObserver(list => { for (const one of list.getEntries()) window.__long.push(one.duration); })
  .observe({ type: "longtask", buffered: true });
"""
SCROLL = """steps => new Promise(done => {
    let step = 0, most = 0;
    const advance = () => {
        most = Math.max(most, document.querySelectorAll("tbody tr:not([aria-hidden])").length);
        if (step++ === steps) return done(most);
        window.scrollBy(0, 120);
        requestAnimationFrame(advance);
    };
    requestAnimationFrame(advance);
})"""


def measure(quick: bool = False) -> tuple[list[dict[str, Any]], dict[str, str]]:
    """All rows of `scripts/bench tables`."""
    esbuild = DASHBOARD / "node_modules/.bin/esbuild"
    for needed, lacking in ((CHROMIUM, "chromium is not installed"), (esbuild, "scripts/dashboard has not run")):
        if not needed.exists():
            return [], {"everything": lacking}
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = _bundle(Path(folder), esbuild)
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(FLAGS))
        ours = _measured(browser, f"{page}#rows={ROWS}", STEPS // 4 if quick else STEPS, whole=False)
        peer = _measured(browser, f"{page}#rows={PEER_ROWS}", STEPS // 4 if quick else STEPS, whole=True)
        browser.close()
    return [
        _row("rows in the page at most, of a table with 20,000", "rows", ours["rows"], peer["rows"], 250),
        _row("CPU until the table of 20,000 rows stands", "ms", ours["open"], peer["open"], None),
        _row("CPU of a step of 120 pixels through the table", "ms", ours["step"], peer["step"], 20),
        _row("tasks of more than 50 ms while it is scrolled", "tasks", ours["long"], peer["long"], None),
    ], {}


def _row(metric: str, unit: str, value: float, peer: float, target: float | None) -> dict[str, Any]:
    row = {"metric": metric, "unit": unit, "value": value, "better": "lower"}
    row |= {"peer": f"all of {PEER_ROWS:,} rows rendered", "peer_value": peer}
    return row if target is None else row | {"target": target, "met": value <= target}


def _bundle(folder: Path, esbuild: Path) -> str:
    """Bundle the table with the built style sheets; return the address of its page."""
    entry = folder / "entry.tsx"
    entry.write_text(ENTRY % {"table": DASHBOARD / "src/ui/lists/DataTable.tsx"})
    (folder / "node_modules").symlink_to(DASHBOARD / "node_modules")
    words = [str(esbuild), str(entry), "--bundle", "--minify", "--jsx=automatic", f"--outfile={folder}/entry.js"]
    subprocess.run([*words, '--define:process.env.NODE_ENV="production"', "--log-level=warning"], check=True)
    styles = "".join(sheet.read_text() for sheet in sorted((DASHBOARD / "dist/assets").glob("*.css")))
    page = folder / "page.html"
    head = f'<!doctype html><meta charset="utf-8"><style>{styles}</style>'
    page.write_text(f'{head}<div id="root"></div><script src="entry.js"></script>')
    return page.as_uri()


def _measured(browser: Browser, address: str, steps: int, *, whole: bool) -> dict[str, float]:
    page = browser.new_page(viewport={"width": WIDE["width"], "height": WIDE["height"]})
    page.add_init_script(OBSERVE + ("delete window.IntersectionObserver;" if whole else ""))
    session = page.context.new_cdp_session(page)
    session.send("Performance.enable", {"timeDomain": "threadTicks"})
    before = _cpu(session)
    page.goto(address)
    page.get_by_role("table").wait_for()
    opened = _cpu(session)
    page.evaluate("window.__long.length = 0")
    rows = page.evaluate(SCROLL, steps)
    scrolled = _cpu(session)
    result = {
        "rows": rows,
        "open": round(opened - before, 1),
        "step": round((scrolled - opened) / steps, 2),
        "long": _long_tasks(page),
    }
    page.close()
    return result


def _long_tasks(page: Page) -> int:
    return int(page.evaluate("window.__long.length"))


def _cpu(session: Any) -> float:
    """Return the milliseconds that the page's thread has worked."""
    metrics = {item["name"]: item["value"] for item in session.send("Performance.getMetrics")["metrics"]}
    return float(metrics["TaskDuration"]) * 1000
