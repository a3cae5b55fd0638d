"""How a name or a text that somebody gave stands in a message."""

from __future__ import annotations


def quoted(text: object) -> str:
    """In double quotes, what cannot be seen escaped: as Go's %q has it, which scripts know from upstream."""
    import json  # messages are rare, and every command loads this

    return json.dumps(str(text), ensure_ascii=False)
