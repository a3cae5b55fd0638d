"""SPDX 2.3 documents from the CycloneDX bills of materials that the build writes: the same components, no second scan.

Source: https://spdx.github.io/spdx-spec/v2.3/
"""

from __future__ import annotations

import hashlib
import json
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from release.plan import LICENSE, PACKAGE, Plan, write

Component = dict[str, Any]
_UNKNOWN = "NOASSERTION"
_ID_CHARACTERS = re.compile(r"[^A-Za-z0-9.-]+")


def build(plan: Plan, bill: Path) -> Path:
    """Write `NAME.spdx.json` next to `NAME.cdx.json` and return its path."""
    name = bill.name.removesuffix(".cdx.json")
    text = json.dumps(convert(json.loads(bill.read_bytes()), name, plan), indent=1, ensure_ascii=False)
    return write(bill.with_name(f"{name}.spdx.json"), text + "\n")


def convert(bill: dict[str, Any], name: str, plan: Plan) -> dict[str, Any]:
    """Return the SPDX document of a CycloneDX document."""
    main: Component = bill["metadata"]["component"]
    components: list[Component] = bill["components"]
    packages = [package(main), *(package(component) for component in components)]
    root = packages[0]["SPDXID"]
    content = hashlib.sha256(json.dumps(packages, sort_keys=True).encode()).hexdigest()
    relationships = [relation("SPDXRef-DOCUMENT", "DESCRIBES", root)]
    relationships += [relation(root, "CONTAINS", each["SPDXID"]) for each in packages[1:]]
    return {
        "spdxVersion": "SPDX-2.3",
        "dataLicense": "CC0-1.0",
        "SPDXID": "SPDXRef-DOCUMENT",
        "name": f"{name}-{plan.version}",
        "documentNamespace": f"{plan.url}/{plan.version}/{name}/{content}",
        "creationInfo": {
            "created": datetime.fromtimestamp(plan.time, UTC).strftime("%Y-%m-%dT%H:%M:%SZ"),
            "creators": [f"Tool: {PACKAGE}-release", f"Organization: {PACKAGE}"],
        },
        "packages": packages,
        "relationships": relationships,
    }


def package(component: Component) -> Component:
    """Return the SPDX package of a component."""
    purl = component.get("purl", "")
    hashes = component.get("hashes", ())
    made: Component = {
        "SPDXID": identifier(component["bom-ref"]),
        "name": component["name"],
        "versionInfo": component["version"],
        "downloadLocation": _UNKNOWN,
        "filesAnalyzed": False,
        "licenseConcluded": _UNKNOWN,
        "licenseDeclared": license_of(component),
        "copyrightText": _UNKNOWN,
    }
    if purl:
        made["externalRefs"] = [
            {"referenceCategory": "PACKAGE-MANAGER", "referenceType": "purl", "referenceLocator": purl}
        ]
    if hashes:
        made["checksums"] = [
            {"algorithm": item["alg"].replace("-", ""), "checksumValue": item["content"]} for item in hashes
        ]
    return made


def identifier(reference: str) -> str:
    """Return a component's id: its readable part may be the same for two references, so a hash follows."""
    readable = _ID_CHARACTERS.sub("-", reference).strip("-")
    return f"SPDXRef-{readable}-{hashlib.sha256(reference.encode()).hexdigest()[:8]}"


def license_of(component: Component) -> str:
    """Return the licence expression of a component."""
    for entry in component.get("licenses", ()):
        if "expression" in entry:
            return str(entry["expression"])
        if "id" in entry.get("license", {}):
            return str(entry["license"]["id"])
    return LICENSE if component["type"] == "application" else _UNKNOWN


def relation(source: str, kind: str, target: str) -> dict[str, str]:
    return {"spdxElementId": source, "relationshipType": kind, "relatedSpdxElement": target}
