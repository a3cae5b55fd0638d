"""Terraform's encoding functions: base64, CSV, JSON, YAML, URLs, digests."""

from __future__ import annotations

import base64
import csv
import gzip
import hashlib
import io
import json
import re
import urllib.parse
import uuid

from coder.domain.hcl import values as v
from coder.domain.hcl.values import EvaluationError, TableFunction, Value, to_text


def _digest(name: str) -> TableFunction:
    return lambda s: hashlib.new(name, to_text(s).encode(), usedforsecurity=False).hexdigest()


def _json(text: str) -> Value:
    result = json.loads(text, parse_float=v.read_number, parse_constant=v.read_number)
    return v.well_formed(result) if "\\u" in text else result


def _yaml(text: str) -> Value:
    from coder.domain.hcl.yaml_text import read_yaml_untrusted

    return read_yaml_untrusted(text)


def _yaml_text(value: Value) -> str:
    """Write YAML as Terraform does: strings and keys quoted, multi-line strings as blocks, everything else plain."""
    import yaml

    class Dumper(yaml.SafeDumper):
        pass

    def represent(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
        return dumper.represent_scalar("tag:yaml.org,2002:str", text, style="|" if "\n" in text else '"')

    Dumper.add_representer(str, represent)
    written = yaml.dump(json.loads(v.to_json(value)), Dumper=Dumper, default_flow_style=False, width=1 << 20)
    return str(written).removesuffix("...\n")


def to_base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _csv(text: str) -> list[dict[str, str]]:
    try:
        rows = [row for row in csv.reader(io.StringIO(text), strict=True) if row]
    except csv.Error as problem:
        raise EvaluationError("the text is not CSV") from problem
    if not rows:
        raise EvaluationError("missing header line")
    header = rows[0]
    if len(set(header)) < len(header):
        raise EvaluationError("duplicate column name")
    if any(len(row) != len(header) for row in rows):
        raise EvaluationError("wrong number of fields")
    return [dict(zip(header, row, strict=True)) for row in rows[1:]]


_SPACES: dict[str, uuid.UUID] = {
    "dns": uuid.NAMESPACE_DNS,
    "url": uuid.NAMESPACE_URL,
    "oid": uuid.NAMESPACE_OID,
    "x500": uuid.NAMESPACE_X500,
}


def _urldecode(text: str) -> str:
    if re.search(r"%(?![0-9A-Fa-f]{2})", text):
        raise EvaluationError("invalid URL escape")
    try:
        return urllib.parse.unquote_plus(text, errors="strict")
    except UnicodeDecodeError as problem:
        raise EvaluationError("the decoded text is not UTF-8") from problem


def _rsadecrypt(ciphertext: str, key: str) -> str:
    """Decrypt base64 with PKCS #1 v1.5."""
    from cryptography.hazmat.primitives.asymmetric.padding import PKCS1v15
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    try:
        private = load_pem_private_key(key.encode(), None)
        if not isinstance(private, RSAPrivateKey):
            raise EvaluationError("rsadecrypt: the key is not an RSA private key")
        return private.decrypt(base64.b64decode(ciphertext, validate=True), PKCS1v15()).decode()
    except (ValueError, TypeError) as problem:
        raise EvaluationError("rsadecrypt: failed to decrypt") from problem


ENCODING_FUNCTIONS: dict[str, TableFunction] = {
    "base64decode": lambda s: base64.b64decode(to_text(s), validate=True).decode(),
    "base64encode": lambda s: to_base64(to_text(s).encode()),
    "base64gzip": lambda s: to_base64(gzip.compress(to_text(s).encode(), mtime=0)),
    "base64sha256": lambda s: to_base64(hashlib.sha256(to_text(s).encode()).digest()),
    "base64sha512": lambda s: to_base64(hashlib.sha512(to_text(s).encode()).digest()),
    "csvdecode": lambda s: _csv(to_text(s)),
    "jsondecode": lambda s: _json(to_text(s)),
    "jsonencode": v.to_json,
    "md5": _digest("md5"),
    "sha1": _digest("sha1"),
    "sha256": _digest("sha256"),
    "sha512": _digest("sha512"),
    "rsadecrypt": lambda ciphertext, key: _rsadecrypt(to_text(ciphertext), to_text(key)),
    "urldecode": lambda s: _urldecode(to_text(s)),
    "urlencode": lambda s: urllib.parse.quote_plus(to_text(s), safe=""),
    "uuidv5": lambda space, name: str(uuid.uuid5(_SPACES.get(space) or uuid.UUID(space), to_text(name))),
    "yamldecode": lambda s: _yaml(to_text(s)),
    "yamlencode": _yaml_text,
    "textencodebase64": lambda s, encoding: to_base64(to_text(s).encode(to_text(encoding))),
    "textdecodebase64": lambda s, encoding: base64.b64decode(to_text(s)).decode(to_text(encoding)),
}
