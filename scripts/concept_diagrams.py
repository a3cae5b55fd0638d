"""Draw the diagrams of docs/concepts as SVG, so that they show without a script and without the internet.

scripts/generate-diagrams writes them; a test compares them. A sequence has actors and messages from top to bottom; a
map has boxes in a grid and arrows between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent.parent / "docs/pictures"
_STYLE = (
    "text{font:14px system-ui,sans-serif;fill:#1f2328}.b{fill:#eef2f7;stroke:#57606a}.l{stroke:#57606a;fill:none}"
    ".d{stroke-dasharray:5 4}.n{font-size:12px;fill:#57606a}"
)
_LANE, _ROW, _TOP = 190, 44, 60


@dataclass(frozen=True)
class Message:
    """An arrow from one actor to another; a note if both are the same."""

    source: str
    target: str
    text: str
    is_answer: bool = False


def _document(width: int, height: int, parts: Sequence[str], title: str) -> str:
    marker = (
        '<defs><marker id="a" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="8" markerHeight="8" orient="auto">'
        '<path d="M0 0 10 5 0 10z" fill="#57606a"/></marker></defs>'
    )
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}">'
    ground = f'<rect width="{width}" height="{height}" fill="#ffffff"/>'
    body = "\n".join([f"<title>{escape(title)}</title>", f"<style>{_STYLE}</style>", marker, ground, *parts])
    return f"{head}\n{body}\n</svg>\n"


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "middle") -> str:
    mark = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}"{mark}>{escape(text)}</text>'


def _box(x: float, y: float, width: float, height: float, lines: Sequence[str]) -> list[str]:
    first = y + height / 2 + 5 - 8.5 * (len(lines) - 1)
    texts = [_text(x + width / 2, first + 17 * row, line, "n" if row else "") for row, line in enumerate(lines)]
    return [f'<rect class="b" x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6"/>', *texts]


def sequence(title: str, actors: Sequence[str], messages: Sequence[Message]) -> str:
    """Return a sequence diagram."""
    width, height = _LANE * len(actors), _TOP + _ROW * len(messages) + 40
    middle = {actor: _LANE * index + _LANE / 2 for index, actor in enumerate(actors)}
    parts = []
    for actor, x in middle.items():
        parts += [f'<path class="l d" d="M{x:g} 44V{height - 10}"/>', *_box(x - 75, 10, 150, 34, [actor])]
    for row, message in enumerate(messages):
        y = _TOP + _ROW * (row + 1) - 8
        x, to = middle[message.source], middle[message.target]
        if x == to:
            wide = 8 * len(message.text) + 16
            parts += _box(x - wide / 2, y - 20, wide, 28, [message.text])
            continue
        dashed = " d" if message.is_answer else ""
        parts.append(f'<path class="l{dashed}" d="M{x:g} {y}H{to - (2 if to > x else -2):g}" marker-end="url(#a)"/>')
        parts.append(_text((x + to) / 2, y - 6, message.text, "n"))
    return _document(width, height, parts, title)


@dataclass(frozen=True)
class Place:
    """A box of a map: column and row of the grid, lines of text (the first is the name)."""

    column: int
    row: int
    lines: tuple[str, ...]


_WIDE, _HIGH, _GAP_X, _GAP_Y = 210, 78, 120, 60


def chart(title: str, places: dict[str, Place], arrows: Sequence[tuple[str, str, str]]) -> str:
    """Return boxes with arrows. An arrow joins neighbours of a row or of a column."""
    columns = max(place.column for place in places.values()) + 1
    rows = max(place.row for place in places.values()) + 1
    width, height = columns * (_WIDE + _GAP_X) - _GAP_X + 40, rows * (_HIGH + _GAP_Y) - _GAP_Y + 40
    corner = {
        name: (20 + place.column * (_WIDE + _GAP_X), 20 + place.row * (_HIGH + _GAP_Y))
        for name, place in places.items()
    }
    parts = []
    for source, target, text in arrows:
        (x, y), (to_x, to_y) = corner[source], corner[target]
        if y == to_y:
            start, end = (x + _WIDE, to_x - 2) if to_x > x else (x, to_x + _WIDE + 2)
            parts.append(f'<path class="l" d="M{start} {y + _HIGH / 2:g}H{end}" marker-end="url(#a)"/>')
            parts += _labels((start + end) / 2, y + _HIGH / 2 - 8, text)
        else:
            start, end = (y + _HIGH, to_y - 2) if to_y > y else (y, to_y + _HIGH + 2)
            parts.append(f'<path class="l" d="M{x + _WIDE / 2:g} {start}V{end}" marker-end="url(#a)"/>')
            parts.append(_text(x + _WIDE / 2 + 8, (start + end) / 2 + 4, text, "n", "start"))
    for name, place in places.items():
        parts += _box(*corner[name], _WIDE, _HIGH, place.lines)
    return _document(width, height, parts, title)


def _labels(x: float, y: float, text: str) -> list[str]:
    lines = text.split("/")
    return [_text(x, y - 14 * (len(lines) - 1 - row), line, "n") for row, line in enumerate(lines)]


ARCHITECTURE = chart(
    "Programs of a deployment and their connections",
    {
        "provisioner": Place(1, 0, ("Provisioner (provisionerd)", "Terraform, one build at a time")),
        "cloud": Place(2, 0, ("Cloud, hypervisor, cluster", "machines of workspaces")),
        "browser": Place(0, 1, ("Browser", "dashboard, terminal, apps")),
        "server": Place(1, 1, ("Server (coderd)", "API, dashboard, coordinator,", "relay (DERP)")),
        "database": Place(2, 1, ("PostgreSQL", "built in, or yours")),
        "client": Place(0, 2, ("coder on a laptop", "ssh, port-forward, editors")),
        "agent": Place(1, 2, ("Agent in a workspace", "shell, files, ports, apps")),
    },
    [
        ("provisioner", "server", "dials out by HTTPS, takes jobs"),
        ("provisioner", "cloud", "terraform/apply"),
        ("browser", "server", "HTTPS"),
        ("server", "database", "SQL"),
        ("agent", "server", "dials out by HTTPS"),
        ("client", "agent", "WireGuard: UDP,/or by the relay"),
    ],
)

BUILD = sequence(
    "A build of a workspace",
    ("User", "Server", "Provisioner", "Cloud", "Agent"),
    [
        Message("User", "Server", "start workspace, parameters"),
        Message("Server", "Server", "check rights, quota, values"),
        Message("Server", "Provisioner", "job with the tags it has"),
        Message("Provisioner", "Cloud", "terraform plan"),
        Message("Provisioner", "Server", "plan: resources, cost", is_answer=True),
        Message("Provisioner", "Cloud", "terraform apply"),
        Message("Cloud", "Agent", "machine starts the init script"),
        Message("Provisioner", "Server", "state, agents and tokens", is_answer=True),
        Message("Agent", "Server", "connects with its token"),
        Message("Agent", "Agent", "startup scripts"),
        Message("Server", "User", "running, agent ready", is_answer=True),
    ],
)

CONNECTION = sequence(
    "A connection to a workspace",
    ("coder ssh", "Server", "Agent"),
    [
        Message("Agent", "Server", "coordination: key, addresses, relay"),
        Message("coder ssh", "Server", "session: may I reach this agent?"),
        Message("Server", "coder ssh", "the agent's key and addresses", is_answer=True),
        Message("Server", "Agent", "the client's key and addresses"),
        Message("coder ssh", "Agent", "WireGuard handshake, through the relay"),
        Message("coder ssh", "Agent", "SSH inside the tunnel: first bytes flow"),
        Message("coder ssh", "Agent", "disco pings by UDP to all addresses"),
        Message("Agent", "coder ssh", "pong: a direct path exists", is_answer=True),
        Message("coder ssh", "Agent", "the same tunnel, direct from now on"),
    ],
)

DIAGRAMS = {"architecture.svg": ARCHITECTURE, "build.svg": BUILD, "connection.svg": CONNECTION}


def write() -> None:
    """Write all diagrams."""
    for name, text in DIAGRAMS.items():
        (FOLDER / name).write_text(text)


def differing() -> list[str]:
    """Return the diagrams that differ from the files."""
    return [
        name for name, text in DIAGRAMS.items() if not (FOLDER / name).exists() or (FOLDER / name).read_text() != text
    ]
