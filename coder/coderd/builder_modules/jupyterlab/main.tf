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

variable "port" {
  type        = number
  default     = 19999
  description = "Port of JupyterLab in the workspace"
}

resource "coder_script" "jupyterlab" {
  agent_id     = var.agent_id
  display_name = "JupyterLab"
  icon         = "/icon/jupyter.svg"
  run_on_start = true
  script       = <<-EOT
    #!/bin/sh
    set -eu
    PATH="$HOME/.local/bin:$HOME/.local/share/jupyterlab/bin:$PATH"
    if ! command -v jupyter-lab >/dev/null; then
      python3 -m venv "$HOME/.local/share/jupyterlab"
      "$HOME/.local/share/jupyterlab/bin/pip" install --quiet jupyterlab
    fi
    cd "$HOME"
    mkdir -p .cache
    nohup jupyter-lab --no-browser --ip=127.0.0.1 --port=${var.port} --ServerApp.token= --ServerApp.password= \
      >.cache/jupyterlab.log 2>&1 &
    echo "JupyterLab is starting; its log is ~/.cache/jupyterlab.log"
  EOT
}

resource "coder_app" "jupyterlab" {
  agent_id     = var.agent_id
  slug         = "jupyterlab"
  display_name = "JupyterLab"
  icon         = "/icon/jupyter.svg"
  url          = "http://localhost:${var.port}/"
  share        = "owner"
  subdomain    = true

  healthcheck {
    url       = "http://localhost:${var.port}/api"
    interval  = 5
    threshold = 12
  }
}
