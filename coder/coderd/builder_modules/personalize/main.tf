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

variable "path" {
  type        = string
  default     = "~/personalize"
  description = "The script"
}

locals {
  # A word of the shell in single quotes, with any text in it.
  path = "'${replace(var.path, "'", "'\"'\"'")}'"
}

resource "coder_script" "personalize" {
  agent_id           = var.agent_id
  display_name       = "Personalize"
  icon               = "/icon/personalize.svg"
  run_on_start       = true
  start_blocks_login = true
  script             = <<-EOT
    #!/bin/sh
    set -eu
    path=${local.path}
    case $path in
      "~/"*) path=$HOME/$${path#"~/"} ;;
    esac
    if [ ! -e "$path" ]; then
      echo "There is no $path; create it to set up your workspaces."
      exit 0
    fi
    [ -x "$path" ] || chmod +x -- "$path"
    "$path"
  EOT
}
