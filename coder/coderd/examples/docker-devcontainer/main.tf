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

variable "docker_socket" {
  type        = string
  default     = ""
  description = "Address of the Docker daemon, like tcp://10.0.0.5:2376; empty for the local one"
}

variable "runtime" {
  type        = string
  default     = ""
  description = "sysbox-runc where it is installed; empty starts a privileged container"
}

provider "docker" {
  host = var.docker_socket != "" ? var.docker_socket : null
}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "Address of a Git repository with a devcontainer.json"
  default      = "https://github.com/coder/envbuilder-starter-devcontainer"
  mutable      = true
}

locals {
  folder = "/home/coder/${trimsuffix(basename(data.coder_parameter.repository.value), ".git")}"
}

resource "coder_agent" "main" {
  arch = data.coder_provisioner.me.arch
  os   = "linux"

  metadata {
    key          = "containers"
    display_name = "Containers"
    script       = "docker ps --quiet | wc -l"
    interval     = 30
    timeout      = 5
  }
}

resource "coder_script" "devcontainer" {
  agent_id           = coder_agent.main.id
  display_name       = "Dev container"
  icon               = "/icon/docker.png"
  run_on_start       = true
  start_blocks_login = false
  script             = <<-EOT
    set -eu
    [ -d "${local.folder}" ] || git clone "${data.coder_parameter.repository.value}" "${local.folder}"
    sudo dockerd >/tmp/dockerd.log 2>&1 &
    tries=60
    until sudo docker info >/dev/null 2>&1; do
      tries=$((tries - 1))
      [ "$tries" -gt 0 ] || { tail /tmp/dockerd.log; exit 1; }
      sleep 1
    done
    sudo chmod 666 /var/run/docker.sock
    command -v devcontainer >/dev/null || sudo npm install --global @devcontainers/cli
    devcontainer up --workspace-folder "${local.folder}"
  EOT
}

resource "docker_volume" "home" {
  name = "coder-${data.coder_workspace.me.id}-home"

  # The name carries the workspace's id: a rename must not make a new, empty home.
  lifecycle {
    ignore_changes = all
  }
}

# Images of the inner daemon; its files cannot lie on the container's own layered file system.
resource "docker_volume" "images" {
  name = "coder-${data.coder_workspace.me.id}-images"

  lifecycle {
    ignore_changes = all
  }
}

resource "docker_container" "workspace" {
  count      = data.coder_workspace.me.start_count
  name       = "coder-${data.coder_workspace_owner.me.name}-${lower(data.coder_workspace.me.name)}"
  hostname   = data.coder_workspace.me.name
  image      = "codercom/enterprise-node:ubuntu"
  privileged = var.runtime == ""
  runtime    = var.runtime != "" ? var.runtime : null

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

  volumes {
    container_path = "/var/lib/docker"
    volume_name    = docker_volume.images.name
  }
}
