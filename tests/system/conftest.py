"""What the tests with a browser, and those under Wine, share. Nothing of it begins before one of them asks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.kit.dashboard.browser import launched
from tests.kit.dashboard.pages import Showcase, furnish, open_empty
from tests.kit.server.server_process import Loopback
from tests.kit.wine.machine import InstalledProgram, installed_program

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    yield from launched()


@pytest.fixture(scope="session")
def empty() -> Iterator[Loopback]:
    """Nobody has an account there, until a test asks for `shown`."""
    with open_empty() as found:
        yield found


@pytest.fixture(scope="session")
def shown(empty: Loopback) -> Showcase:
    """Lived in, and for looking at only: one for all files, since filling it takes as long as a file's tests."""
    return furnish(empty)


@pytest.fixture(scope="session")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InstalledProgram]:
    """A Windows machine with the built program; its first start takes half a minute."""
    with installed_program(tmp_path_factory.mktemp("windows")) as found:
        yield found
