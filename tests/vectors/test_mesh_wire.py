"""Keys, disco, STUN, DERP and WireGuard as written by upstream's own libraries, byte for byte in both directions."""

from __future__ import annotations

import struct
from itertools import count
from typing import Any

import pytest

from coder.mesh.core.crypto import aead, noise
from coder.mesh.core.crypto.box import SharedBox
from coder.mesh.core.crypto.handshake_cookie import CookieJar, CookieMaker, cookie_key, mac1_key, mac16
from coder.mesh.core.crypto.keys import PrivateKey, PublicKey
from coder.mesh.core.errors import WireError
from coder.mesh.core.tunnel.device import Device
from coder.mesh.core.tunnel.handshake import tai64n
from coder.mesh.core.wire import derp, derp_info, derp_reader, disco, stun, wireguard
from coder.mesh.core.wire.address import endpoint_of_bytes, parse_endpoint_untrusted
from tests.kit.recordings.wire_recordings import load_json

h = bytes.fromhex


# -- keys -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("case", load_json("keys.json")["keys"])
def test_keys_have_recorded_forms(case: dict[str, str]) -> None:
    private = PrivateKey.from_text(case["node_private_text"])
    public = private.public
    assert private.reveal().hex() == case["private_raw"]
    assert private.text == case["machine_private_text"]
    assert public.hex() == case["public_raw"] == case["node_public_untyped"]
    assert public.node_text == case["node_public_text"]
    assert public.disco_text == case["disco_public_text"]
    assert public.machine_text == case["machine_public_text"]
    assert public.binary.hex() == case["node_public_binary"]
    assert public.short == case["node_public_short"]
    assert public.disco_short == case["disco_public_short"]
    for text in ("node_public_text", "disco_public_text", "machine_public_text", "node_public_untyped"):
        assert PublicKey.from_text(case[text]) == public
    assert PublicKey.from_binary_untrusted(h(case["node_public_binary"])) == public


# -- disco ------------------------------------------------------------------------------------------------------------
DISCO = load_json("disco.json")


def disco_message(fields: dict[str, Any]) -> disco.Message:
    if fields["type"] == disco.TYPE_PING:
        return disco.DiscoPing(h(fields["tx_id"]), PublicKey(h(fields["node_key"])))
    if fields["type"] == disco.TYPE_PONG:
        return disco.DiscoPong(h(fields["tx_id"]), parse_endpoint_untrusted(fields["src"]))
    return disco.CallMeMaybe(tuple(parse_endpoint_untrusted(e) for e in fields["endpoints"]))


@pytest.mark.parametrize("case", DISCO["messages"], ids=lambda case: case["name"])
def test_disco_packets_open_and_seal(case: dict[str, Any]) -> None:
    a, b = (PrivateKey(h(DISCO[f"disco_private_{name}"])) for name in "AB")
    sender, receiver = (a, b) if case["from"] == "A" else (b, a)
    packet, message = h(case["packet"]), disco_message(case["fields"])
    assert disco.is_disco(packet) and len(packet) == case["packet_len"]
    assert disco.sender_untrusted(packet) == sender.public
    assert disco.open_untrusted(SharedBox(receiver, sender.public), packet) == message
    assert message.encode().hex() == case["cleartext"]
    sealed = disco.seal(SharedBox(sender, receiver.public), sender.public, h(case["nonce"]), message)
    assert sealed == packet


