"""What of an address may be shown: to people, in errors, in logs. Client and server ask the same function.

Secrets stand where an API puts them: in a query, as a login, and in a few paths, of which the table is here. A test
compares it with the server's routes.
"""

from __future__ import annotations

import re

SECRET_PATHS = ("/api/v2/provisionerkeys/", "/derp/streams/")
"""What follows one of these is a secret, whatever is answered: a provisioner key; the right to a carried stream."""

STARS = "***"
_WORDS = "token|secret|key|code|password|session|signature|state"
_QUERY = re.compile(rf"(?i)([?&][^=&]*(?:{_WORDS})[^=&]*=)[^&]*")
_LOGIN = re.compile(r"//[^/@]*@")
# Servers take more than one slash for one, and a URL may have a path of its own before ours.
_BEFORE = "(" + "|".join("/+".join(path.split("/")) for path in SECRET_PATHS) + ")"
_PART, _REST = re.compile(_BEFORE + "[^?#]+"), re.compile(_BEFORE + ".+", re.DOTALL)


def masked(url: str) -> str:
    """The URL, or path with a query, with stars for the login, a secret in the path and what looks so in the query."""
    return _LOGIN.sub(f"//{STARS}@", _QUERY.sub(rf"\1{STARS}", _PART.sub(rf"\1{STARS}", url)))


def masked_path(path: str) -> str:
    """The same for a decoded path alone: `?` and `#` are letters of it."""
    return _REST.sub(rf"\1{STARS}", path)
