"""Build coder/dashboard/dist/pictures.zip: the server's files at /icon/… and /emojis/…, and their list.

    python3 scripts/dashboard_pictures.py coder/dashboard

The drawings come from open icon sets installed by npm; coder/dashboard/icons.tsv maps names to pictures. It requires
only the standard library. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest date of a zip, so that it has no build time
# Single-colour drawings inherit the colour of the surrounding text, which a separate picture does not have: use a grey
# that is visible on white and on black.
GREY = "#7d8590"
# Letters that would be invisible on a dark page, in a drawing whose other colours are visible.
GREYED = {"aws": ("#252f3e",)}
DARK = 0.03  # relative luminance (WCAG 2) below which a colour is invisible on a dark page
EMOJIS = "twemoji"
_COLOUR = re.compile(r"#(?:[0-9a-fA-F]{6}|[0-9a-fA-F]{3})\b")
SVG = (
    '<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="{box}">{body}</svg>\n'
)


def main(dashboard: Path) -> None:
    sets = dashboard / "node_modules/@iconify-json"
    files: dict[str, str] = {}
    listed: list[dict[str, str]] = []
    loaded: dict[str, dict[str, Any]] = {}
    for name, words, kind, drawing in names(dashboard / "icons.tsv"):
        icon_set = loaded.setdefault(kind, read(sets, kind))
        files[f"icon/{name}.svg"] = svg(icon_set, drawing)
        listed.append({"path": f"/icon/{name}.svg", "words": words})
    for point, text, body in emojis(sets):
        files[f"emojis/{point}.png"] = body
        if not is_toned(point):
            listed.append({"path": f"/emojis/{point}.png", "words": text})
    files["icon/index.json"] = json.dumps(listed, separators=(",", ":"))
    write(dashboard / "dist/pictures.zip", files)


def names(table: Path) -> list[tuple[str, str, str, str]]:
    """Yield (name, search words, set, drawing) of each line."""
    rows = []
    for line in table.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, source, *words = line.split("\t")
            kind, drawing = source.split(":")
            rows.append((name, " ".join(words), kind, drawing))
    return rows


def emojis(sets: Path) -> list[tuple[str, str, str]]:
    """Yield (code points, words, drawing) of each emoji; the code points without the colour variation selector."""
    icon_set = read(sets, EMOJIS)
    points: dict[str, str] = json.loads((sets / EMOJIS / "chars.json").read_text(encoding="utf-8"))
    return [(point, name.replace("-", " "), svg(icon_set, name)) for point, name in sorted(points.items())]


def is_toned(point: str) -> bool:
    """Return whether this is a skin tone: it is served but not listed, as the list would be three times as long."""
    return any(part in {"1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff"} for part in point.split("-"))


def read(sets: Path, kind: str) -> dict[str, Any]:
    icon_set: dict[str, Any] = json.loads((sets / kind / "icons.json").read_text(encoding="utf-8"))
    return icon_set


def svg(icon_set: dict[str, Any], drawing: str) -> str:
    """Return a drawing of a set as a separate file."""
    while drawing in icon_set.get("aliases", {}):
        drawing = icon_set["aliases"][drawing]["parent"]
    icon = icon_set["icons"][drawing]
    side = {part: icon.get(part, icon_set.get(part, 16)) for part in ("width", "height")}
    box = f"{icon.get('left', 0)} {icon.get('top', 0)} {side['width']} {side['height']}"
    return SVG.format(box=box, body=seen_on_both(drawing, icon["body"].replace("currentColor", GREY)))


def seen_on_both(drawing: str, body: str) -> str:
    """Return an all-black drawing, explicitly or by default, in the grey that is visible on white and on black."""
    colours = set(_COLOUR.findall(body))
    if not colours and "fill=" not in body:
        return f'<g fill="{GREY}">{body}</g>'
    greyed = colours if colours and all(is_dark(colour) for colour in colours) else GREYED.get(drawing, ())
    for colour in greyed:
        body = body.replace(colour, GREY)
    return body


def is_dark(colour: str) -> bool:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    red, green, blue = ((channel / 255) ** 2.2 for channel in bytes.fromhex(digits))
    light: float = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # the power of floats has no precise type
    return light < DARK


def write(target: Path, files: dict[str, str]) -> None:
    """Write the zip without compression: the wheel or program compresses everything together, to a seventh of the
    size."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), files[name])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
