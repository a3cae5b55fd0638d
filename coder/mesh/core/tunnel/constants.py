"""Constants of the WireGuard protocol, and a few of our own.

Obeys: the WireGuard paper, section 6.1; the values genuine peers use (docs/protocol/overlay.md#wireguard-who-are-you).
"""

from __future__ import annotations

# The nonce is the counter, and a repeated nonce reveals the key stream: keys are replaced long before it could wrap.
# The paper leaves room below 2**64 for packets still in flight, one replay window of 2**13.
REKEY_AFTER_MESSAGES = 1 << 60
REJECT_AFTER_MESSAGES = (1 << 64) - (1 << 13) - 1
# The lifetimes decide how far back an attacker who takes a machine can read: two minutes, and a third for packets in
# flight.
REKEY_AFTER_TIME = 120.0
"""Seconds after which the initiator renews the keys it sends with."""
REJECT_AFTER_TIME = 180.0
"""Seconds after which keys neither seal nor open."""
# Longer than any round trip, so that a slow answer does not count as lost.
REKEY_TIMEOUT = 5.0
"""Seconds between two initiations to one peer."""
REKEY_JITTER = 0.333
"""Up to this much is added to a retry, so that two peers do not collide for ever."""
REKEY_ATTEMPT_TIME = 90.0
"""Seconds after which an unanswered handshake is given up."""
# Our own values, this and the next: the paper knows no relay that could report it.
UNDELIVERED_RETRY = 0.25
"""Seconds before the next initiation when a relay could not deliver the last one; doubles each time."""
MAX_UNDELIVERED = 5
"""Maximum number of such reports believed per handshake."""
# Counted instead of timed, so that a machine that slept in between still has its retries.
MAX_ATTEMPTS = int(REKEY_ATTEMPT_TIME / REKEY_TIMEOUT)
# WireGuard paper, section 6.1.
KEEPALIVE_TIMEOUT = 10.0
"""Seconds a receiver may stay silent."""
# Only the initiator renews. An initiator that receives and never sends therefore checks the age on input: early enough
# that a handshake can be repeated before the keys expire (WireGuard paper, section 6.2).
REKEY_ON_RECEIVE = REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT
"""Age of keys at which received data makes the initiator renew them."""
NEW_HANDSHAKE_TIMEOUT = KEEPALIVE_TIMEOUT + REKEY_TIMEOUT
"""Seconds without an answer to sent data."""
# WireGuard paper, section 6.3: nine minutes.
ZERO_KEYS_AFTER = 3 * REJECT_AFTER_TIME
"""Seconds after the last handshake at which all keys are forgotten."""
# Against a peer that floods with genuine initiations. The paper has no number; genuine peers use this one.
MIN_INITIATION_INTERVAL = 0.020
"""Minimum seconds between two initiations of one peer that a responder processes."""
# As the kernel's: 8192 bits, less the one word that is being cleared (RFC 6479).
REPLAY_WINDOW = 8128
"""Packets that may arrive late."""
# As the kernel's. Enough for the first flight of a few connections; more would be outdated before it is sent.
MAX_STAGED = 128
"""Packets kept per peer while there is no session; the oldest are dropped first."""

UNDER_LOAD_LINGER = 1.0
"""Seconds without too many handshakes after which cookies are no longer required."""
# As genuine peers: a site behind one address may have many machines that start together.
LIMIT_RATE = 20.0
"""Handshakes per second from one source while under load."""
LIMIT_BURST = 5
HANDSHAKE_RATE = 1000.0
"""Ours: handshake messages per second that do not count as load: an eighth of a core (0.13 ms each)."""
HANDSHAKE_BURST = 256
"""Ours: the agents of a site that reconnect together are not asked for cookies."""
