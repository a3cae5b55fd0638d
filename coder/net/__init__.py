"""How a process reaches an HTTP server: dial policy, TLS, proxies, HTTP/1.1 requests, WebSocket byte streams.

Knows nothing of workspaces. Everything runs on trio streams and imports only `coder.base`.
"""
