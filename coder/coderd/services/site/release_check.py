"""The newest release of the list that the administrator names (`--release-list`), for `/updatecheck`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import trio

from coder.api.site.deployment import UpdateCheckResponse
from coder.api.site.release_list import LIST_NAME, MAX_LIST_SIZE, Release, newest_release, parse_release_list
from coder.base.version import BUILD_VERSION
from coder.net.policy import DialPolicy
from coder.net.release_source import list_location, read_location

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

EXTERNAL_URL = "https://github.com/coder/coder"


@dataclass(slots=True)
class ReleaseCheck:
    """The release that this process found last; each process of a server reads the list itself."""

    ctx: Context
    newest: Release | None = None
    "Newest release after this program; None if there is none, or no check was made."

    def is_enabled(self) -> bool:
        return bool(self.ctx.config.update_check and self.ctx.config.release_list)

    async def refresh(self) -> bool:
        """Read the list; return whether it names a newer release than before. Raises CoderError."""
        location = list_location(self.ctx.config.release_list, LIST_NAME)
        data = await trio.to_thread.run_sync(
            read_location, location, lambda origin: DialPolicy(url=origin), MAX_LIST_SIZE, abandon_on_cancel=True
        )
        found = newest_release(parse_release_list(data).releases, BUILD_VERSION)
        is_news = found is not None and (self.newest is None or found.version != self.newest.version)
        self.newest = found
        return is_news

    def answer(self) -> UpdateCheckResponse:
        """Return the newest known release, this program's own without one. Any caller may ask: the answer has the
        address of the notes if the list names one, and never the address of the list or of a folder."""
        if self.newest is None:
            return UpdateCheckResponse(current=True, version=BUILD_VERSION, url=EXTERNAL_URL)
        return UpdateCheckResponse(current=False, version=self.newest.version, url=self.newest.notes_url)
