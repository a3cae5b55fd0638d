terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}

variable "agent_id" {
  type        = string
  description = "Agent that the module belongs to"
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

resource "coder_app" "autostop" {
  agent_id     = var.agent_id
  slug         = "autostop"
  display_name = "Autostop schedule"
  icon         = "/icon/desktop.svg"
  external     = true

  url = join("/", [
    trimsuffix(data.coder_workspace.me.access_url, "/"),
    "@${data.coder_workspace_owner.me.name}",
    data.coder_workspace.me.name,
    "settings/schedule",
  ])
}
