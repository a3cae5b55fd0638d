"""Print the API's OpenAPI document, generated from the handlers' sources, as a server serves it at /swagger/doc.json.

scripts/generate-openapi and the build run this. It starts no server and requires no database. The build stores the
result in the program, which has no sources.
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
