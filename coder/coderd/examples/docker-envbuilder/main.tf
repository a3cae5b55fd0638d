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

variable "cache_repo" {
  type        = string
  default     = ""
  description = "Registry path that built layers are kept in, like registry.example.com/envbuilder; empty for none"
}

variable "builder_image" {
  type        = string
  default     = "ghcr.io/coder/envbuilder:latest"
  description = "The builder; pin a version before others depend on the template"
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

data "coder_parameter" "fallback_image" {
  name         = "fallback_image"
  display_name = "Image if the build fails"
  description  = "Somewhere to mend a broken devcontainer.json"
  default      = "codercom/enterprise-base:ubuntu"
  mutable      = true
}

locals {
  # The container is not this machine: an address that means this machine means the Docker host there.
  init_script = replace(coder_agent.main.init_script, "/localhost|127\\.0\\.0\\.1/", "host.docker.internal")
  builder = {
    CODER_AGENT_TOKEN         = coder_agent.main.token
    CODER_AGENT_URL           = replace(data.coder_workspace.me.access_url, "/localhost|127\\.0\\.0\\.1/", "host.docker.internal")
    ENVBUILDER_GIT_URL        = data.coder_parameter.repository.value
    ENVBUILDER_INIT_SCRIPT    = local.init_script
    ENVBUILDER_FALLBACK_IMAGE = data.coder_parameter.fallback_image.value
    ENVBUILDER_CACHE_REPO     = var.cache_repo
    ENVBUILDER_PUSH_IMAGE     = var.cache_repo == "" ? "" : "true"
  }
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

resource "docker_volume" "workspaces" {
  name = "coder-${data.coder_workspace.me.id}-workspaces"

  # The name carries the workspace's id: a rename must not make a new, empty volume.
  lifecycle {
    ignore_changes = all
  }
}

resource "docker_container" "workspace" {
  count    = data.coder_workspace.me.start_count
  name     = "coder-${data.coder_workspace_owner.me.name}-${lower(data.coder_workspace.me.name)}"
  hostname = data.coder_workspace.me.name
  image    = var.builder_image
  env      = [for name, value in local.builder : "${name}=${value}" if value != ""]

  host {
    host = "host.docker.internal"
    ip   = "host-gateway"
  }

  volumes {
    container_path = "/workspaces"
    volume_name    = docker_volume.workspaces.name
  }
}
