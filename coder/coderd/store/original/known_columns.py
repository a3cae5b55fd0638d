"""Tables and columns of Coder 2.34, to recognise a database of an older or a newer release."""

from __future__ import annotations

from collections.abc import Mapping

COLUMNS: Mapping[str, frozenset[str]] = {
    name: frozenset(columns.split())
    for name, columns in {
        "ai_gateway_keys": "id created_at name secret_prefix hashed_secret last_heartbeat_at",
        "ai_model_prices": (
            "provider model input_price output_price cache_read_price cache_write_price created_at updated_at"
        ),
        "ai_provider_keys": "id provider_id api_key api_key_key_id created_at updated_at",
        "ai_providers": (
            "id type name display_name enabled deleted base_url settings settings_key_id created_at updated_at icon"
        ),
        "ai_seat_state": "user_id first_used_at last_used_at last_event_type last_event_description updated_at",
        "ai_user_daily_spend": "user_id effective_group_id day spend_micros",
        "aibridge_interceptions": (
            "id initiator_id provider model started_at metadata ended_at api_key_id client thread_parent_id "
            "thread_root_id client_session_id session_id provider_name credential_kind credential_hint "
            "agent_firewall_session_id agent_firewall_sequence_number error_type error_message"
        ),
        "aibridge_model_thoughts": "interception_id content metadata created_at",
        "aibridge_token_usages": (
            "id interception_id provider_response_id input_tokens output_tokens metadata created_at "
            "cache_read_input_tokens cache_write_input_tokens effective_group_id input_price_micros "
            "output_price_micros cache_read_price_micros cache_write_price_micros cost_micros"
        ),
        "aibridge_tool_usages": (
            "id interception_id provider_response_id server_url tool input injected invocation_error metadata "
            "created_at provider_tool_call_id provider_item_id"
        ),
        "aibridge_user_prompts": "id interception_id provider_response_id prompt metadata created_at",
        "api_keys": (
            "id hashed_secret user_id last_used expires_at created_at updated_at login_type lifetime_seconds "
            "ip_address token_name scopes allow_list"
        ),
        "audit_logs": (
            "id time user_id organization_id ip user_agent resource_type resource_id resource_target action diff "
            "status_code additional_fields request_id resource_icon"
        ),
        "boundary_logs": (
            "id session_id sequence_number captured_at created_at proto method detail matched_rule owner_id"
        ),
        "boundary_sessions": "id workspace_agent_id confined_process_name started_at updated_at owner_id",
        "boundary_usage_stats": (
            "replica_id unique_workspaces_count unique_users_count allowed_requests denied_requests window_start "
            "updated_at"
        ),
        "chat_context_resources": (
            "chat_id source body_kind body content_hash size_bytes status error source_path created_at updated_at"
        ),
        "chat_debug_runs": (
            "id chat_id root_chat_id parent_chat_id model_config_id trigger_message_id history_tip_message_id "
            "kind status provider model summary started_at updated_at finished_at"
        ),
        "chat_debug_steps": (
            "id run_id chat_id step_number operation status history_tip_message_id assistant_message_id "
            "normalized_request normalized_response usage attempts error metadata started_at updated_at "
            "finished_at"
        ),
        "chat_diff_statuses": (
            "chat_id url pull_request_state changes_requested additions deletions changed_files refreshed_at "
            "stale_at created_at updated_at git_branch git_remote_origin pull_request_title pull_request_draft "
            "author_login author_avatar_url base_branch pr_number commits approved reviewer_count head_branch"
        ),
        "chat_file_links": "chat_id file_id",
        "chat_files": "id owner_id organization_id created_at name mimetype data",
        "chat_messages": (
            "id chat_id model_config_id created_at role content visibility input_tokens output_tokens "
            "total_tokens reasoning_tokens cache_creation_tokens cache_read_tokens context_limit compressed "
            "created_by content_version total_cost_micros runtime_ms deleted provider_response_id revision "
            "reasoning_effort search_tsv"
        ),
        "chat_model_configs": (
            "id model display_name created_by updated_by enabled is_default deleted deleted_at created_at "
            "updated_at context_limit compression_threshold options ai_provider_id"
        ),
        "chat_queued_messages": "id chat_id content created_at model_config_id position created_by reasoning_effort",
        "chat_usage_limit_config": "id singleton enabled default_limit_micros period created_at updated_at",
        "chats": (
            "id owner_id workspace_id title status worker_id started_at heartbeat_at created_at updated_at "
            "parent_chat_id root_chat_id last_model_config_id archived last_error mode mcp_server_ids labels "
            "build_id agent_id pin_order last_read_message_id dynamic_tools organization_id plan_mode client_type "
            "last_turn_summary user_acl group_acl snapshot_version history_version queue_version "
            "generation_attempt retry_state retry_state_version runner_id requires_action_deadline_at "
            "context_aggregate_hash context_dirty_since context_dirty_resources context_error "
            "last_reasoning_effort compaction_requested_at summary summary_generated_at"
        ),
        "connection_logs": (
            "id connect_time organization_id workspace_owner_id workspace_id workspace_name agent_name type ip "
            "code user_agent user_id slug_or_port connection_id disconnect_time disconnect_reason"
        ),
        "crypto_keys": "feature sequence secret secret_key_id starts_at deletes_at",
        "custom_roles": (
            "name display_name site_permissions org_permissions user_permissions created_at updated_at "
            "organization_id id is_system member_permissions"
        ),
        "dbcrypt_keys": "number active_key_digest revoked_key_digest created_at revoked_at test",
        "external_auth_links": (
            "provider_id user_id created_at updated_at oauth_access_token oauth_refresh_token oauth_expiry "
            "oauth_access_token_key_id oauth_refresh_token_key_id oauth_extra oauth_refresh_failure_reason"
        ),
        "files": "hash created_at created_by mimetype data id",
        "gitsshkeys": "user_id created_at updated_at private_key public_key private_key_key_id",
        "group_ai_budgets": "group_id spend_limit_micros created_at updated_at",
        "group_members": "user_id group_id",
        "groups": "id name organization_id avatar_url quota_allowance display_name source chat_spend_limit_micros",
        "inbox_notifications": "id user_id template_id targets title content icon actions read_at created_at",
        "jfrog_xray_scans": "agent_id workspace_id critical high medium results_url",
        "licenses": "id uploaded_at jwt exp uuid",
        "mcp_server_configs": (
            "id display_name slug description icon_url transport url auth_type oauth2_client_id "
            "oauth2_client_secret oauth2_client_secret_key_id oauth2_auth_url oauth2_token_url oauth2_scopes "
            "api_key_header api_key_value api_key_value_key_id custom_headers custom_headers_key_id "
            "tool_allow_list tool_deny_list availability enabled created_by updated_by created_at updated_at "
            "model_intent allow_in_plan_mode forward_coder_headers oauth2_revocation_url"
        ),
        "mcp_server_user_tokens": (
            "id mcp_server_config_id user_id access_token access_token_key_id refresh_token refresh_token_key_id "
            "token_type expiry created_at updated_at oauth_refresh_failure_reason"
        ),
        "notification_messages": (
            "id notification_template_id user_id method status status_reason created_by payload attempt_count "
            "targets created_at updated_at leased_until next_retry_after queued_seconds dedupe_hash"
        ),
        "notification_preferences": "user_id notification_template_id disabled created_at updated_at",
        "notification_report_generator_logs": "notification_template_id last_generated_at",
        "notification_templates": "id name title_template body_template actions group method kind enabled_by_default",
        "oauth2_provider_app_codes": (
            "id created_at expires_at secret_prefix hashed_secret user_id app_id resource_uri code_challenge "
            "code_challenge_method state_hash redirect_uri"
        ),
        "oauth2_provider_app_secrets": "id created_at last_used_at hashed_secret display_secret app_id secret_prefix",
        "oauth2_provider_app_tokens": (
            "id created_at expires_at hash_prefix refresh_hash app_secret_id api_key_id audience user_id"
        ),
        "oauth2_provider_apps": (
            "id created_at updated_at name icon callback_url redirect_uris client_type dynamically_registered "
            "client_id_issued_at client_secret_expires_at grant_types response_types token_endpoint_auth_method "
            "scope contacts client_uri logo_uri tos_uri policy_uri jwks_uri jwks software_id software_version "
            "registration_access_token registration_client_uri"
        ),
        "organization_members": "user_id organization_id created_at updated_at roles",
        "organizations": (
            "id name description created_at updated_at is_default display_name icon deleted "
            "shareable_workspace_owners default_org_member_roles"
        ),
        "parameter_schemas": (
            "id created_at job_id name description default_source_scheme default_source_value "
            "allow_override_source default_destination_scheme allow_override_destination default_refresh "
            "redisplay_value validation_error validation_condition validation_type_system validation_value_type "
            "index"
        ),
        "parameter_values": (
            "id created_at updated_at scope scope_id name source_scheme source_value destination_scheme"
        ),
        "provisioner_daemons": (
            "id created_at name provisioners replica_id tags last_seen_at version api_version organization_id key_id"
        ),
        "provisioner_job_logs": "job_id created_at source level stage output id",
        "provisioner_job_timings": "job_id started_at ended_at stage source action resource",
        "provisioner_jobs": (
            "id created_at updated_at started_at canceled_at completed_at error organization_id initiator_id "
            "provisioner storage_method type input worker_id file_id tags error_code trace_metadata job_status "
            "logs_length logs_overflowed"
        ),
        "provisioner_keys": "id created_at organization_id name hashed_secret tags",
        "replicas": (
            "id created_at started_at stopped_at updated_at hostname region_id relay_address database_latency "
            "version error primary cluster_host nats_port"
        ),
        "site_configs": "key value",
        "task_snapshots": "task_id log_snapshot log_snapshot_created_at",
        "task_workspace_apps": "task_id workspace_agent_id workspace_app_id workspace_build_number",
        "tasks": (
            "id organization_id owner_id name workspace_id template_version_id template_parameters prompt "
            "created_at deleted_at display_name"
        ),
        "telemetry_items": "key value created_at updated_at",
        "telemetry_locks": "event_type period_ending_at",
        "template_usage_stats": (
            "start_time end_time template_id user_id median_latency_ms usage_mins ssh_mins sftp_mins "
            "reconnecting_pty_mins vscode_mins jetbrains_mins app_usage_mins"
        ),
        "template_version_parameters": (
            "template_version_id name description type mutable default_value icon options validation_regex "
            "validation_min validation_max validation_error validation_monotonic required display_name "
            "display_order ephemeral form_type"
        ),
        "template_version_preset_parameters": "id template_version_preset_id name value",
        "template_version_preset_prebuild_schedules": "id preset_id cron_expression desired_instances",
        "template_version_presets": (
            "id template_version_id name created_at desired_instances invalidate_after_secs prebuild_status "
            "scheduling_timezone is_default description icon last_invalidated_at"
        ),
        "template_version_terraform_values": (
            "template_version_id updated_at cached_plan cached_module_files provisionerd_version"
        ),
        "template_version_variables": (
            "template_version_id name description type value default_value required sensitive"
        ),
        "template_version_workspace_tags": "template_version_id key value",
        "template_versions": (
            "id template_id organization_id created_at updated_at name readme job_id created_by "
            "external_auth_providers message archived source_example_id has_ai_task has_external_agent"
        ),
        "templates": (
            "id created_at updated_at organization_id deleted name provisioner active_version_id description "
            "default_ttl created_by icon user_acl group_acl display_name allow_user_cancel_workspace_jobs "
            "allow_user_autostart allow_user_autostop failure_ttl time_til_dormant time_til_dormant_autodelete "
            "autostop_requirement_days_of_week autostop_requirement_weeks autostart_block_days_of_week "
            "require_active_version deprecated activity_bump max_port_sharing_level use_classic_parameter_flow "
            "cors_behavior disable_module_cache time_til_autostop_notify"
        ),
        "usage_events": "id event_type event_data created_at publish_started_at published_at failure_message",
        "usage_events_daily": "day event_type usage_data",
        "user_ai_budget_overrides": "user_id group_id spend_limit_micros created_at updated_at",
        "user_ai_provider_keys": "id user_id ai_provider_id api_key api_key_key_id created_at updated_at",
        "user_configs": "user_id key value",
        "user_deleted": "id user_id deleted_at",
        "user_links": (
            "user_id login_type linked_id oauth_access_token oauth_refresh_token oauth_expiry "
            "oauth_access_token_key_id oauth_refresh_token_key_id claims"
        ),
        "user_secrets": (
            "id user_id name description value env_name file_path created_at updated_at value_key_id enabled"
        ),
        "user_skills": "id user_id name description content created_at updated_at",
        "user_status_changes": "id user_id new_status changed_at",
        "users": (
            "id email username hashed_password created_at updated_at status rbac_roles login_type avatar_url "
            "deleted last_seen_at quiet_hours_schedule name github_com_user_id hashed_one_time_passcode "
            "one_time_passcode_expires_at is_system is_service_account chat_spend_limit_micros"
        ),
        "webpush_subscriptions": "id user_id created_at endpoint endpoint_p256dh_key endpoint_auth_key",
        "workspace_agent_context_resources": (
            "workspace_agent_id source body_kind body content_hash size_bytes status error source_path created_at "
            "updated_at"
        ),
        "workspace_agent_context_snapshots": "workspace_agent_id version aggregate_hash snapshot_error received_at",
        "workspace_agent_devcontainers": (
            "id workspace_agent_id created_at workspace_folder config_path name subagent_id"
        ),
        "workspace_agent_log_sources": "workspace_agent_id id created_at display_name icon",
        "workspace_agent_memory_resource_monitors": (
            "agent_id enabled threshold created_at updated_at state debounced_until"
        ),
        "workspace_agent_port_share": "workspace_id agent_name port share_level protocol",
        "workspace_agent_script_timings": "script_id started_at ended_at exit_code stage status",
        "workspace_agent_scripts": (
            "workspace_agent_id log_source_id log_path created_at script cron start_blocks_login run_on_start "
            "run_on_stop timeout_seconds display_name id"
        ),
        "workspace_agent_stats": (
            "id created_at user_id agent_id workspace_id template_id connections_by_proto connection_count "
            "rx_packets rx_bytes tx_packets tx_bytes connection_median_latency_ms session_count_vscode "
            "session_count_jetbrains session_count_reconnecting_pty session_count_ssh usage"
        ),
        "workspace_agent_volume_resource_monitors": (
            "agent_id enabled threshold path created_at updated_at state debounced_until"
        ),
        "workspace_agents": (
            "id created_at updated_at name first_connected_at last_connected_at disconnected_at resource_id "
            "auth_token auth_instance_id architecture environment_variables operating_system instance_metadata "
            "resource_metadata directory version last_connected_replica_id connection_timeout_seconds "
            "troubleshooting_url motd_file lifecycle_state expanded_directory logs_length logs_overflowed "
            "started_at ready_at subsystems display_apps api_version display_order parent_id api_key_scope "
            "deleted"
        ),
        "workspace_app_stats": (
            "id user_id workspace_id agent_id access_method slug_or_port session_id session_started_at "
            "session_ended_at requests"
        ),
        "workspace_app_statuses": "id created_at agent_id app_id workspace_id state message uri",
        "workspace_apps": (
            "id created_at agent_id display_name icon command url healthcheck_url healthcheck_interval "
            "healthcheck_threshold health subdomain sharing_level slug external display_order hidden open_in "
            "display_group tooltip"
        ),
        "workspace_build_orchestrations": (
            "id created_at updated_at workspace_id parent_build_id child_build_id child_transition "
            "child_template_version_id child_template_version_preset_id child_rich_parameter_values "
            "child_log_level child_reason attempt_count next_retry_after status error"
        ),
        "workspace_build_parameters": "workspace_build_id name value",
        "workspace_builds": (
            "id created_at updated_at workspace_id template_version_id build_number transition initiator_id "
            "provisioner_state job_id deadline reason daily_cost max_deadline template_version_preset_id "
            "has_ai_task has_external_agent notified_autostop_deadline"
        ),
        "workspace_modules": "id job_id transition source version key created_at",
        "workspace_proxies": (
            "id name display_name icon url wildcard_hostname created_at updated_at deleted token_hashed_secret "
            "region_id derp_enabled derp_only version"
        ),
        "workspace_resource_metadata": "workspace_resource_id key value sensitive id",
        "workspace_resources": (
            "id created_at job_id transition type name hide icon instance_type daily_cost module_path"
        ),
        "workspaces": (
            "id created_at updated_at owner_id organization_id template_id deleted name autostart_schedule ttl "
            "last_used_at dormant_at deleting_at automatic_updates favorite next_start_at group_acl user_acl"
        ),
    }.items()
}

UNCHECKED = frozenset(
    {
        "chat_heartbeats",
        "schema_migrations",
        "tailnet_coordinators",
        "tailnet_peers",
        "tailnet_tunnels",
        "workspace_agent_logs",
        "workspace_agent_metadata",
        "workspace_app_audit_sessions",
    }
)
"""Tables of 2.34 whose columns are not compared."""
