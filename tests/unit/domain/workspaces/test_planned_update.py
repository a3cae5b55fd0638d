"""Plans of updates in plain words."""

from __future__ import annotations

import pytest

from coder.domain.workspaces.planned_update import (
    DiskVerdict,
    PlannedAction,
    PlannedResource,
    count_actions,
    disk_verdict,
    explain,
    is_disk,
    stopped_first,
)


def planned(address: str, action: PlannedAction) -> PlannedResource:
    kind, _, name = address.partition(".")
    return PlannedResource(address, kind, name, action)


VOLUME = "docker_volume.home"
BOX = "docker_container.box"


@pytest.mark.parametrize(
    "kind",
    [
        "docker_volume",
        "kubernetes_persistent_volume_claim",
        "kubernetes_persistent_volume_claim_v1",
        "google_compute_disk",
        "aws_ebs_volume",
        "azurerm_managed_disk",
        "aws_efs_file_system",
        "azurerm_storage_share",
        "hcloud_volume",
        "digitalocean_volume",
        "libvirt_volume",
    ],
)
def test_disk_types(kind: str) -> None:
    assert is_disk(kind)


@pytest.mark.parametrize(
    "kind",
    [
        "docker_container",
        "aws_efs_access_point",
        "aws_ebs_snapshot",
        "aws_volume_attachment",
        "google_compute_attached_disk",
        "openstack_compute_volume_attach_v2",
        "azurerm_virtual_machine_data_disk_attachment",
        "google_compute_disk_resource_policy_attachment",
        "coder_agent",
        "terraform_data",
    ],
)
def test_other_types(kind: str) -> None:
    assert not is_disk(kind)


@pytest.mark.parametrize(
    ("action", "verdict"),
    [
        ("keep", "kept"),
        ("update", "kept"),
        ("forget", "kept"),
        ("replace", "lost"),
        ("restart", "lost"),
        ("delete", "lost"),
        ("create", "none"),
        ("unknown", "unknown"),
    ],
)
def test_disk_verdict_by_action(action: PlannedAction, verdict: DiskVerdict) -> None:
    assert disk_verdict([planned(VOLUME, action), planned(BOX, "replace")], is_complete=True) == verdict


def test_disk_verdict_of_incomplete_plan() -> None:
    kept, lost = planned(VOLUME, "keep"), planned("docker_volume.cache", "replace")
    assert disk_verdict([kept], is_complete=False) == "unknown"
    assert disk_verdict([kept, lost], is_complete=False) == "lost"
    assert disk_verdict([], is_complete=True) == "none"


def test_stop_recreates_transient_resources() -> None:
    resources = [planned(VOLUME, "keep"), planned(BOX, "keep"), planned("coder_agent.main", "keep")]
    persistent = {("docker_volume", "home")}
    after = stopped_first(resources, is_running=True, persistent=persistent)
    assert [item.action for item in after] == ["keep", "restart", "keep"]
    assert stopped_first(resources, is_running=False, persistent=persistent) == resources
    assert stopped_first(resources, is_running=True, persistent=None) == resources


def test_sentences_of_kept_disk() -> None:
    resources = [planned(VOLUME, "keep"), planned(BOX, "replace"), planned("coder_agent.main", "update")]
    assert explain(resources, is_complete=True, is_running=True) == [
        "Your disk stays.",
        "Resources: 1 kept, 1 replaced.",
        "The update stops the workspace first: its agents restart, and open sessions end.",
    ]
    assert count_actions(resources)["update"] == 0


def test_sentences_of_lost_disk() -> None:
    resources = [planned(VOLUME, "replace"), planned("coder_agent.main", "keep")]
    assert explain(resources, is_complete=True, is_running=False) == [
        "Your disk does not stay: docker_volume.home.",
        "Resources: 1 replaced.",
        "The workspace is stopped: the update starts it, and its agents with it.",
    ]


def test_unknown_changes_are_not_zero() -> None:
    sentences = explain(None, is_complete=False, is_running=False)
    assert sentences[0].startswith("It is not known which resources are kept, replaced or destroyed")
    assert sentences[1] == "It is not known whether your disk stays."
    assert not any("0" in sentence or "No resources" in sentence for sentence in sentences)


def test_empty_plan_says_so() -> None:
    assert explain([], is_complete=True, is_running=False)[1] == "No resources change."
    assert explain([], is_complete=False, is_running=False)[1] != "No resources change."
