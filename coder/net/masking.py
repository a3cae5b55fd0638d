"""What of an address may be shown: to people, in errors, in logs. Client and server ask the same function.

Secrets stand where an API puts them: in a query, as a login, and in a few paths, of which the table is here. A test
compares it with the server's routes.
"""

from __future__ import annotations

import re

SECRET_PATHS = ("/api/v2/provisionerkeys/", "/derp/streams/")
"""What follows one of these is a secret, whatever is answered: a provisioner key; the right to a carried stream."""

STARS = "***"
MOST_SHOWN = 1024
"Letters of one address. It may be a stranger's, and its message goes into a log line or an answer."
_WORDS = ("token", "secret", "key", "code", "password", "session", "signature", "state")
_LOGIN = re.compile(r"//[^/@]*@")
# Servers take more than one slash for one, and a URL may have a path of its own before ours.
# A run of slashes is looked at once, from its first: a path may be sixty thousand of them.
_BEFORE = "(" + "|".join("/++".join(path.split("/")).replace("/++", "(?<!/)/++", 1) for path in SECRET_PATHS) + ")"
_PART, _REST = re.compile(_BEFORE + "[^?#]+"), re.compile(_BEFORE + ".+", re.DOTALL)


def masked(url: str) -> str:
    """The URL, or path with a query, with stars for the login, a secret in the path and what looks so in the query."""
    first, *others = _PART.sub(rf"\1{STARS}", url).split("&")
    whole = "&".join((_masked_field(first), *(_masked_field(f"?{text}")[1:] for text in others)))
    return shortened(_LOGIN.sub(f"//{STARS}@", whole))


def _masked_field(text: str) -> str:
    """What ends with `&`. A name begins behind a `?` and ends with `=`; all that follows is its value.

    No pattern: that was cubic, and a workspace proxy chooses the address under which it is asked how it is.
    """
    names = text.split("=")
    for number, name in enumerate(names[:-1]):
        asked = name.partition("?")[2].lower()
        if any(word in asked for word in _WORDS):
            return "=".join((*names[: number + 1], STARS))
    return text


def masked_path(path: str) -> str:
    """The same for a decoded path alone: `?` and `#` are letters of it. Not shortened."""
    return _REST.sub(rf"\1{STARS}", path)


def shortened(text: str) -> str:
    """So much of an address as is shown."""
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}…"
