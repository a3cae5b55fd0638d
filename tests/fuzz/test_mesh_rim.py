"""Untrusted bytes at the edge of the mesh: relay streams of both ends.

The invariant is always the same: only the documented error is raised, and no state remains.
"""

from __future__ import annotations

import trio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from coder.mesh.core.crypto.keys import PrivateKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.wire import derp, derp_info
from coder.mesh.drivers.derp_server import DerpServer
from coder.mesh.drivers.framing import FrameBuffer
from coder.mesh.drivers.pipe import pipe_pair

quick = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

frames = st.one_of(
    st.binary(max_size=80),
    st.builds(derp.frame, st.integers(0, 255), st.binary(max_size=120)),
    st.builds(
        derp.encode_send_packet,
        st.sampled_from([bytes([n]) * 32 for n in (1, 2)]),
        st.binary(max_size=50).map(lambda rest: b"TS\xf0\x9f\x92\xac" + rest),
    ),
)


def serve(chunks: list[bytes], *, logged_in: bool) -> DerpServer:
    """Feed chunks to a relay connection; return when it has ended."""
    server = DerpServer(PrivateKey(bytes([9]) * 32))
    me = PrivateKey(bytes([1]) * 32)

    async def main() -> None:
        ours, theirs = pipe_pair(capacity=1 << 20)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(server.serve_connection, theirs)
            if logged_in:
                from coder.mesh.core.crypto.box import SharedBox

                box = SharedBox(me, server.public_key)
                info = derp_info.seal_client_info(box, me.public, bytes(24), derp_info.ClientInfo())
                await ours.send_all(info.encode())
            try:
                for chunk in chunks:
                    await ours.send_all(chunk)
                await ours.send_eof()
            except trio.BrokenResourceError:
                pass  # the relay closed the connection, as it may

    trio.run(main)
    return server


@quick
@given(chunks=st.lists(frames, max_size=8))
def test_relay_survives_any_client(chunks: list[bytes]) -> None:
    for logged_in in (False, True):
        server = serve(chunks, logged_in=logged_in)
        assert server.counters.current == 0
        assert not server._clients


@quick
@given(data=st.binary(max_size=60))
def test_handshake_reader_raises_one_error(data: bytes) -> None:
    async def main() -> None:
        ours, theirs = pipe_pair()
        await ours.send_all(data)
        await ours.send_eof()
        inbox = FrameBuffer(theirs, b"")
        try:
            while True:
                await inbox.frame()
        except WireError:
            pass

    trio.run(main)
