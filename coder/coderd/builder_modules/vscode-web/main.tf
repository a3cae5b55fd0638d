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

variable "accept_license" {
  type        = bool
  default     = false
  description = "Accept the licence terms of the VS Code server for all users"
}

variable "folder" {
  type        = string
  default     = ""
  description = "Folder that opens. Empty opens the home directory."
}

variable "offline" {
  type        = bool
  default     = false
  description = "Never download: the image already has the program code"
}

variable "port" {
  type        = number
  default     = 13338
  description = "Port of VS Code in the workspace"
}

variable "telemetry_level" {
  type        = string
  default     = "error"
  description = "Telemetry of VS Code: off, crash, error or all"
}

locals {
  # A word of the shell in single quotes, with any text in it.
  telemetry = "'${replace(var.telemetry_level, "'", "'\"'\"'")}'"
}

resource "coder_script" "vscode_web" {
  agent_id     = var.agent_id
  display_name = "VS Code Web"
  icon         = "/icon/code.svg"
  run_on_start = true
  script       = <<-EOT
    #!/bin/sh
    set -eu
    program=$(command -v code || echo "$HOME/.local/bin/code")
    if [ ! -x "$program" ]; then
      if [ ${var.offline} = true ]; then
        echo "The program code is not installed, and this template forbids the download." >&2
        exit 1
      fi
      case $(uname -m) in
        x86_64) arch=x64 ;;
        aarch64 | arm64) arch=arm64 ;;
        *) arch=armhf ;;
      esac
      mkdir -p "$HOME/.local/bin"
      curl -fsSL "https://update.code.visualstudio.com/latest/cli-alpine-$arch/stable" | tar -xz -C "$HOME/.local/bin"
    fi
    mkdir -p "$HOME/.cache"
    nohup "$program" serve-web --host 127.0.0.1 --port ${var.port} --without-connection-token \
      --accept-server-license-terms --telemetry-level ${local.telemetry} >"$HOME/.cache/vscode-web.log" 2>&1 &
    echo "VS Code is starting; its log is ~/.cache/vscode-web.log"
  EOT
}

resource "coder_app" "vscode_web" {
  agent_id     = var.agent_id
  slug         = "vscode-web"
  display_name = "VS Code Web"
  icon         = "/icon/code.svg"
  url          = "http://localhost:${var.port}/${var.folder == "" ? "" : "?folder=${urlencode(var.folder)}"}"
  share        = "owner"
  subdomain    = true

  healthcheck {
    url       = "http://localhost:${var.port}/"
    interval  = 5
    threshold = 12
  }
}
