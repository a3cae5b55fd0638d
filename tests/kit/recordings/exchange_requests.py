"""Build the HTTP request of a recorded exchange: path, headers, body, archives, with placeholders filled."""

from __future__ import annotations

import io
import json
import tarfile
import zipfile
from typing import Any
from urllib.parse import quote, urlencode

from tests.kit.recordings.answer_comparison import Names


def build_request(request: dict[str, Any], names: Names) -> tuple[str, dict[str, str], bytes]:
    """Path with query, headers and body of a recorded request. Raises KeyError for unbound names."""
    query = [(names.fill(key), names.fill(value)) for key, value in request.get("query") or ()]
    headers = {names.fill(key): names.fill(value) for key, value in (request.get("headers") or {}).items()}
    cookies = {key: names.fill(value) for key, value in (request.get("cookies") or {}).items()}
    auth = request.get("auth")
    if auth:
        token = names.bound[f"token.{auth['as']}"]
        if auth["by"] == "header":
            headers["Coder-Session-Token"] = token
        elif auth["by"] == "bearer":
            headers["Authorization"] = f"Bearer {token}"
        elif auth["by"] == "cookie":
            cookies.setdefault("coder_session_token", token)
        elif not any(key == "coder_session_token" for key, _ in query):
            query.append(("coder_session_token", token))
    if cookies:
        headers["Cookie"] = "; ".join(f"{key}={value}" for key, value in cookies.items())
    headers.setdefault("Accept-Encoding", "identity")
    headers.setdefault("User-Agent", "conformance-client")
    content = _body(request, headers, names)
    path = quote(names.fill(request["path"]), safe="/%:@!$&'()*+,;=~-._")
    return path + (f"?{urlencode(query)}" if query else ""), headers, content


def _body(request: dict[str, Any], headers: dict[str, str], names: Names) -> bytes:
    if "body" in request:
        headers.setdefault("Content-Type", "application/json")
        return json.dumps(names.fill_all(request["body"])).encode()
    if "form" in request:
        headers.setdefault("Content-Type", "application/x-www-form-urlencoded")
        return urlencode(names.fill_all(request["form"])).encode()
    raw = request.get("body_raw")
    if raw is None:
        return b""
    if isinstance(raw, str):
        return names.fill(raw).encode()
    (kind, value), *_ = raw.items()
    if kind == "$zeros":
        return bytes(value)
    if kind == "$json":
        return json.dumps(names.fill_all(value)).encode()
    return _tar(value) if kind == "$tar" else _zip(value)


def _tar(files: dict[str, Any]) -> bytes:
    output = io.BytesIO()
    with tarfile.open(fileobj=output, mode="w") as archive:
        for name, text in files.items():
            data = text.encode()
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), 0o644
            archive.addfile(info, io.BytesIO(data))
    return output.getvalue()


def _zip(files: dict[str, Any]) -> bytes:
    output = io.BytesIO()
    with zipfile.ZipFile(output, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return output.getvalue()
