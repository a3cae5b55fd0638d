"""Prints the API's OpenAPI document, read from the handlers' sources: what a server shows at /swagger/doc.json.

Run by scripts/generate-openapi and by the build. Starts no server and needs no database. The build puts its result into
the program, which has no sources to read.
"""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from coder.api.base import codec  # noqa: E402
from coder.coderd.app import describe_api  # noqa: E402

if __name__ == "__main__":
    data = codec.encode(describe_api())
    if len(sys.argv) > 1:
        Path(sys.argv[1]).write_bytes(data)
    else:
        sys.stdout.buffer.write(data + b"\n")
