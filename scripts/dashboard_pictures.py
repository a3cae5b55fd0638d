"""Makes coder/dashboard/dist/pictures.zip: what the server has at /icon/… and /emojis/…, and their list.

    python3 scripts/dashboard_pictures.py coder/dashboard

The drawings come from open sets installed by npm; coder/dashboard/icons.tsv says which picture has which name. Nothing
beyond the standard library is needed. The same input gives the same bytes.
"""

from __future__ import annotations

import json
import re
import sys
import zipfile
from pathlib import Path
from typing import Any

EPOCH = (1980, 1, 1, 0, 0, 0)  # the oldest a zip can say: no time of the build is in it
# Drawings of one colour take that of the text around them, which a picture of its own does not have: a grey that can be
# seen on white and on black.
GREY = "#7d8590"
# Letters that would not be seen on a dark page, in a drawing whose other colours are.
GREYED = {"aws": ("#252f3e",)}
DARK = 0.03  # relative luminance (WCAG 2) of what is lost on a dark page
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
        found = loaded.setdefault(kind, read(sets, kind))
        files[f"icon/{name}.svg"] = svg(found, drawing)
        listed.append({"path": f"/icon/{name}.svg", "words": words})
    for point, text, body in emojis(sets):
        files[f"emojis/{point}.png"] = body
        if not is_toned(point):
            listed.append({"path": f"/emojis/{point}.png", "words": text})
    files["icon/index.json"] = json.dumps(listed, separators=(",", ":"))
    write(dashboard / "dist/pictures.zip", files)


def names(table: Path) -> list[tuple[str, str, str, str]]:
    """(name, words it is found by, set, drawing) of each line."""
    found = []
    for line in table.read_text(encoding="utf-8").splitlines():
        if line and not line.startswith("#"):
            name, source, *words = line.split("\t")
            kind, drawing = source.split(":")
            found.append((name, " ".join(words), kind, drawing))
    return found


def emojis(sets: Path) -> list[tuple[str, str, str]]:
    """(code points, words, drawing) of each emoji; the points without the selector that asks for colour."""
    found = read(sets, EMOJIS)
    points: dict[str, str] = json.loads((sets / EMOJIS / "chars.json").read_text(encoding="utf-8"))
    return [(point, name.replace("-", " "), svg(found, name)) for point, name in sorted(points.items())]


def is_toned(point: str) -> bool:
    """A tone of skin: served, not listed, or the list would be thrice as long."""
    return any(part in {"1f3fb", "1f3fc", "1f3fd", "1f3fe", "1f3ff"} for part in point.split("-"))


def read(sets: Path, kind: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((sets / kind / "icons.json").read_text(encoding="utf-8"))
    return found


def svg(found: dict[str, Any], drawing: str) -> str:
    """A drawing of a set as a file of its own."""
    while drawing in found.get("aliases", {}):
        drawing = found["aliases"][drawing]["parent"]
    icon = found["icons"][drawing]
    side = {part: icon.get(part, found.get(part, 16)) for part in ("width", "height")}
    box = f"{icon.get('left', 0)} {icon.get('top', 0)} {side['width']} {side['height']}"
    return SVG.format(box=box, body=seen_on_both(drawing, icon["body"].replace("currentColor", GREY)))


def seen_on_both(drawing: str, body: str) -> str:
    """A drawing that is nothing but black, said or by default, in the grey that is seen on white and on black."""
    colours = set(_COLOUR.findall(body))
    if not colours and "fill=" not in body:
        return f'<g fill="{GREY}">{body}</g>'
    greyed = colours if colours and all(is_dark(one) for one in colours) else GREYED.get(drawing, ())
    for one in greyed:
        body = body.replace(one, GREY)
    return body


def is_dark(colour: str) -> bool:
    digits = colour[1:] if len(colour) == 7 else "".join(digit * 2 for digit in colour[1:])
    red, green, blue = ((channel / 255) ** 2.2 for channel in bytes.fromhex(digits))
    light: float = 0.2126 * red + 0.7152 * green + 0.0722 * blue  # a power of floats has no type of its own
    return light < DARK


def write(target: Path, files: dict[str, str]) -> None:
    """Not compressed: the wheel and the program around it compress all of it together, a seventh of the size."""
    with zipfile.ZipFile(target, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(files):
            archive.writestr(zipfile.ZipInfo(name, EPOCH), files[name])


if __name__ == "__main__":
    main(Path(sys.argv[1]))
