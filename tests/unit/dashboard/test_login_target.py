"""Where the dashboard leads after signing in: nowhere but to this site, however a link is written."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

PAGE = Path(__file__).resolve().parents[3] / "coder/dashboard/src/pages/LoginPage.tsx"
SAME = ["/a?b=c#d", "/@u/w/apps/x/?q=%20", "/api/v2/applications/auth-redirect?redirect_uri=http%3A%2F%2Fx"]
ELSEWHERE = [
    "//evil.test",
    "/\t/evil.test",
    "/\\evil.test",
    "/\n\\evil.test",
    "/..//evil.test",
    "https://evil.test",
    None,
]


@pytest.mark.skipif(shutil.which("node") is None, reason="the dashboard's language needs Node.js")
def test_a_link_leads_nowhere_else() -> None:
    source = PAGE.read_text()
    function = source[source.index("function safeTarget(") :].replace("(redirect: string | null): string", "(redirect)")
    script = (
        'const window = { location: { origin: "https://coder.test" } };\n'
        f"{function}\nconsole.log(JSON.stringify({json.dumps(SAME + ELSEWHERE)}.map(safeTarget)));"
    )
    done = subprocess.run(["node", "-e", script], capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == SAME + ["/workspaces"] * len(ELSEWHERE)
