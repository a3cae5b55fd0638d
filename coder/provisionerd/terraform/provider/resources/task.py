"""coder_ai_task: marks a template whose workspaces run a task."""

from __future__ import annotations

from collections.abc import Iterator

from coder.domain.foundation.go_uuid import NIL, parse_uuid
from coder.provisionerd.terraform.provider.checks import is_uuid
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, error
from coder.provisionerd.terraform.provider.kinds import Body, ProviderContext, ResourceKind
from coder.provisionerd.terraform.provider.readers import checked_blocks
from coder.provisionerd.terraform.provider.schema import BOOL, STRING, Attribute, Block, Schema

_SCHEMA = Schema(
    {
        "id": Attribute(STRING, "computed"),
        "app_id": Attribute(
            STRING,
            "optional+computed",
            check=is_uuid,
            conflicts=("sidebar_app",),
            description="App shown next to the task's chat.",
        ),
        "prompt": Attribute(STRING, "computed", description="Prompt of the task."),
        "enabled": Attribute(BOOL, "computed", description="Whether this workspace was created for a task."),
        "sidebar_app": Block(
            "set",
            {"id": Attribute(STRING, "required", check=is_uuid, description="App shown next to the chat.")},
            max_items=1,
            conflicts=("app_id",),
            deprecated="This field has been deprecated in favor of the `app_id` field.",
        ),
    },
    description="A task that runs in the workspace.",
)


def _create(context: ProviderContext, _config: Body, state: Body) -> Iterator[Diagnostic]:
    task_id = parse_uuid(context.environment.get("CODER_TASK_ID", ""))
    in_task = isinstance(task_id, str) and task_id != NIL
    state["id"] = task_id if isinstance(task_id, str) and in_task else context.new_id()
    state["enabled"] = in_task
    state["prompt"] = context.environment.get("CODER_TASK_PROMPT") or None
    if not state["app_id"]:
        if not state["sidebar_app"]:
            yield error("'app_id' must be set")
            return
        state["app_id"] = checked_blocks(state["sidebar_app"])[0]["id"]


ai_task = ResourceKind(_SCHEMA, create=_create)
