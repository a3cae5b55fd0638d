"""Assignment of containers to folders, incomplete listings, and changed declarations."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.agent.devcontainers.builder import Built
from coder.agent.devcontainers.engine import FOLDER_LABEL, ContainerRow, Listing
from coder.agent.devcontainers.entries import (
    MAX_NAMED,
    Devcontainer,
    apply_declared,
    apply_listing,
    declared,
    mount_exposes,
    preset_agents,
    warn_foreign,
)
from coder.rpc.proto import agent_pb2

ID, OTHER, PRESET = UUID(int=1), UUID(int=2), UUID(int=3)
API = "/home/me/api"


def _row(ident: str, *mounts: str, folder: str = API, running: bool = True) -> ContainerRow:
    volumes = dict.fromkeys(mounts, "/workspaces/api")
    return ContainerRow(ident, ident, "dev", "", {FOLDER_LABEL: folder}, running, "running", (), volumes)


def _known(**more: Any) -> dict[str, Devcontainer]:
    return {API: Devcontainer(ID, "api", API, declared=True, **more)}


def test_only_complete_listing_removes() -> None:
    known = {API: Devcontainer(ID, "api", API)}
    apply_listing(known, Listing((), complete=False))
    assert set(known) == {API}, "its container may still exist"
    apply_listing(known, Listing(()))
    assert not known


SOURCES = {
    API: True,
    API + "/": True,
    "/home/me": True,
    "/": True,
    API + "/src": True,
    "/host_mnt" + API: True,
    "/host_mnt" + API + "/src": True,
    "/home/me/ap": False,
    API + "-2": False,
    "/home/you": False,
    "": False,
    "/var/lib/docker/volumes/api/_data": False,
}


@pytest.mark.parametrize("source", SOURCES)
def test_mount_exposure_by_source(source: str) -> None:
    assert mount_exposes(source, API) is SOURCES[source]


NAMES = st.text("ab/.", min_size=1, max_size=6).map(lambda text: "/" + text.strip("/"))


@given(NAMES, NAMES)
def test_mount_exposure_by_path(item: str, other: str) -> None:
    assert mount_exposes(item, item)
    assert mount_exposes(item, f"{item.rstrip('/')}{other}") and mount_exposes(f"{item.rstrip('/')}{other}", item)
    if item != "/" and not other.startswith(item) and item not in other and other not in item:
        assert not mount_exposes(item, other)


def test_label_alone_is_foreign() -> None:
    """An image may carry the label: a user who starts it by hand gets no sub-agent, and a project no second
    container."""
    known = _known()
    marked, own = _row("image"), _row("own", API, running=False)
    assert apply_listing(known, Listing((marked, own))) == [marked]
    assert known[API].container == own
    assert apply_listing(known, Listing((marked,))) == [marked]
    assert known[API].container is None
    elsewhere = _row("elsewhere", "/srv", folder="/home/me/ui")
    assert apply_listing(known, Listing((elsewhere,))) == [elsewhere]
    assert list(known) == [API]


def test_built_container_needs_no_mount() -> None:
    known = _known(built=Built("ours"))
    ours = _row("ours", "/var/lib/docker/volumes/api/_data")
    assert apply_listing(known, Listing((_row("other"), ours))) == [_row("other")]
    assert known[API].container == ours
    known = _known(busy="starting")
    assert apply_listing(known, Listing((ours,))) == [], "during a build the new container is unknown"


def test_warning_names_few_containers() -> None:
    assert warn_foreign([]) == []
    rows = [_row(f"c{number}") for number in range(MAX_NAMED + 1)]
    (warning,) = warn_foreign(rows)
    assert warning.endswith("get no agent: c0, c1, c2, c3, c4, ….")
    assert warn_foreign(rows[:1])[0].endswith("get no agent: c0.")


def test_incomplete_listing_updates_entries() -> None:
    known: dict[str, Devcontainer] = {}
    rows = [_row(name, f"/w/{name}", folder=f"/w/{name}") for name in "ab"]
    apply_listing(known, Listing(tuple(rows)))
    stopped = _row("a", "/w/a", folder="/w/a", running=False)
    new = _row("c", "/w/c", folder="/w/c")
    apply_listing(known, Listing((stopped, new), complete=False))
    assert {item.folder: item.running_container_id for item in known.values()} == {"/w/a": "", "/w/b": "b", "/w/c": "c"}
    apply_listing(known, Listing((stopped, new)))
    assert list(known) == ["/w/a", "/w/c"]


def test_new_declaration_keeps_state() -> None:
    manifest = agent_pb2.Manifest()
    manifest.devcontainers.add(id=OTHER.bytes, name="new", workspace_folder=API, subagent_id=PRESET.bytes)
    manifest.devcontainers.add(name="more", workspace_folder="/home/me/more")
    manifest.scripts.add(id=OTHER.bytes, log_source_id=b"t" * 16)
    row = _row("own", API)
    known = _known(source=b"s" * 16, container=row, built=Built("own"), discovered=True)
    known["/gone"] = Devcontainer(ID, "gone", "/gone", declared=True, preset=ID, source=b"s" * 16)
    apply_declared(known, declared(manifest, Path("/w"), Path("/h")))
    api, gone, more = known[API], known["/gone"], known["/home/me/more"]
    assert (api.id, api.name, api.preset, api.log_source, api.declared) == (OTHER, "new", PRESET, b"t" * 16, True)
    assert (api.container, api.built, api.discovered) == (row, Built("own"), True)
    assert (gone.declared, gone.preset, gone.log_source) == (False, None, ID.bytes)
    assert more.declared and preset_agents(manifest) == {PRESET}
    apply_listing(known, Listing((row,)))
    assert list(known) == [API, "/home/me/more"], "an undeclared one is removed with its container"
