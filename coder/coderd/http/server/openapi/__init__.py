"""The OpenAPI document of this server, read from what its routes declare (`http/server/declarations.py`).

`operations` lists them, `document` writes them down; there is no second list of routes and types to keep. Loaded on
the first request for the document and never before. Serving it: `http/server/swagger.py`.
"""
