"""Watch for a newer server; report when its program is ready to replace the running one
(docs/decisions/agent-upgrade.md)."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import trio

from coder.agent.disk import on_disk
from coder.agent.upgrade.checks import check_again
from coder.agent.upgrade.fetch import fetch_program, server_digest
from coder.agent.upgrade.folder import ensure_private, link_others, locked, program_path
from coder.agent.upgrade.handover import rehearse
from coder.agent.upgrade.outcomes import UpgradeRefusedError, reason_of
from coder.agent.upgrade.records import Records
from coder.base.json_types import JsonObject
from coder.base.log import get_logger
from coder.base.own_binary import own_name
from coder.base.retry import Backoff
from coder.base.version import BUILD_VERSION
from coder.domain.agents.version_order import is_newer
from coder.net.http1 import HttpClient
from coder.net.policy import DialPolicy

log = get_logger("agent.upgrade")

FIRST_DELAY, LAST_DELAY = 30.0, 3600.0
"""Seconds (ours) between two attempts after a failure. A program is large, and the line may be slow."""
DOWNLOAD_SPREAD = 900.0
"""Seconds (ours) over which the agents of an upgraded server spread their downloads."""
CHECK_VALIDITY = 10.0
"""Seconds (ours) for which a check stays valid. A program sometimes waits for days."""
PROVEN_AFTER = 300.0
"""Seconds (ours) after which a program that has taken over and is connected has lasted."""


@dataclass(frozen=True, slots=True)
class NewProgram:
    """Verified program that may take over now."""

    path: Path
    version: str
    digest: str
    "SHA-256 of the program, in hex."


Stage = Literal["watching", "checking", "queued", "downloading", "waiting", "restarting", "refused", "failed"]
"""`watching`: the program is the server's. `queued`: the download starts within `DOWNLOAD_SPREAD`. `waiting`: until the
agent is idle."""


class Blocker(Protocol):
    """Activity that an upgrade waits for."""

    def describe(self) -> str:
        """Return the activity in words, "" when there is nothing to wait for."""

    async def wait_idle(self) -> None: ...


class Upgrader:
    """Upgrader for the life of a program."""

    def __init__(
        self, policy: DialPolicy, folder: Path, blockers: Sequence[Blocker], keyring: Path | None = None
    ) -> None:
        """`folder` belongs to this agent alone: programs and their records are kept there."""
        self._policy, self._folder, self._blockers, self._keyring = policy, folder, blockers, keyring
        self._records = Records(folder)
        self._connected = trio.Event()
        self._refused: dict[str, str] = {}
        "Reasons by digest."
        self._backoff = Backoff(FIRST_DELAY, LAST_DELAY)
        self._verified: NewProgram | None = None
        self._checked_at = -math.inf
        self._turn = ("", 0.0)
        "Digest of the program whose download waits, and the deadline of the wait."
        self._requested = trio.Event()
        self._stage: Stage = "watching"
        self._detail = self._server_version = ""

    def check_now(self) -> None:
        """Check for an upgrade: the agent has connected, and the server's version may have changed."""
        self._connected.set()

    def request(self) -> None:
        """Check for an upgrade on behalf of a user: neither the spread of downloads nor a failure delays it.

        A refused program stays refused, and the upgrade still waits until the agent is idle.
        """
        self._requested.set()
        self._connected.set()

    def describe(self) -> JsonObject:
        """Return what the upgrade is doing: `state` (a `Stage`), `detail`, and the versions."""
        return {
            "state": self._stage,
            "detail": self._detail,
            "version": BUILD_VERSION,
            "server_version": self._server_version,
        }

    def _enter(self, stage: Stage, detail: str = "") -> None:
        self._stage, self._detail = stage, detail

    async def confirm_takeover(self, digest: str) -> None:
        """Confirm that this program has taken over: adopt the names of previous programs, then mark the upgrade as
        lasting."""
        try:
            await on_disk(_adopt_names, self._folder)
        except Exception as error:
            log.warn("linking the names of previous programs failed", error=reason_of(error))
        await trio.sleep(PROVEN_AFTER)
        try:
            await on_disk(self._records.mark_lasted, digest)
        except Exception as error:
            log.warn("updating the upgrade records failed", error=reason_of(error))

    async def run(self) -> NewProgram:
        """Return a newer program once it is downloaded, verified, and nothing runs that it could not continue."""
        await self._connected.wait()
        while True:
            self._connected = trio.Event()
            hurried, self._requested = self._requested.is_set(), trio.Event()
            self._enter("checking")
            try:
                program = await self._newer_program(hurried=hurried)
                if program is not None and await self._wait_idle(program):
                    self._enter("restarting")
                    return program
            except Exception as error:  # an upgrade is a convenience: after any failure the agent continues
                self._verified = None
                delay = self._backoff.next_delay()
                log.warn("the upgrade failed and will be retried", seconds=round(delay), error=reason_of(error))
                self._enter("failed", reason_of(error))
                with trio.move_on_after(delay):  # not sooner, however often the agent connects meanwhile
                    await self._requested.wait()
                continue
            self._backoff.reset()
            await self._connected.wait()

    async def _newer_program(self, *, hurried: bool) -> NewProgram | None:
        async with HttpClient(self._policy) as client:
            version = str((await client.request("GET", "/api/v2/buildinfo")).json(dict).get("version", ""))
            self._server_version = version
            if not is_newer(version, BUILD_VERSION):
                log.debug("the agent keeps its program", ours=BUILD_VERSION, server=version)
                self._enter("watching")
                return None
            digest = await server_digest(client, own_name())
            refusal = self._refused.get(digest) or await on_disk(self._records.find_refusal, digest)
            if refusal:
                log.debug("the server's program was refused before", server=version, digest=digest)
                self._enter("refused", refusal)
                return None
            await on_disk(self._records.check_attempts, digest)
            known = self._verified
            if known is not None and (known.version, known.digest) == (version, digest):
                return known
            if not hurried and not await self._take_turn(digest):
                return None
            self._enter("downloading", version)
            log.info("the server is newer; downloading its program", ours=BUILD_VERSION, server=version)
            try:
                path = await fetch_program(client, own_name(), version, digest, self._folder, self._keyring)
            except UpgradeRefusedError as error:
                self.refuse(digest, version, error.message)
                await self._record_refusal(digest, version, error.message)
                return None
        log.info("the server's program is verified", version=version, path=path)
        self._verified, self._checked_at = NewProgram(path, version, digest), trio.current_time()
        return self._verified

    async def _take_turn(self, digest: str) -> bool:
        """Wait until this agent may download that program. Returns False when it reconnected meanwhile."""
        if await on_disk(program_path(self._folder, digest).is_file):
            return True
        self._enter("queued", f"the download starts within {DOWNLOAD_SPREAD / 60:g} minutes")
        if self._turn[0] != digest:
            self._turn = (digest, trio.current_time() + random.uniform(0, DOWNLOAD_SPREAD))
        with trio.move_on_at(self._turn[1]):
            await self._connected.wait()
            return False
        return True

    async def _wait_idle(self, program: NewProgram) -> bool:
        """Return True when the program may take over at this moment.

        Returns False when the agent reconnected meanwhile: the server may have another version by now. Raises any error
        that prevents the upgrade.
        """
        while not self._connected.is_set():
            if (active := next((blocker for blocker in self._blockers if blocker.describe()), None)) is not None:
                log.info("the upgrade waits", version=program.version, until_there_is_no=active.describe())
                self._enter("waiting", active.describe())
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(self._cancel_when_connected, nursery.cancel_scope)
                    await active.wait_idle()
                    nursery.cancel_scope.cancel()
            elif trio.current_time() - self._checked_at > CHECK_VALIDITY:
                await check_again(self._folder, program.path, program.version, program.digest)
                self._checked_at = trio.current_time()
            else:
                rehearse()
                # On the event loop: a session that began while a thread wrote the record would be cut off. The folder's
                # disk has answered a moment ago.
                self._records.record_attempt(program.digest, program.version)
                return True
        return False

    async def _cancel_when_connected(self, scope: trio.CancelScope) -> None:
        await self._connected.wait()
        scope.cancel()

    def refuse(self, digest: str, version: str, reason: str) -> None:
        """Do not retry that program in this process."""
        log.error("the server's program was refused; continuing with the current one", version=version, reason=reason)
        self._refused[digest] = reason
        self._enter("refused", reason)

    async def _record_refusal(self, digest: str, version: str, reason: str) -> None:
        """Record the refusal for later processes."""
        try:
            await on_disk(self._records.refuse, digest, version, reason)
        except OSError as error:
            log.warn("recording the refusal failed; it applies to this process only", error=error)


def _adopt_names(folder: Path) -> None:
    ensure_private(folder)
    with locked(folder):
        link_others(folder)
