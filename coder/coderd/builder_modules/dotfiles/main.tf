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

variable "default_dotfiles_uri" {
  type        = string
  default     = ""
  description = "Repository that the question to the user suggests"
}

variable "dotfiles_uri" {
  type        = string
  default     = null
  description = "Repository for all workspaces. Without it, each user is asked."
}

variable "manual_update" {
  type        = bool
  default     = false
  description = "Add a button that applies the dotfiles again"
}

data "coder_parameter" "dotfiles_uri" {
  count        = var.dotfiles_uri == null ? 1 : 0
  name         = "dotfiles_uri"
  display_name = "Dotfiles URL"
  description  = "Git repository with your dotfiles. Empty for none."
  icon         = "/icon/dotfiles.svg"
  type         = "string"
  default      = var.default_dotfiles_uri
  mutable      = true
}

locals {
  uri = var.dotfiles_uri == null ? data.coder_parameter.dotfiles_uri[0].value : var.dotfiles_uri
  # A word of the shell in single quotes, with any text in it.
  word = "'${replace(local.uri, "'", "'\"'\"'")}'"
}

resource "coder_script" "dotfiles" {
  agent_id     = var.agent_id
  display_name = "Dotfiles"
  icon         = "/icon/dotfiles.svg"
  run_on_start = true
  script       = <<-EOT
    #!/bin/sh
    set -eu
    uri=${local.word}
    [ -n "$uri" ] || exit 0
    coder dotfiles -y -- "$uri"
  EOT
}

resource "coder_app" "dotfiles" {
  count        = var.manual_update && local.uri != "" ? 1 : 0
  agent_id     = var.agent_id
  slug         = "dotfiles"
  display_name = "Refresh dotfiles"
  icon         = "/icon/dotfiles.svg"
  command      = "coder dotfiles -y -- ${local.word}"
}
