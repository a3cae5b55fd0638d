"""Services read rows by id only together with a check of the subject, or for a listed reason."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.arch.system_reads import find_reads

REASONS = {
    # Sign-in and credentials: the subject is not known yet, or is what the function finds out.
    "access/new_keys.py:_derived_key": "a sign-in; the id is that of the key's own user",
    "access/new_keys.py:_within_build": "the caller's own key, locked",
    "login/oauth2_client_authentication.py:find_app": "an application authenticates itself",
    "login/oauth2_clients.py:find_client": "a client authenticates itself by its registration token",
    "login/oauth2_consent.py:issue_code": "the caller's own row, locked",
    "login/oauth2_grants.py:_hold_person": "a grant names its own user",
    "login/oauth2_revocation.py:revoke": "the token to revoke is the credential",
    "login/passcodes.py:*": "a user without a session; every answer is the same",
    "login/provider_accounts.py:*": "a sign-in by an identity provider",
    "login/provider_sync.py:*": "a sign-in by an identity provider, with the deployment's mapping",
    "login/sessions.py:*": "a sign-in by password or passcode",
    "people/scim.py:*": "the identity provider, by its own token",
    "proxies/*:authenticate_proxy": "a proxy authenticates itself",
    "proxies/*:register": "the proxy's own row",
    # Daemons, agents and periodic tasks.
    "agents/agent_access.py:find_agent_unchecked": "admission of an application's visitor, decided by `open_app`",
    "agents/agents.py:load_parts": "called by `load_agent` and for the agent itself",
    "notifications/*": "recipients and texts of the server's own messages; the inbox is the reader's",
    "people/quotas.py:commit": "a daemon, for the build of its own job",
    "provisioning/daemon_admission.py:*": "admission of a daemon, by its key or its user's right to create",
    "provisioning/daemon_calls.py:require_own_job": "compared with the daemon that acquired the job",
    "provisioning/job_endings.py:*": "the end of a job, by its daemon or a periodic task",
    "provisioning/job_logs.py:_read_batch": "callers load the build, version or dry run of the job first",
    "provisioning/job_queue.py:hold_preview_slot": "the job that the database just assigned to a daemon",
    "provisioning/job_reasons.py:*": "the reason why a job of an authorized build waits",
    "provisioning/jobs.py:cancel_job": "callers lock the build, version or dry run of the job first",
    "provisioning/waiting_jobs.py:load_waiting": "jobs of the queue, for daemons",
    "workspaces/autobuilds.py:*": "a periodic task",
    "workspaces/builds/build_events.py:*": "the end of a build",
    "workspaces/builds/build_results.py:touch_ended_build": "the end of a build",
    "workspaces/builds/build_updates.py:*": "a change told to streams, each of which asks for its own subject",
    "workspaces/prebuild_builds.py:*": "a periodic task",
    "workspaces/previews/preview_jobs.py:_is_abandoned": "a daemon, for its own job: the job that it belongs to",
    "workspaces/prebuild_claims.py:*": "the workspace that a new workspace's owner takes over, and the agent's own",
    # Records of a change that was authorized where it was made.
    "audit/request_events.py:*": "the record of an answered request",
    "audit/audit_snapshots.py:*": "the record of an answered request",
    "audit/audit_search.py:_load": "names in entries that the subject may read",
    "audit/connection_log.py:_load": "names in entries that the subject may read",
    # Rows that a check of the same function, or of its callers, binds to an authorized one.
    "access/keys.py:get_key": "compared with the user, then required by its id",
    "access/workspace_access.py:hold_template_of": "callers lock the workspace with the subject afterwards",
    "access/workspace_access.py:lock_workspace": "locked first, then read again and required",
    "activity/workspace_usage.py:_record_usage": "compared with the locked workspace",
    "apps/app_access.py:*": "`open_app` decides for the visitor, also without a session",
    "people/authorization_checks.py:*": "objects that `may` answers about; a missing one is a refusal",
    "people/new_users.py:_check_free": "whether a name is taken; the caller may create users",
    "people/new_users.py:insert_in": "the row that was just inserted",
    "access/application_limits.py:consent_of_caller": "the caller's own key",
    "people/organization_settings.py:_joined_organizations": "a sign-in by an identity provider",
    "people/organizations.py:_find": "`resolve_organization` requires what it finds",
    "people/organizations.py:_insert": "the row that was just inserted",
    "people/organizations.py:*lock_organization": "callers resolved it with the subject; the lock follows",
    "people/organizations.py:hold_organization": "callers resolved it with the subject; the lock follows",
    "people/role_assignment.py:hold_roles_of_both": "the caller's own row, and one that callers resolved",
    "people/user_changes.py:update_profile": "whether a name is taken",
    "people/user_changes.py:_change": "callers resolved the user; the lock follows",
    "people/users.py:_find": "`find_user` and `find_account` require what they find",
    "people/users.py:lock_user": "callers resolved the user; the lock follows",
    "tasks/task_creation.py:_read": "the row that was just inserted",
    "templates/files.py:copy_stored": "callers required the file, or it belongs to an authorized version",
    "templates/imports/module_files.py:_find_module_file": "a daemon, for its own import",
    "templates/templates.py:show_template": "callers required the template",
    "templates/versions/loaded_versions.py:*": "`load_version` and `lock_version` require what they read",
    "templates/rollout_watch.py:*": "a periodic task",
    "templates/versions/template_versions.py:*": "callers required the version or its template",
    "templates/versions/version_changes.py:_archive": "`lock_version` required it; the lock follows",
    "templates/versions/version_insertion.py:*": "the row that was just inserted, and a file that callers required",
    "workspaces/agent_streams.py:follow_logs": "`_may_read` decides before every item",
    "workspaces/builds/autofill_parameters.py:_autofill": "the parameters' names; the values are the subject's own",
    "workspaces/builds/build_parameters.py:_read_template_inputs": "inputs of a form that the queued build requires",
    "workspaces/builds/build_values.py:_preset_values": "compared with the authorized version",
    "workspaces/builds/offered_versions.py:_list": "names of versions offered to workspaces that the subject may read",
    "workspaces/builds/builds.py:list_builds": "compared with the authorized workspace",
    "workspaces/builds/queued_builds.py:load_queued_build": "the row that was just inserted",
    "workspaces/new_workspaces.py:enqueue_first_build": "whether a name is taken, and the row that was just inserted",
    "workspaces/new_workspaces.py:_select_template": "`_check_template` requires what it finds",
    "workspaces/builds/build_consent.py:hold_consent": "users of a job and its consent, locked for a new key",
    "workspaces/orphaning.py:_confirm": "the workspace was locked with the subject",
    "workspaces/orphaning.py:_abandon": "the workspace was locked with the subject",
    "workspaces/previews/new_previews.py:_record_members": "the row that was just inserted",
    "workspaces/previews/version_comparison.py:_load": "callers required the new version; the old is its template's",
    "workspaces/previews/version_comparison.py:_files": "`may_read_file` decides just before",
    "workspaces/previews/previews.py:*": "the workspace or template is loaded with the subject, the job is its own",
    "workspaces/workspace_inventory.py:load_inventory": "callers loaded the workspace with the subject",
    "workspaces/workspace_sharing.py:_lock_shareable": "the organization of a loaded workspace; the lock follows",
    "workspaces/workspace_streams.py:Snapshots._read": "each stream asks for its own subject",
}
"""Place of a read (`path:function`, with `*`) -> why it needs no check of its own."""


def test_system_reads_have_reasons() -> None:
    unexplained = {
        f"{read.place} {read.name}"
        for read in find_reads()
        if not read.form and not any(fnmatch(read.place, place) for place in REASONS)
    }
    assert not unexplained, "check the subject, take the id from a loaded row, or give the reason here"


def test_reasons_of_system_reads_are_used() -> None:
    places = {read.place for read in find_reads() if not read.form}
    assert [place for place in REASONS if not any(fnmatch(found, place) for found in places)] == []


def test_system_reads_are_recognized() -> None:
    forms = [read.form for read in find_reads()]
    assert forms.count("checked") >= 30 and forms.count("related") >= 60


SAMPLE = """
from coder.coderd.store.templates import system_templates

async def {name}(tx, subject, template_id, workspace: WorkspaceRow):
    {body}
"""


@pytest.mark.parametrize(
    ("body", "form"),
    [
        ("return await system_templates.get_template(tx, template_id)", ""),
        ("row = await system_templates.get_template(tx, template_id); require(subject, 'read', other)", ""),
        ("return _required(subject, await system_templates.get_template(tx, template_id), 'read')", "checked"),
        ("row = await system_templates.get_template(tx, template_id); require(subject, 'use', of(row))", "checked"),
        ("return await system_templates.get_template(tx, workspace.template_id)", "related"),
    ],
)
def test_system_read_forms(tmp_path: Path, body: str, form: str) -> None:
    (tmp_path / "sample.py").write_text(SAMPLE.format(name="read", body=body))
    assert [(read.place, read.form) for read in find_reads(tmp_path)] == [("sample.py:read", form)]
