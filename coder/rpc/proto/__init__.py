"""Generated messages, and the library they stand on as we load it."""

import coder.rpc.protobuf_library  # noqa: F401 - before any of them loads the whole
