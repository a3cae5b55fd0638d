"""Templates of notifications: ids, names, groups and links are upstream's, the words are ours.

`own_templates.py` adds those of events that upstream lacks. Clients know a template by its id (preferences, inbox).
`notification_texts.py` fills in the words.
"""

from __future__ import annotations

from uuid import UUID

from coder.domain.notifications.message_template import MessageTemplate
from coder.domain.notifications.own_templates import OWN

ONE_TIME_PASSCODE = UUID("62f86a30-2330-4b61-a26d-311ff3b608cf")
PREBUILD_FAILURE_LIMIT = UUID("414d9331-c1fc-4761-b40c-d1f4702279eb")
PREBUILD_RESOURCE_REPLACED = UUID("89d9745a-816e-4695-a17f-3d0a229e2b8d")
REPORT_BUILDS_FAILED = UUID("34a20db2-e9cc-4a93-b0e4-8569699d7a00")
TASK_COMPLETED = UUID("8c5a4d12-9f7e-4b3a-a1c8-6e4f2d9b5a7c")
TASK_FAILED = UUID("3b7e8f1a-4c2d-49a6-b5e9-7f3a1c8d6b4e")
TASK_IDLE = UUID("d4a6271c-cced-4ed0-84ad-afd02a9c7799")
TASK_PAUSED = UUID("2a74f3d3-ab09-4123-a4a5-ca238f4f65a1")
TASK_RESUMED = UUID("843ee9c3-a8fb-4846-afa9-977bec578649")
TASK_WORKING = UUID("bd4b7168-d05e-4e19-ad0f-3593b77aa90f")
TEMPLATE_DELETED = UUID("29a09665-2a4c-403f-9648-54301670e7be")
TEMPLATE_DEPRECATED = UUID("f40fae84-55a2-42cd-99fa-b41c1ca64894")
TEST = UUID("c425f63e-716a-4bf4-ae24-78348f706c3f")
USER_ACTIVATED = UUID("9f5af851-8408-4e73-a7a1-c6502ba46689")
USER_CREATED = UUID("4e19c0ac-94e1-4532-9515-d1801aa283b2")
USER_DELETED = UUID("f44d9314-ad03-4bc8-95d0-5cad491da6b6")
USER_SUSPENDED = UUID("b02ddd82-4733-4d02-a2d7-c36f3598997d")
WORKSPACE_AUTOBUILD_FAILED = UUID("381df2a9-c0c0-4749-420f-80a9280c66f9")
WORKSPACE_AUTOSTOP_REMINDER = UUID("6f6cb984-c167-4fa5-bb87-1058dd642779")
WORKSPACE_CREATED = UUID("281fdf73-c6d6-4cbb-8ff5-888baf8a2fff")
WORKSPACE_DELETED = UUID("f517da0b-cdc9-410f-ab89-a86107c420ed")
WORKSPACE_MANUAL_BUILD_FAILED = UUID("2faeee0f-26cb-4e96-821c-85ccb9f71513")
WORKSPACE_MANUALLY_UPDATED = UUID("d089fe7b-d5c5-4c0c-aaf5-689859f7d392")
WORKSPACE_DORMANT = UUID("0ea69165-ec14-4314-91f1-69566ac3c5a0")
WORKSPACE_MARKED_FOR_DELETION = UUID("51ce2fdf-c9ca-4be1-8d70-628674f9bc42")
WORKSPACE_OUT_OF_DISK = UUID("f047f6a3-5713-40f7-85aa-0394cce9fa3a")
WORKSPACE_OUT_OF_MEMORY = UUID("a9d027b4-ac49-4fb1-9f6d-45af15f64e7a")
WORKSPACE_AUTO_UPDATED = UUID("c34a0c09-0704-4cac-bd1c-0c0146811c2b")
YOUR_ACCOUNT_ACTIVATED = UUID("1a6a6bea-ee0a-43e2-9e7c-eabdb53730e4")
YOUR_ACCOUNT_SUSPENDED = UUID("6a2f0609-9b69-4d36-a989-9f5925b6cbff")
CUSTOM = UUID("39b1e189-c857-4b0c-877a-511144c18516")

