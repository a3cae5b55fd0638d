"""Generated messages, and their protobuf library with our loading."""

import coder.rpc.protobuf_library  # noqa: F401 - before any of them loads the whole
