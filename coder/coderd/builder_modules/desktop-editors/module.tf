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
  description = "Folder that the editor opens. Empty opens the home directory."
}

variable "open_recent" {
  type        = bool
  default     = false
  description = "Open the most recent folder instead"
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

resource "coder_app" "editor" {
  agent_id     = var.agent_id
  slug         = "EDITOR_ID"
  display_name = "EDITOR_NAME"
  icon         = "EDITOR_ICON"
  external     = true

  # The dashboard replaces $SESSION_TOKEN with a token of the person who clicks.
  url = join("", [
    "EDITOR_SCHEME://coder.coder-remote/open?owner=${urlencode(data.coder_workspace_owner.me.name)}",
    "&workspace=${urlencode(data.coder_workspace.me.name)}",
    var.folder == "" ? "" : "&folder=${urlencode(var.folder)}",
    var.open_recent ? "&openRecent" : "",
    "&url=${urlencode(data.coder_workspace.me.access_url)}&token=$SESSION_TOKEN",
  ])
}
