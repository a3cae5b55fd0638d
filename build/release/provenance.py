"""Provenance of a release: an in-toto statement with SLSA's predicate, in a signed DSSE envelope.

It has no time and no id of a run, so that two builds of one commit give the same bytes. The builder is the checkout's
own script: SLSA's level 1, since no separate service attests it.

Sources: in-toto Statement v1, https://slsa.dev/spec/v1.0/provenance, DSSE 1.0 (protocol.md).
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path
from typing import Any

from release.keys import ReleaseKey
from release.plan import ROOT, Plan, digest, write

FILE = "provenance.intoto.jsonl"
PAYLOAD_TYPE = "application/vnd.in-toto+json"
_INPUTS = ("scripts/constraints.txt", "coder/dashboard/package-lock.json", "build/root-python.sh")
"""Files that pin what a build fetches …"""
_PINS = "build/desktop/pins"
"""… and the folder with the pins of the programs for Windows and macOS."""


def build(plan: Plan, files: list[Path]) -> Path:
    """Write the provenance of some files of the release and return its path."""
    statement = json.dumps(describe(plan, files), sort_keys=True, separators=(",", ":")).encode()
    return write(plan.out / FILE, json.dumps(envelope(plan.key, statement), sort_keys=True) + "\n")


def describe(plan: Plan, files: list[Path]) -> dict[str, Any]:
    """Return the statement."""
    inputs = [ROOT / name for name in _INPUTS] + sorted((ROOT / _PINS).iterdir())
    source = {"uri": f"git+{plan.url}", "digest": {"gitCommit": plan.commit}}
    pinned = [{"uri": path.relative_to(ROOT).as_posix(), "digest": {"sha256": digest(path)}} for path in inputs]
    return {
        "_type": "https://in-toto.io/Statement/v1",
        "subject": [
            {"name": path.relative_to(plan.out).as_posix(), "digest": {"sha256": digest(path)}}
            for path in sorted(files)
        ],
        "predicateType": "https://slsa.dev/provenance/v1",
        "predicate": {
            "buildDefinition": {
                "buildType": f"{plan.url}/scripts/release/v1",
                "externalParameters": {"version": plan.version, "programs": sorted(plan.programs)},
                "internalParameters": {"sourceDateEpoch": plan.time},
                "resolvedDependencies": [source, *pinned],
            },
            "runDetails": {"builder": {"id": f"{plan.url}/scripts/release"}},
        },
    }


def envelope(key: ReleaseKey, payload: bytes) -> dict[str, Any]:
    """Return the DSSE envelope of a payload."""
    return {
        "payloadType": PAYLOAD_TYPE,
        "payload": base64.b64encode(payload).decode(),
        "signatures": [
            {
                "keyid": hashlib.sha256(key.public).hexdigest(),
                "sig": base64.b64encode(key.private.sign(encoded(payload))).decode(),
            }
        ],
    }


def encoded(payload: bytes) -> bytes:
    """Return the bytes that DSSE signs (pre-authentication encoding)."""
    return b"DSSEv1 %d %s %d %s" % (len(PAYLOAD_TYPE), PAYLOAD_TYPE.encode(), len(payload), payload)
