"""Layout of a template's texts: strip markers, the indentation of `<<-`, composed characters."""

from __future__ import annotations

import unicodedata

from coder.domain.hcl.tree import (
    Expression,
)

Strip = tuple[bool, bool]
"""Whether the text before and the text after lose the adjacent white space."""


def laid_out(
    parts: list[str | Expression], strips: list[Strip], *, by_line: bool, indented: bool
) -> list[str | Expression]:
    """Apply strip markers, then the indentation of `<<-`. In a heredoc both treat each line as a text of its own."""
    pieces: list[str | Expression] = []
    for part in parts:
        pieces.extend(part.splitlines(keepends=True) if by_line and isinstance(part, str) else [part])
    flags = iter(strips)
    for index, piece in enumerate(pieces):
        if isinstance(piece, str):
            continue
        before, after = next(flags)
        earlier = pieces[index - 1] if before and index else None
        if isinstance(earlier, str):
            pieces[index - 1] = earlier.rstrip()
        later = pieces[index + 1] if after and index + 1 < len(pieces) else None
        if isinstance(later, str):
            pieces[index + 1] = later.lstrip()
    return _joined(_dedented(pieces) if indented else pieces)


def _dedented(pieces: list[str | Expression]) -> list[str | Expression]:
    """Remove the smallest indentation from all lines, as `<<-` does. A line whose break was stripped has no
    successor."""
    starts: list[int] = []
    spaces: list[int] = []
    begins = True
    for index, piece in enumerate(pieces):
        text = piece if isinstance(piece, str) else ""
        if begins and (text.strip() or not text.endswith("\n")):
            spaces.append(len(text) - len(text.lstrip()))
            starts.append(index)
        begins = text.endswith("\n")
    least = min(spaces, default=0)
    return [
        piece[least:] if isinstance(piece, str) and index in set(starts) else piece
        for index, piece in enumerate(pieces)
    ]


def _joined(pieces: list[str | Expression]) -> list[str | Expression]:
    """Join adjacent texts, composed (NFC) as all of Terraform's texts are; drop empty ones."""
    results: list[str | Expression] = []
    for piece in (unicodedata.normalize("NFC", piece) if isinstance(piece, str) else piece for piece in pieces):
        last = results[-1] if results else None
        if isinstance(piece, str) and isinstance(last, str):
            results[-1] = last + piece
        elif piece != "":
            results.append(piece)
    return results
