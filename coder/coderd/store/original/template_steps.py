"""Steps for files, jobs, provisioners, and templates with everything of their versions."""

from __future__ import annotations

from coder.coderd.store.original.step import (
    PREBUILDS_USER,
    Step,
    access_list,
    as_array,
    filled,
    known_user,
    milliseconds,
    other_actions,
    same,
    text,
)

_RESERVED_KEYS = ", ".join(f"'00000000-0000-0000-0000-00000000000{number}'" for number in (1, 2, 3))

_ROLES = {"admin": ("*",), "use": ("read", "use")}
"""Actions of an access list's roles, the highest first."""

STEPS = (
    Step(
        "files",
        "files s",
        same("id hash created_at mimetype data", created_by=known_user("created_by")),
        cursor="id",
        batch=4,
    ),
    Step(
        "provisioner_keys",
        "provisioner_keys s",
        same("id created_at organization_id name tags hashed_secret"),
        where=f"s.id NOT IN ({_RESERVED_KEYS})",
        left_out="reserved keys, which stand for daemons without a key",
    ),
    Step(
        "provisioner_daemons",
        "provisioner_daemons s",
        same(
            "id organization_id key_id created_at last_seen_at name version api_version tags",
            provisioners="s.provisioners::text[]",
        ),
    ),
    Step(
        "provisioner_jobs",
        "provisioner_jobs s",
        same(
            "id created_at updated_at started_at completed_at canceled_at organization_id file_id input "
            "worker_id tags logs_length logs_overflowed",
            initiator_id=known_user("initiator_id"),
            error=filled("error"),
            error_code=filled("error_code"),
            provisioner=text("provisioner"),
            type=text("type"),
            priority=f"(CASE WHEN s.initiator_id = {PREBUILDS_USER} THEN 1 ELSE 0 END)::smallint",
        ),
        cursor="id",
    ),
    Step(
        "provisioner_job_logs",
        "provisioner_job_logs s",
        same("id job_id created_at stage output", source=text("source"), level=text("level")),
        cursor="id",
        batch=5000,
    ),
    Step(
        "provisioner_job_timings",
        "provisioner_job_timings s",
        same("job_id started_at ended_at source action resource", stage=text("stage")),
        natural_key=("job_id", "started_at", "stage", "action", "resource"),
    ),
    Step(
        "templates",
        "templates s",
        same(
            "id organization_id name display_name description icon active_version_id created_by created_at updated_at "
            "deleted deprecated allow_user_cancel_workspace_jobs allow_user_autostart allow_user_autostop "
            "require_active_version use_classic_parameter_flow disable_module_cache",
            provisioner=text("provisioner"),
            default_ttl_ms=milliseconds("default_ttl"),
            activity_bump_ms=milliseconds("activity_bump"),
            time_til_autostop_notify_ms=milliseconds("time_til_autostop_notify"),
            failure_ttl_ms=milliseconds("failure_ttl"),
            time_til_dormant_ms=milliseconds("time_til_dormant"),
            time_til_dormant_autodelete_ms=milliseconds("time_til_dormant_autodelete"),
            autostop_days="s.autostop_requirement_days_of_week",
            autostop_weeks="GREATEST(s.autostop_requirement_weeks, 1)::smallint",
            # The original stores the days on which workspaces do not start.
            autostart_days="(127 & ~s.autostart_block_days_of_week)::smallint",
            max_port_share_level=text("max_port_sharing_level"),
            cors_behavior=text("cors_behavior"),
            user_acl=access_list("user_acl", _ROLES),
            group_acl=access_list("group_acl", _ROLES),
        ),
        changes=other_actions(_ROLES, "s.name"),
    ),
    Step(
        "template_versions",
        "template_versions s",
        same(
            "id template_id organization_id name message readme job_id created_by created_at updated_at archived",
            has_ai_task=filled("has_ai_task", "false"),
            has_external_agent=filled("has_external_agent", "false"),
            source_example_id=filled("source_example_id"),
            external_auth_providers=as_array("s.external_auth_providers"),
        ),
        cursor="id",
        batch=50,
    ),
    Step(
        "template_version_parameters",
        "template_version_parameters s",
        same(
            "template_version_id name display_name description type mutable default_value icon validation_regex "
            "validation_error validation_min validation_max validation_monotonic required ephemeral display_order",
            form_type=text("form_type"),
            options=as_array("s.options"),
        ),
    ),
    Step(
        "template_version_variables",
        "template_version_variables s",
        same("template_version_id name description type value default_value required sensitive"),
    ),
    Step(
        "template_version_presets",
        "template_version_presets s",
        same(
            "id template_version_id name description icon is_default desired_instances scheduling_timezone created_at",
            parameters="COALESCE((SELECT jsonb_agg(jsonb_build_object('name', p.name, 'value', p.value) "
            "ORDER BY p.name) FROM template_version_preset_parameters p "
            "WHERE p.template_version_preset_id = s.id), '[]'::jsonb)",
            expire_after_seconds=filled("invalidate_after_secs", "0"),
            schedules="COALESCE((SELECT jsonb_agg(jsonb_build_object('cron', p.cron_expression, "
            "'instances', p.desired_instances) ORDER BY p.id) FROM template_version_preset_prebuild_schedules p "
            "WHERE p.preset_id = s.id), '[]'::jsonb)",
            invalidated_at="s.last_invalidated_at",
        ),
    ),
    Step(
        "template_version_workspace_tags",
        "template_version_workspace_tags s",
        same("template_version_id key value"),
    ),
    Step(
        "template_version_terraform",
        "template_version_terraform_values s",
        same(
            "template_version_id updated_at",
            cached_plan="convert_to(s.cached_plan::text, 'UTF8')",
            module_files_id="s.cached_module_files",
        ),
        cursor="template_version_id",
        batch=20,
    ),
)
