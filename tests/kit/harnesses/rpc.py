"""Harnesses of RPC and coordination."""

from __future__ import annotations

from coder.net.websocket_frames import FrameSplitter, encode_binary
from coder.rpc import drpc, yamux
from tests.kit.harnesses.parts import OURS, Harness


def _yamux(data: bytes) -> None:
    machine = yamux.Yamux(client=False)
    machine.receive_untrusted(data)


def _drpc(data: bytes) -> None:
    list(drpc.IncomingCall().receive_untrusted(data))


def _websocket(data: bytes) -> None:
    frames = FrameSplitter(masked=True)
    frames.receive_untrusted(data)
    parts = iter(frames.next_part, None)
    assert sum(len(part) for _, part in parts) <= len(data)


def _node(data: bytes) -> object:
    from coder.rpc.proto import tailnet_pb2
    from coder.tailnet.node_messages import node_from_proto_untrusted

    key, disco_text = data[:34], data[34:].decode("utf-8", "replace")
    return node_from_proto_untrusted(tailnet_pb2.Node(key=key, disco=disco_text))


def _coordinate(data: bytes) -> object:
    from coder.coderd.services.network.coordinator import request_from_proto_untrusted
    from coder.rpc.proto import tailnet_pb2

    request = tailnet_pb2.CoordinateRequest()
    request.add_tunnel.id = data
    return request_from_proto_untrusted(request)


def _raw_uuid(data: bytes) -> object:
    from coder.coderd.services.network.coordinator import _uuid_untrusted

    return _uuid_untrusted(data)


FRAME = yamux.encode_frame(yamux.YamuxFrame(yamux.FrameType.DATA, yamux.Flag(1), 1, 4, b"data"))


CALL = drpc.encode_packet(drpc.DrpcPacket(drpc.PacketKind.INVOKE, 1, 1, b"/name"))


RPC = {
    "net/websocket_frames.py:FrameSplitter.receive_untrusted": Harness(
        _websocket, (), [encode_binary(b"data", masked=True) * 2]
    ),
    "rpc/drpc.py:PacketReader.receive_untrusted": Harness(
        lambda d: list(drpc.PacketReader().receive_untrusted(d)), (drpc.DrpcError,), [CALL]
    ),
    "rpc/drpc.py:IncomingCall.receive_untrusted": Harness(_drpc, (drpc.DrpcError,), [CALL]),
    "rpc/yamux.py:YamuxFrameReader.receive_untrusted": Harness(
        lambda d: list(yamux.YamuxFrameReader().receive_untrusted(d)), (yamux.YamuxError,), [FRAME]
    ),
    "rpc/yamux.py:Yamux.receive_untrusted": Harness(_yamux, (yamux.YamuxError,), [FRAME]),
    "tailnet/node_messages.py:node_from_proto_untrusted": Harness(
        _node, (), [OURS.public.binary + b"discokey:" + bytes(OURS.public).hex().encode()]
    ),
    "coderd/services/network/coordinator.py:request_from_proto_untrusted": Harness(
        _coordinate, (ValueError,), [bytes(16)]
    ),
    "coderd/services/network/coordinator.py:_uuid_untrusted": Harness(_raw_uuid, (ValueError,), [bytes(16)]),
}
