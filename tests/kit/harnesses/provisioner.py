"""Harnesses of the provisioner."""

from __future__ import annotations

import tempfile
from pathlib import Path

from coder.base.errors import CoderError
from tests.kit.harnesses.parts import Harness, _tar


def _grpc(data: bytes) -> None:
    from coder.provisionerd.terraform.provider.grpc import GrpcServer

    server = GrpcServer(lambda _path, _body: b"")
    server.take_output()
    server.receive_untrusted(data)
    server.take_output()


def _unpack(data: bytes) -> object:
    from coder.provisionerd.archive import unpack_untrusted

    with tempfile.TemporaryDirectory() as folder:
        return unpack_untrusted(data, Path(folder))


HTTP2 = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))


PROVISIONER = {
    "provisionerd/terraform/provider/grpc.py:GrpcServer.receive_untrusted": Harness(_grpc, (CoderError,), [HTTP2]),
    "provisionerd/archive.py:unpack_untrusted": Harness(_unpack, (CoderError,), [_tar()]),
}
