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

variable "folder" {
  type        = string
  description = "Folder of the project, such as /home/coder/project"
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

resource "coder_app" "jetbrains" {
  agent_id     = var.agent_id
  slug         = "jetbrains"
  display_name = "JetBrains"
  icon         = "/icon/jetbrains.svg"
  external     = true

  # The dashboard replaces $SESSION_TOKEN with a token of the person who clicks.
  url = join("", [
    "jetbrains://gateway/com.coder.toolbox?owner=${urlencode(data.coder_workspace_owner.me.name)}",
    "&workspace=${urlencode(data.coder_workspace.me.name)}&agent_id=${var.agent_id}",
    "&folder=${urlencode(var.folder)}",
    "&url=${urlencode(data.coder_workspace.me.access_url)}&token=$SESSION_TOKEN",
  ])
}
