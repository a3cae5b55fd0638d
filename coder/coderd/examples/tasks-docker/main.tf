terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    docker = {
      source = "kreuzwerker/docker"
    }
  }
}

variable "agent_command" {
  type        = string
  description = "The coding program as it is called in a terminal, like claude"
}

variable "install_command" {
  type        = string
  default     = "true"
  description = "What installs it where it is not there yet"
}

variable "agent_env" {
  type        = string
  default     = "{}"
  sensitive   = true
  description = "Environment of the program as a JSON object of texts: keys of its model's provider"
}

variable "agentapi_version" {
  type        = string
  default     = "v0.10.0"
  description = "Release of AgentAPI"
}

provider "docker" {}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}
data "coder_task" "me" {}

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "What the task works on; may be empty"
  default      = ""
  mutable      = true
}

resource "coder_agent" "main" {
  arch = data.coder_provisioner.me.arch
  os   = "linux"

  env = {
    GIT_AUTHOR_NAME     = coalesce(data.coder_workspace_owner.me.full_name, data.coder_workspace_owner.me.name)
    GIT_AUTHOR_EMAIL    = data.coder_workspace_owner.me.email
    GIT_COMMITTER_NAME  = coalesce(data.coder_workspace_owner.me.full_name, data.coder_workspace_owner.me.name)
    GIT_COMMITTER_EMAIL = data.coder_workspace_owner.me.email
  }
}

resource "coder_script" "chat" {
  count        = data.coder_workspace.me.start_count
  agent_id     = coder_agent.main.id
  display_name = "Coding program"
  icon         = "/icon/tasks.svg"
  run_on_start = true
  script       = <<-EOT
    set -eu
    mkdir -p ~/.local/bin ~/work
    export PATH="$HOME/.local/bin:$PATH"
    if ! command -v agentapi >/dev/null; then
      curl -fsSL -o ~/.local/bin/agentapi \
        "https://github.com/coder/agentapi/releases/download/${var.agentapi_version}/agentapi-linux-${data.coder_provisioner.me.arch}"
      chmod 755 ~/.local/bin/agentapi
    fi
    ${var.install_command}
    repository="${data.coder_parameter.repository.value}"
    [ -z "$repository" ] || [ -d ~/work/.git ] || git clone "$repository" ~/work
    cd ~/work
    prompt=$(printf '%s' '${base64encode(data.coder_task.me.prompt)}' | base64 -d)
    nohup agentapi server --port 3284 --initial-prompt "$prompt" -- ${var.agent_command} >/tmp/agentapi.log 2>&1 &
  EOT
}

resource "coder_env" "program" {
  for_each = nonsensitive(toset(keys(jsondecode(var.agent_env))))
  agent_id = coder_agent.main.id
  name     = each.key
  value    = jsondecode(var.agent_env)[each.key]
}

resource "coder_app" "chat" {
  count        = data.coder_workspace.me.start_count
  agent_id     = coder_agent.main.id
  slug         = "chat"
  display_name = "Chat"
  icon         = "/icon/tasks.svg"
  url          = "http://localhost:3284/"
  share        = "owner"

  healthcheck {
    url       = "http://localhost:3284/status"
    interval  = 5
    threshold = 12
  }
}

resource "coder_ai_task" "main" {
  count  = data.coder_workspace.me.start_count
  app_id = coder_app.chat[0].id
}

resource "docker_volume" "home" {
  name = "coder-${data.coder_workspace.me.id}-home"

  # The name carries the workspace's id: a rename must not make a new, empty home.
  lifecycle {
    ignore_changes = all
  }
}

resource "docker_container" "workspace" {
  count    = data.coder_workspace.me.start_count
  name     = "coder-${data.coder_workspace_owner.me.name}-${lower(data.coder_workspace.me.name)}"
  hostname = data.coder_workspace.me.name
  image    = "codercom/enterprise-base:ubuntu"

  entrypoint = ["sh", "-c", replace(coder_agent.main.init_script, "/localhost|127\\.0\\.0\\.1/", "host.docker.internal")]
  env        = ["CODER_AGENT_TOKEN=${coder_agent.main.token}"]

  host {
    host = "host.docker.internal"
    ip   = "host-gateway"
  }

  volumes {
    container_path = "/home/coder"
    volume_name    = docker_volume.home.name
  }
}
