"""Numbers of the WireGuard protocol, and the few of ours beside them.

Obeys: the WireGuard paper, section 6.1; the values genuine peers use (docs/protocol/overlay.md#wireguard-who-are-you).
"""

from __future__ import annotations

# The nonce is the counter, and a nonce used twice gives the key stream away: keys end long before it could wrap. The
# paper leaves room below 2**64 for packets that are still under way, one replay window of 2**13.
REKEY_AFTER_MESSAGES = 1 << 60
REJECT_AFTER_MESSAGES = (1 << 64) - (1 << 13) - 1
# How far back whoever takes a machine can read is decided here: two minutes, and the third for what is under way.
REKEY_AFTER_TIME = 120.0
"""Seconds after which the initiator renews the keys it sends with."""
REJECT_AFTER_TIME = 180.0
"""Seconds after which keys neither seal nor open."""
# Longer than any round trip, so that a slow answer is not taken for a lost one.
REKEY_TIMEOUT = 5.0
"""Seconds between two initiations to one peer."""
REKEY_JITTER = 0.333
"""Up to this much is added to a retry, so that two peers do not collide for ever."""
REKEY_ATTEMPT_TIME = 90.0
"""Seconds after which an unanswered handshake is given up."""
# Ours, as the next: the paper knows nobody on the way who could say so.
UNDELIVERED_RETRY = 0.25
"""Seconds before the next initiation when a relay had nobody to give the last one to; doubles each time."""
MAX_UNDELIVERED = 5
"""How often in one handshake that is believed."""
# Counted instead of timed, so that a machine that slept in between still has its tries.
MAX_ATTEMPTS = int(REKEY_ATTEMPT_TIME / REKEY_TIMEOUT)
# WireGuard paper, section 6.1.
KEEPALIVE_TIMEOUT = 10.0
"""Seconds a receiver may stay silent."""
# Only the initiator renews, so an initiator that receives and never sends has to notice age by what comes in: early
# enough that a handshake can be repeated before the keys end (WireGuard paper, section 6.2).
REKEY_ON_RECEIVE = REJECT_AFTER_TIME - KEEPALIVE_TIMEOUT - REKEY_TIMEOUT
"""Age of keys at which the initiator renews them because data came in."""
NEW_HANDSHAKE_TIMEOUT = KEEPALIVE_TIMEOUT + REKEY_TIMEOUT
"""Seconds after data went out and nothing came back."""
# WireGuard paper, section 6.3: nine minutes.
ZERO_KEYS_AFTER = 3 * REJECT_AFTER_TIME
"""Seconds after the last handshake at which all keys are forgotten."""
# Against a peer that floods with genuine initiations. The paper has no number; genuine peers use this one.
MIN_INITIATION_INTERVAL = 0.020
"""Seconds between two initiations of one peer that a responder works for."""
# As the kernel's: 8192 bits, less the one word that is being cleared (RFC 6479).
REPLAY_WINDOW = 8128
"""How many packets may arrive late."""
# As the kernel's. Enough for the first flight of a few connections; more would be old before it left.
MAX_STAGED = 128
"""Packets kept per peer while there is no session; the oldest go first."""

UNDER_LOAD_LINGER = 1.0
"""Seconds without too many handshakes after which cookies are no longer asked for."""
# As genuine peers: a site behind one address may have many machines that begin at once.
LIMIT_RATE = 20.0
"""Handshakes per second from one source while under load."""
LIMIT_BURST = 5
HANDSHAKE_RATE = 1000.0
"""Ours: handshake messages per second that do not count as load: an eighth of a core (0.13 ms each)."""
HANDSHAKE_BURST = 256
"""Ours: a site's agents coming back at once are not asked for cookies."""