TEMPLATES: tuple[MessageTemplate, ...] = (
    MessageTemplate(
        id=UUID("cdcf2ecd-f003-4169-9800-abb2661ea522"),
        name="AI Budget Limit Reached",
        group="AI Cost Control Events",
        title="You have reached your AI budget",
        body="Your AI budget is used up. Ask an administrator for more.",
    ),
    MessageTemplate(
        id=UUID("b5db9597-de2a-4dea-87e9-25cee6906b86"),
        name="AI Budget Warning",
        group="AI Cost Control Events",
        title="You are close to your AI budget",
        body="Most of your AI budget is used up.",
    ),
    MessageTemplate(
        id=UUID("b789bd75-d7c6-4cab-9757-1147ab184903"),
        name="Chat Shared",
        group="Chat Events",
        title="A chat was shared with you",
        body="**{{.Labels.initiator}}** shared a chat with you.",
        actions='[{"url": "{{base_url}}/agents/{{.Labels.chat_id}}", "label": "View chat"}]',
    ),
    MessageTemplate(
        id=UUID("764031be-4863-4220-867b-6ce1a1b7a5f5"),
        name="Chats Auto-Archived",
        group="Chat Events",
        title="Chats were archived",
        body="Chats without recent activity were archived.",
        actions='[{"url": "{{base_url}}/agents?archived=archived", "label": "View chats"}]',
    ),
    MessageTemplate(
        id=ONE_TIME_PASSCODE,
        name="One-Time Passcode",
        group="User Events",
        title="Reset your password for Coder",
        body=(
            "Use the link below to reset your password.\n\nIf you did not ask for this, you can ignore this message."
        ),
        actions=(
            '[{"url": "{{base_url}}/reset-password/change?otp={{.Labels.one_time_passcode}}&email={{.UserEmail | '
            'urlquery}}", "label": "Reset password"}]'
        ),
    ),
    MessageTemplate(
        id=PREBUILD_FAILURE_LIMIT,
        name="Prebuild Failure Limit Reached",
        group="Template Events",
        title='Prebuilt workspaces of "{{.Labels.template}}" keep failing',
        body=(
            "Building prebuilt workspaces of preset **{{.Labels.preset}}** of template **{{.Labels.template}}** "
            "failed too often and was stopped until there is a new version."
        ),
        actions=(
            '[{"url": '
            '"{{base_url}}/workspaces?filter=owner:prebuilds+status:failed+template:{{.Labels.template}}", '
            '"label": "View failed prebuilt workspaces"}, {"url": '
            '"{{base_url}}/templates/{{.Labels.org}}/{{.Labels.template}}/versions/{{.Labels.template_version}}", '
            '"label": "View template version"}]'
        ),
    ),
    MessageTemplate(
        id=PREBUILD_RESOURCE_REPLACED,
        name="Prebuilt Workspace Resource Replaced",
        group="Template Events",
        title="Claiming a prebuilt workspace replaced resources",
        body=(
            "Workspace **{{.Labels.workspace}}**, claimed by **{{.Labels.claimant}}**, had resources of its "
            "template **{{.Labels.template}}** replaced: {{.Labels.replacements}}"
        ),
        actions=(
            '[{"url": '
            '"{{base_url}}/@{{.Labels.claimant}}/{{.Labels.workspace}}/builds/{{.Labels.workspace_build_num}}", '
            '"label": "View workspace build"}, {"url": '
            '"{{base_url}}/templates/{{.Labels.org}}/{{.Labels.template}}/versions/{{.Labels.template_version}}", '
            '"label": "View template version"}]'
        ),
    ),
    MessageTemplate(
        id=REPORT_BUILDS_FAILED,
        name="Report: Workspace Builds Failed",
        group="Template Events",
        title="Failed workspace builds report",
        body="Builds of workspaces failed during the last {{.Labels.report_frequency}}:\n\n{{.Labels.summary}}",
        actions=(
            '[{"url": "{{ base_url }}/workspaces?filter={{$first := true}}{{range $template := '
            ".Data.templates}}{{range $version := $template.versions}}{{range $build := "
            "$version.failed_builds}}{{if not $first}}+{{else}}{{$first = "
            'false}}{{end}}id%3A{{$build.workspace_id}}{{end}}{{end}}{{end}}", "label": "View workspaces"}]'
        ),
    ),
    MessageTemplate(
        id=TASK_COMPLETED,
        name="Task Completed",
        group="Task Events",
        title='Task "{{.Labels.task}}" is complete',
        body="The task **{{.Labels.task}}** is complete.",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.workspace}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=TASK_FAILED,
        name="Task Failed",
        group="Task Events",
        title='Task "{{.Labels.task}}" failed',
        body="The task **{{.Labels.task}}** failed. See its log for details.",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.workspace}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=TASK_IDLE,
        name="Task Idle",
        group="Task Events",
        title='Task "{{.Labels.task}}" waits for you',
        body="The task **{{.Labels.task}}** is idle and waits for input.",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.workspace}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=TASK_PAUSED,
        name="Task Paused",
        group="Task Events",
        title='Task "{{.Labels.task}}" is paused',
        body="The task **{{.Labels.task}}** was paused ({{.Labels.pause_reason}}).",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.task_id}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
    ),
    MessageTemplate(
        id=TASK_RESUMED,
        name="Task Resumed",
        group="Task Events",
        title='Task "{{.Labels.task}}" goes on',
        body="The task **{{.Labels.task}}** was resumed.",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.task_id}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
    ),
    MessageTemplate(
        id=TASK_WORKING,
        name="Task Working",
        group="Task Events",
        title='Task "{{.Labels.task}}" is at work',
        body="The task **{{.Labels.task}}** began to work.",
        actions=(
            '[{"url": "{{base_url}}/tasks/{{.UserUsername}}/{{.Labels.workspace}}", "label": "View task"}, {"url": '
            '"{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=TEMPLATE_DELETED,
        name="Template Deleted",
        group="Template Events",
        title='Template "{{.Labels.name}}" deleted',
        body="The template **{{.Labels.name}}** was deleted by **{{.Labels.initiator}}**.",
        actions='[{"url": "{{ base_url }}/templates", "label": "View templates"}]',
    ),
    MessageTemplate(
        id=TEMPLATE_DEPRECATED,
        name="Template Deprecated",
        group="Template Events",
        title='Template "{{.Labels.template}}" has been deprecated',
        body=(
            "The template **{{.Labels.template}}** has been deprecated:\n\n> {{.Labels.message}}\n\nNew workspaces "
            "cannot use it; existing ones keep working."
        ),
        actions=(
            '[{"url": "{{base_url}}/workspaces?filter=owner%3Ame+template%3A{{.Labels.template}}", "label": "See '
            'affected workspaces"}, {"url": '
            '"{{base_url}}/templates/{{.Labels.organization}}/{{.Labels.template}}", "label": "View template"}]'
        ),
    ),
    MessageTemplate(
        id=TEST,
        name="Troubleshooting Notification",
        group="Notification Events",
        title="A test notification",
        body="This is a test notification.",
        actions=(
            '[{"url": "{{base_url}}/deployment/notifications?tab=settings", "label": "View notification settings"}]'
        ),
    ),
    MessageTemplate(
        id=UUID("2a7b0ac1-00e1-4625-9cd5-1e5933972c77"),
        name="User Approaching AI Budget Limit",
        group="AI Cost Control Admin Events",
        title="A user is close to the AI budget",
        body="**{{.Labels.user}}** has used most of the AI budget.",
    ),
    MessageTemplate(
        id=UUID("0bafe0ea-a78b-4217-ad05-1ef12e92e025"),
        name="User Reached AI Budget Limit",
        group="AI Cost Control Admin Events",
        title="A user reached the AI budget",
        body="**{{.Labels.user}}** has used up the AI budget.",
    ),
    MessageTemplate(
        id=USER_ACTIVATED,
        name="User account activated",
        group="User Events",
        title='User account "{{.Labels.activated_account_name}}" activated',
        body=(
            "User account **{{.Labels.activated_account_name}}** has been activated.\n\nThe account was activated "
            "by **{{.Labels.initiator}}**."
        ),
        actions='[{"url": "{{ base_url }}/deployment/users?filter=status%3Aactive", "label": "View accounts"}]',
    ),
    MessageTemplate(
        id=USER_CREATED,
        name="User account created",
        group="User Events",
        title='User account "{{.Labels.created_account_name}}" created',
        body=(
            "New user account **{{.Labels.created_account_name}}** has been created.\n\nThis new user account was "
            "created by **{{.Labels.initiator}}**."
        ),
        actions='[{"url": "{{ base_url }}/deployment/users?filter=status%3Aactive", "label": "View accounts"}]',
    ),
    MessageTemplate(
        id=USER_DELETED,
        name="User account deleted",
        group="User Events",
        title='User account "{{.Labels.deleted_account_name}}" deleted',
        body=(
            "User account **{{.Labels.deleted_account_name}}** has been deleted.\n\nThe account was deleted by "
            "**{{.Labels.initiator}}**."
        ),
        actions='[{"url": "{{ base_url }}/deployment/users?filter=status%3Aactive", "label": "View accounts"}]',
    ),
    MessageTemplate(
        id=USER_SUSPENDED,
        name="User account suspended",
        group="User Events",
        title='User account "{{.Labels.suspended_account_name}}" suspended',
        body=(
            "User account **{{.Labels.suspended_account_name}}** has been suspended.\n\nThe account was suspended "
            "by **{{.Labels.initiator}}**."
        ),
        actions=(
            '[{"url": "{{ base_url }}/deployment/users?filter=status%3Asuspended", "label": "View suspended accounts"}]'
        ),
    ),
    MessageTemplate(
        id=WORKSPACE_AUTOBUILD_FAILED,
        name="Workspace Autobuild Failed",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" autobuild failed',
        body=(
            "Automatic build of your workspace **{{.Labels.name}}** failed.\n\nThe reason of the build was "
            "**{{.Labels.reason}}**."
        ),
        actions='[{"url": "{{ base_url }}/@{{.UserUsername}}/{{.Labels.name}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_AUTOSTOP_REMINDER,
        name="Workspace Autostop Reminder",
        group="Workspace Events",
        title='Your workspace "{{.Labels.workspace}}" stops soon',
        body="Your workspace **{{.Labels.workspace}}** stops at {{.Labels.deadline}}.",
        actions='[{"url": "{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_CREATED,
        name="Workspace Created",
        group="Workspace Events",
        title='Workspace "{{.Labels.workspace}}" has been created',
        body=(
            "The workspace **{{.Labels.workspace}}** of **{{.Labels.workspace_owner_username}}** has been created "
            "from the template **{{.Labels.template}}**."
        ),
        actions=(
            '[{"url": "{{base_url}}/@{{.Labels.workspace_owner_username}}/{{.Labels.workspace}}", "label": "View '
            'workspace"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=WORKSPACE_DELETED,
        name="Workspace Deleted",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" deleted',
        body=(
            "Your workspace **{{.Labels.name}}** was deleted.\n\nThe reason was **{{.Labels.reason}}**{{if "
            ".Labels.initiator}} ({{.Labels.initiator}}){{end}}."
        ),
        actions=(
            '[{"url": "{{ base_url }}/workspaces", "label": "View workspaces"}, {"url": "{{ base_url '
            '}}/templates", "label": "View templates"}]'
        ),
    ),
    MessageTemplate(
        id=WORKSPACE_MANUAL_BUILD_FAILED,
        name="Workspace Manual Build Failed",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" manual build failed',
        body=(
            "A manual build of the workspace **{{.Labels.name}}** of template **{{.Labels.template_name}}** "
            "(version **{{.Labels.template_version_name}}**) failed.\n\nThe build was initiated by "
            "**{{.Labels.initiator}}**."
        ),
        actions=(
            '[{"url": "{{ base_url '
            '}}/@{{.Labels.workspace_owner_username}}/{{.Labels.name}}/builds/{{.Labels.workspace_build_number}}", '
            '"label": "View build"}]'
        ),
    ),
    MessageTemplate(
        id=WORKSPACE_MANUALLY_UPDATED,
        name="Workspace Manually Updated",
        group="Workspace Events",
        title='Workspace "{{.Labels.workspace}}" has been manually updated',
        body=(
            "The workspace **{{.Labels.workspace}}** of **{{.Labels.workspace_owner_username}}** has been updated "
            "to version **{{.Labels.version}}** by **{{.Labels.initiator}}**."
        ),
        actions=(
            '[{"url": "{{base_url}}/@{{.Labels.workspace_owner_username}}/{{.Labels.workspace}}", "label": "View '
            'workspace"}, {"url": '
            '"{{base_url}}/templates/{{.Labels.organization}}/{{.Labels.template}}/versions/{{.Labels.version}}", '
            '"label": "View template version"}]'
        ),
        enabled_by_default=False,
    ),
    MessageTemplate(
        id=WORKSPACE_DORMANT,
        name="Workspace Marked as Dormant",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" marked as dormant',
        body=(
            "Your workspace **{{.Labels.name}}** has been marked as dormant: {{.Labels.reason}}.\n\n{{if "
            ".Labels.dormancyHours}}Dormant workspaces may be deleted after {{.Labels.dormancyHours}} hours of "
            "inactivity. {{end}}To keep your workspace, activate it."
        ),
        actions='[{"url": "{{ base_url }}/@{{.UserUsername}}/{{.Labels.name}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_MARKED_FOR_DELETION,
        name="Workspace Marked for Deletion",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" marked for deletion',
        body=(
            "Your workspace **{{.Labels.name}}** will be deleted after {{.Labels.timeTilDormant}} of dormancy "
            "({{.Labels.reason}}). To keep it, use it."
        ),
        actions='[{"url": "{{ base_url }}/@{{.UserUsername}}/{{.Labels.name}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_OUT_OF_DISK,
        name="Workspace Out Of Disk",
        group="Workspace Events",
        title='Your workspace "{{.Labels.workspace}}" is low on volume space',
        body="Volumes of **{{.Labels.workspace}}** are nearly full: {{.Labels.volumes}}",
        actions='[{"url": "{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_OUT_OF_MEMORY,
        name="Workspace Out Of Memory",
        group="Workspace Events",
        title='Your workspace "{{.Labels.workspace}}" is low on memory',
        body="The workspace **{{.Labels.workspace}}** uses more than {{.Labels.threshold}} of its memory.",
        actions='[{"url": "{{base_url}}/@{{.UserUsername}}/{{.Labels.workspace}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=WORKSPACE_AUTO_UPDATED,
        name="Workspace Updated Automatically",
        group="Workspace Events",
        title='Workspace "{{.Labels.name}}" updated automatically',
        body=(
            "Your workspace **{{.Labels.name}}** was started with version **{{.Labels.template_version_name}}** of "
            "its template."
        ),
        actions='[{"url": "{{ base_url }}/@{{.UserUsername}}/{{.Labels.name}}", "label": "View workspace"}]',
    ),
    MessageTemplate(
        id=YOUR_ACCOUNT_ACTIVATED,
        name="Your account has been activated",
        group="User Events",
        title='Your account "{{.Labels.activated_account_name}}" has been activated',
        body="Your account **{{.Labels.activated_account_name}}** has been activated by **{{.Labels.initiator}}**.",
        actions='[{"url": "{{ base_url }}", "label": "Open Coder"}]',
    ),
    MessageTemplate(
        id=YOUR_ACCOUNT_SUSPENDED,
        name="Your account has been suspended",
        group="User Events",
        title='Your account "{{.Labels.suspended_account_name}}" has been suspended',
        body="Your account **{{.Labels.suspended_account_name}}** has been suspended by **{{.Labels.initiator}}**.",
    ),
    MessageTemplate(
        id=CUSTOM,
        name="Custom Notification",
        group="Custom Events",
        title="{{.Labels.custom_title}}",
        body="{{.Labels.custom_message}}",
        kind="custom",
    ),
    *OWN,
)
