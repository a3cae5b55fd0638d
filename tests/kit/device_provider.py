"""A provider of accounts where somebody types a code on another page (RFC 8628), as external authentication asks it."""

from __future__ import annotations

import http.server
import json
import threading
from typing import Any


class Desk(http.server.ThreadingHTTPServer):
    """It gives out a code, and a token once somebody has confirmed it."""

    confirmed = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _AtTheDesk)
        self.url = f"http://127.0.0.1:{self.server_port}"
        threading.Thread(target=self.serve_forever, daemon=True).start()

    def variables(self, number: int) -> dict[str, str]:
        """Of a server where it is the provider `desk`, as the environment says it."""
        said = {"ID": "desk", "TYPE": "custom", "DISPLAY_NAME": "Desk", "CLIENT_ID": "coder", "DEVICE_FLOW": "true"}
        said |= {"AUTH_URL": f"{self.url}/auth", "DEVICE_CODE_URL": f"{self.url}/code"}
        said |= {"TOKEN_URL": f"{self.url}/token", "VALIDATE_URL": f"{self.url}/me"}
        return {f"CODER_EXTERNAL_AUTH_{number}_{name}": value for name, value in said.items()}


class _AtTheDesk(http.server.BaseHTTPRequestHandler):
    server: Desk

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if self.path == "/code":
            page = f"{self.server.url}/confirm"
            self._say(200, {"device_code": "d", "user_code": "WDJB-MJHT", "verification_uri": page, "interval": 1})
        elif self.server.confirmed:
            self._say(200, {"access_token": "t", "token_type": "bearer"})
        else:
            self._say(400, {"error": "authorization_pending"})

    def do_GET(self) -> None:
        self._say(200, {"login": "ada", "name": "Ada"})

    def _say(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        pass
