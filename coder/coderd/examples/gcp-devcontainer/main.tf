terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    google = {
      source = "hashicorp/google"
    }
  }
}

variable "project_id" {
  type        = string
  description = "Google Cloud project for the workspaces"
}

variable "builder_image" {
  type        = string
  default     = "ghcr.io/coder/envbuilder:latest"
  description = "The builder; pin a version before others depend on the template"
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "zone" {
  name         = "zone"
  display_name = "Zone"
  default      = "europe-west3-a"
  mutable      = false

  dynamic "option" {
    for_each = {
      "europe-west3-a"    = "Frankfurt"
      "europe-west4-a"    = "Netherlands"
      "us-central1-a"     = "Iowa"
      "us-west1-a"        = "Oregon"
      "asia-southeast1-a" = "Singapore"
    }
    content {
      name  = option.value
      value = option.key
    }
  }
}

provider "google" {
  project = var.project_id
  zone    = data.coder_parameter.zone.value
}

data "google_compute_default_service_account" "default" {}

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "Address of a Git repository with a devcontainer.json"
  default      = "https://github.com/coder/envbuilder-starter-devcontainer"
  mutable      = true
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}

locals {
  # A machine's name allows fewer characters than ours.
  name = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
  environment = join("\n", [
    "CODER_AGENT_TOKEN=${coder_agent.main.token}",
    "CODER_AGENT_URL=${data.coder_workspace.me.access_url}",
    "ENVBUILDER_GIT_URL=${data.coder_parameter.repository.value}",
    "ENVBUILDER_INIT_SCRIPT=sh /opt/coder/init",
    "ENVBUILDER_FALLBACK_IMAGE=codercom/enterprise-base:ubuntu",
  ])
}

resource "google_compute_disk" "root" {
  name  = "${local.name}-root"
  type  = "pd-ssd"
  image = "ubuntu-os-cloud/ubuntu-2404-lts-amd64"
  size  = 50

  lifecycle {
    ignore_changes = [name, image]
  }
}

resource "google_compute_instance" "workspace" {
  count        = data.coder_workspace.me.start_count
  name         = local.name
  machine_type = "e2-standard-2"

  boot_disk {
    auto_delete = false
    source      = google_compute_disk.root.name
  }

  network_interface {
    network = "default"
    access_config {}
  }

  service_account {
    email  = data.google_compute_default_service_account.default.email
    scopes = ["cloud-platform"]
  }

  metadata_startup_script = <<-EOT
    #!/usr/bin/env sh
    set -eu
    command -v docker >/dev/null || { apt-get update -q && apt-get install -q -y docker.io; }
    mkdir -p /opt/coder /workspaces
    echo ${base64encode(coder_agent.main.init_script)} | base64 -d > /opt/coder/init
    (umask 077 && echo ${base64encode(local.environment)} | base64 -d > /opt/coder/environment)
    docker rm --force workspace 2>/dev/null || true
    docker run --detach --name workspace --env-file /opt/coder/environment \
      --volume /opt/coder/init:/opt/coder/init:ro --volume /workspaces:/workspaces ${var.builder_image}
  EOT
}
