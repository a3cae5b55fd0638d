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
  description = "Folder that opens. Empty opens the home directory."
}

variable "install_version" {
  type        = string
  default     = ""
  description = "Version to install. Empty installs the latest one."
}

variable "offline" {
  type        = bool
  default     = false
  description = "Never download: the image already has code-server"
}

variable "port" {
  type        = number
  default     = 13337
  description = "Port of code-server in the workspace"
}

locals {
  # A word of the shell in single quotes, with any text in it.
  version = "'${replace(var.install_version, "'", "'\"'\"'")}'"
}

resource "coder_script" "code_server" {
  agent_id     = var.agent_id
  display_name = "code-server"
  icon         = "/icon/code.svg"
  run_on_start = true
  script       = <<-EOT
    #!/bin/sh
    set -eu
    version=${local.version}
    program=$(command -v code-server || echo "$HOME/.local/bin/code-server")
    if [ ! -x "$program" ]; then
      if [ ${var.offline} = true ]; then
        echo "code-server is not installed, and this template forbids the download." >&2
        exit 1
      fi
      installer=$(mktemp)
      curl -fsSL https://code-server.dev/install.sh -o "$installer"
      sh "$installer" --method=standalone $${version:+--version="$version"}
      rm "$installer"
    fi
    mkdir -p "$HOME/.cache"
    nohup "$program" --auth none --bind-addr 127.0.0.1:${var.port} >"$HOME/.cache/code-server.log" 2>&1 &
    echo "code-server is starting; its log is ~/.cache/code-server.log"
  EOT
}

resource "coder_app" "code_server" {
  agent_id     = var.agent_id
  slug         = "code-server"
  display_name = "code-server"
  icon         = "/icon/code.svg"
  url          = "http://localhost:${var.port}/${var.folder == "" ? "" : "?folder=${urlencode(var.folder)}"}"
  share        = "owner"

  healthcheck {
    url       = "http://localhost:${var.port}/healthz"
    interval  = 5
    threshold = 6
  }
}