@pytest.mark.parametrize("case", DISCO["parser_cases"], ids=lambda case: case["name"])
def test_odd_disco_cleartexts_like_upstream(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(WireError) as refused:
            disco.parse_untrusted(h(case["cleartext"]))
        assert refused.value.message == case["error"]
        return
    message, result = disco.parse_untrusted(h(case["cleartext"])), case["result"]
    if isinstance(message, disco.DiscoPing):
        assert (result["type"], h(result["tx_id"])) == ("ping", message.tx_id)
        assert message.node_key == h(result["node_key"]) and message.node_key.is_zero == result["node_key_zero"]
    elif isinstance(message, disco.DiscoPong):
        assert result == {"type": "pong", "tx_id": message.tx_id.hex(), "src": str(message.source)}
    else:
        assert result == {"type": "call_me_maybe", "n": len(message.endpoints)}


# -- STUN -------------------------------------------------------------------------------------------------------------
STUN = load_json("stun.json")


def test_stun_request_matches_recording() -> None:
    assert stun.BindingRequest(h(STUN["tx_id"])).encode().hex() == STUN["request"]


@pytest.mark.parametrize("case", STUN["request_cases"], ids=lambda case: case["name"])
def test_stun_requests_accepted_like_upstream(case: dict[str, Any]) -> None:
    if "error" in case:
        with pytest.raises(WireError):
            stun.parse_request_untrusted(h(case["packet"]))
    else:
        assert stun.parse_request_untrusted(h(case["packet"])).tx_id.hex() == case["tx_id"]


@pytest.mark.parametrize("case", STUN["responses"], ids=lambda case: case["name"])
def test_stun_responses_parse_like_upstream(case: dict[str, Any]) -> None:
    packet = h(case["packet"])
    assert stun.is_stun(packet) == case["is_stun"]
    if "error" in case:
        with pytest.raises(WireError):
            stun.parse_response_untrusted(packet)
        return
    response = stun.parse_response_untrusted(packet)
    assert (response.tx_id.hex(), *response.source) == (case["tx_id"], case["addr"], case["port"])
    if case["name"] in ("xor-mapped v4", "xor-mapped v6"):
        assert response.encode() == packet


# -- DERP -------------------------------------------------------------------------------------------------------------
DERP = load_json("derp.json")
CONNECTIONS = {c["client"]: c for c in DERP["connections"]}
FRAME_NAMES = {
    derp.ServerKey: "server_key",
    derp.SealedClientInfo: "client_info",
    derp.SealedServerInfo: "server_info",
    derp.SendPacket: "send_packet",
    derp.RecvPacket: "recv_packet",
    derp.KeepAlive: "keep_alive",
    derp.NotePreferred: "note_preferred",
    derp.PeerGone: "peer_gone",
    derp.PeerPresent: "peer_present",
    derp.ForwardPacket: "forward_packet",
    derp.WatchConns: "watch_conns",
    derp.ClosePeer: "close_peer",
    derp.DerpPing: "ping",
    derp.DerpPong: "pong",
}


def derp_public(letter: str) -> str:
    keys = DERP["keys"]
    return str(keys["nobody_public"] if letter == "nobody" else keys["clients"][letter]["public"])


def check_fields(value: derp.Frame, recorded: dict[str, Any]) -> None:
    encoded: dict[str, Any] = {
        name: getattr(value, name)
        for name in ("packet", "data", "reason", "preferred", "nonce")
        if hasattr(value, name)
    }
    for name, actual in encoded.items():
        want = recorded[name]
        assert actual == (h(want) if isinstance(want, str) else want), name
    for name in ("key", "source", "destination"):
        letter = recorded.get({"source": "src", "destination": "dst"}.get(name, name), recorded.get("key"))
        if hasattr(value, name) and letter:
            assert getattr(value, name).hex() == derp_public(letter)


@pytest.mark.parametrize("client", CONNECTIONS)
def test_derp_frames_match_recording(client: str) -> None:
    for recorded in CONNECTIONS[client]["frames"]:
        raw = h(recorded["hex"])
        [(kind, body)] = derp_reader.FrameReader().feed_untrusted(raw)
        value = derp_reader.parse_untrusted(kind, body)
        assert kind == recorded["type"] and FRAME_NAMES[type(value)] == recorded["name"]
        assert value.encode() == raw
        check_fields(value, recorded)


@pytest.mark.parametrize("client", CONNECTIONS)
def test_derp_infos_match_recording(client: str) -> None:
    server = PrivateKey(h(DERP["keys"]["server_private"]))
    key = PrivateKey(h(DERP["keys"]["clients"][client]["private"]))
    frames = {f["name"]: f for f in CONNECTIONS[client]["frames"]}
    box = SharedBox(server, key.public)
    sealed_client = derp_reader.parse_untrusted(derp.CLIENT_INFO, h(frames["client_info"]["hex"])[5:])
    assert isinstance(sealed_client, derp.SealedClientInfo)
    info = derp_info.open_client_info_untrusted(box, sealed_client)
    assert info.encode().decode() == frames["client_info"]["json"]
    assert bool(info.mesh_key) == (client == "M")
    assert derp_info.seal_client_info(box, key.public, sealed_client.nonce, info) == sealed_client
    sealed_server = derp_reader.parse_untrusted(derp.SERVER_INFO, h(frames["server_info"]["hex"])[5:])
    assert isinstance(sealed_server, derp.SealedServerInfo)
    answer = derp_info.open_server_info_untrusted(SharedBox(key, server.public), sealed_server)
    assert answer.encode().decode() == frames["server_info"]["json"]
    assert derp_info.seal_server_info(box, sealed_server.nonce, answer) == sealed_server


@pytest.mark.parametrize("client", ["A", "M"])
@pytest.mark.parametrize("chunk", [1, 7, 4096])
def test_derp_streams_match_recorded_frames(client: str, chunk: int) -> None:
    connection = CONNECTIONS[client]
    for direction, data in connection["bytes_after_http"].items():
        raw, reader, frames = h(data), derp_reader.FrameReader(), []
        for at in range(0, len(raw), chunk):
            frames += [derp.frame(*f) for f in reader.feed_untrusted(raw[at : at + chunk])]
        assert [f.hex() for f in frames] == [f["hex"] for f in connection["frames"] if f["dir"] == direction]
        assert reader.pending == 0


def test_odd_derp_frames_like_upstream() -> None:
    absent = PublicKey(h(DERP["keys"]["nobody_public"]))
    expected: dict[str, derp.Frame] = {
        "health, problem text": derp.Health("some problem"),
        "health, healthy": derp.Health(""),
        "restarting, reconnect in 500 ms, try for 10000 ms": derp.Restarting(500, 10_000),
        "peer gone without reason byte": derp.PeerGone(absent, derp.GONE_DISCONNECTED),
        "peer gone, reason 1": derp.PeerGone(absent, derp.GONE_NOT_HERE),
        "peer present, key only": derp.PeerPresent(absent),
        "ping from server": derp.DerpPing(h("0908070605040302")),
        "unknown type then keepalive": derp.KeepAlive(),
    }
    for case in DERP["client_parser_cases"]:
        frames = [derp_reader.parse_untrusted(*f) for f in derp_reader.FrameReader().feed_untrusted(h(case["frame"]))]
        if case["name"] == "peer present with address":
            [present] = frames
            assert isinstance(present, derp.PeerPresent) and present.key == absent
            encoded = endpoint_of_bytes(present.address[:16], int.from_bytes(present.address[16:], "big"))
            assert str(encoded) == "[2001:db8::1]:8080"
        else:
            assert frames[-1] == expected[case["name"]], case["name"]
            assert all(isinstance(f, derp.UnknownFrame) for f in frames[:-1])


# -- WireGuard --------------------------------------------------------------------------------------------------------
SCENARIOS = load_json("wireguard.json")["scenarios"]


class Sides:
    """The keys of a scenario."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        i, r = scenario["initiator"], scenario["responder"]
        self.i, self.r = PrivateKey(h(i["static_private"])), PrivateKey(h(r["static_private"]))
        self.ie, self.re = PrivateKey(h(i["ephemeral_private"])), PrivateKey(h(r["ephemeral_private"]))
        self.i_index, self.r_index = i["sender_index"], r["sender_index"]
        self.psk = h(scenario["psk"])
        self.stamp = h(scenario["timestamp"]["tai64n"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_wireguard_messages_match_recording(scenario: dict[str, Any]) -> None:
    names = {
        wireguard.Initiation: ("initiation",),
        wireguard.HandshakeResponse: ("response",),
        wireguard.Transport: ("transport", "keepalive"),
        wireguard.CookieReply: ("cookie reply",),
    }
    extra = [{"type": "cookie reply", "packet": scenario["cookie"]["reply"]}]
    for recorded in [*scenario["messages"], *extra]:
        packet = h(recorded["packet"])
        message = wireguard.parse_untrusted(packet)
        assert message.encode() == packet
        assert recorded["type"] in names[type(message)]
        if isinstance(message, wireguard.Transport):
            assert (message.receiver, message.counter) == (recorded["receiver"], recorded["counter"])


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_wireguard_transcript_matches_recorded_states(scenario: dict[str, Any]) -> None:
    s = Sides(scenario)
    states = {state["after"]: state for state in scenario["noise_states"]}
    assert noise.INITIAL_CHAIN.hex() == states["initial"]["chain_key"]
    assert noise.INITIAL_HASH.hex() == states["initial"]["hash"]
    assert noise.initial_hash(s.r.public).hex() == states["initiation 1: mix responder static"]["hash"]
    assert s.ie.exchange(s.r.public).hex() == states["initiation 3: static"]["dh_ei_sr"]
    shared = s.i.exchange(s.r.public)
    assert shared.hex() == states["initiation 4: timestamp"]["dh_si_sr"]
    stamp = scenario["timestamp"]
    assert tai64n(stamp["unix_seconds"], stamp["nanoseconds"]) == s.stamp

    fields, initiated = noise.write_initiation(s.i.public, s.r.public, shared, s.ie, s.stamp)
    after = states["initiation 4: timestamp"]
    assert (initiated.transcript.chain.hex(), initiated.transcript.hash.hex()) == (after["chain_key"], after["hash"])
    opened_initiation = noise.read_initiation_untrusted(s.r, fields.ephemeral, fields.static)
    between = states["initiation 3: static"]
    assert (opened_initiation.transcript.chain.hex(), opened_initiation.transcript.hash.hex()) == (
        between["chain_key"],
        between["hash"],
    )
    assert opened_initiation.remote == s.i.public
    opened, accepted = noise.read_timestamp_untrusted(opened_initiation, shared, fields.timestamp)
    assert opened == s.stamp and accepted.transcript == initiated.transcript

    empty, theirs = noise.write_response(accepted, s.re, s.psk)
    ours = noise.read_response_untrusted(initiated, s.i, s.re.public, empty, s.psk)
    assert ours.send.hex() == theirs.receive.hex() == scenario["transport_key_initiator_to_responder"]
    assert ours.receive.hex() == theirs.send.hex() == scenario["transport_key_responder_to_initiator"]


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_wireguard_cookies_match_recording(scenario: dict[str, Any]) -> None:
    s, cookie = Sides(scenario), scenario["cookie"]
    assert mac1_key(s.r.public).hex() == scenario["mac1_key_initiation"]
    assert mac1_key(s.i.public).hex() == scenario["mac1_key_response"]
    assert cookie_key(s.r.public).hex() == cookie["reply_encryption_key"]
    assert parse_endpoint_untrusted(cookie["source"]).cookie_source.hex() == cookie["source_bytes"]

    initiation, signed = h(scenario["messages"][0]["packet"]), h(cookie["initiation_with_mac2"])
    reply = wireguard.parse_untrusted(h(cookie["reply"]))
    assert isinstance(reply, wireguard.CookieReply)
    draws = iter([h(cookie["responder_secret"]), reply.nonce])
    maker = CookieMaker(s.r.public, lambda _: next(draws))
    source = h(cookie["source_bytes"])
    assert maker.cookie(source, 0.0).hex() == cookie["cookie"]
    assert maker.seal_reply(initiation[116:132], source, 0.0) == (reply.nonce, reply.cookie)
    assert maker.is_mac2_valid(signed[:132], signed[132:], source, 1.0)
    assert not maker.is_mac2_valid(signed[:132], signed[132:], source[:-1] + b"x", 1.0)

    jar = CookieJar(s.r.public)
    assert jar.sign(initiation[:116], 0.0) == initiation
    jar.accept_reply_untrusted(reply.nonce, reply.cookie, 0.0)
    assert jar.sign(initiation[:116], 119.0) == signed
    assert jar.sign(initiation[:116], 120.0) == initiation


def recorded_random(*draws: bytes) -> Any:
    """Return the recorded values where their size is requested, zeros elsewhere (jitter)."""
    left = list(draws)

    def random(size: int) -> bytes:
        if left and len(left[0]) == size:
            return left.pop(0)
        return bytes(size)

    return random


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda s: s["name"])
def test_two_devices_replay_recorded_conversation(scenario: dict[str, Any]) -> None:
    s = Sides(scenario)
    messages = scenario["messages"]
    stamp = scenario["timestamp"]
    wall = stamp["unix_seconds"] + (stamp["nanoseconds"] + 1000) / 1e9
    pack = struct.Struct("<I").pack
    initiator = Device(s.i, recorded_random(bytes(2), pack(s.i_index), s.ie.reveal()), wall_offset=wall)
    responder = Device(s.r, recorded_random(pack(s.r_index), s.re.reveal()), wall_offset=wall)
    plain = {m["dir"]: h(m["plaintext"]) for m in messages if "plaintext" in m}
    to_r = initiator.add_peer(s.r.public, 0.0, psk=s.psk, allowed=[plain["r2i"][8:24]])
    to_i = responder.add_peer(s.i.public, 0.0, psk=s.psk, allowed=[plain["i2r"][8:24]])
    where = {"i2r": (responder, ("192.0.2.7", 1)), "r2i": (initiator, ("192.0.2.8", 1))}
    tunnels = {"i2r": to_r, "r2i": to_i}

    first = messages[2]
    ready = to_r.seal([h(first["plaintext"])], 0.0) if "plaintext" in first else to_r.start_handshake(0.0)
    for i, recorded in zip(count(), messages, strict=False):
        if not ready:
            ready = tunnels[recorded["dir"]].seal([h(recorded["plaintext"])], i * 0.1)
        assert [d.hex() for d in ready] == [recorded["packet"]]
        device, source = where[recorded["dir"]]
        received = device.receive_untrusted(ready[0], source, i * 0.1)
        packets = [p[: len(h(recorded["plaintext"]))] for _, batch in received.deliveries for p in batch]
        assert packets == ([h(recorded["plaintext"])] if "plaintext" in recorded else [])
        ready = [datagram for _, datagram in received.sends]
    assert ready == []


def test_xchacha_matches_draft() -> None:
    # draft-irtf-cfrg-xchacha-03, appendix A.3.1
    plain = (
        b"Ladies and Gentlemen of the class of '99: If I could offer you only one tip for "
        b"the future, sunscreen would be it."
    )
    key, nonce = bytes(range(0x80, 0xA0)), bytes(range(0x40, 0x58))
    associated = h("50515253c0c1c2c3c4c5c6c7")
    sealed = aead.seal_x(key, nonce, plain, associated)
    assert sealed.hex().startswith("bd6d179d3e83d43b9576579493c0e939") and sealed[-16:].hex() == (
        "c0875924c1c7987947deafd8780acf49"
    )
    assert aead.open_x(key, nonce, sealed, associated) == plain


def test_mac_is_keyed_blake2s() -> None:
    assert len(mac16(bytes(32), b"")) == 16
