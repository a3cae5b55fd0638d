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
  default     = ""
  description = "Folder that Zed opens. Empty opens the home directory."
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

locals {
  # The host name that coder config-ssh sets up.
  host = lower("${data.coder_workspace.me.name}.${data.coder_workspace_owner.me.name}.coder")
}

resource "coder_app" "zed" {
  agent_id     = var.agent_id
  slug         = "zed"
  display_name = "Zed"
  icon         = "/icon/zed.svg"
  external     = true
  url          = "zed://ssh/${local.host}/${trimprefix(var.folder, "/")}"
}
