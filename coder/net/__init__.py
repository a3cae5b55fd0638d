"""HTTP client side of a process: dial policy, TLS, proxies, HTTP/1.1 requests, WebSocket byte streams.

The package does not know workspaces. Everything runs on trio streams and imports only `coder.base`.
"""
