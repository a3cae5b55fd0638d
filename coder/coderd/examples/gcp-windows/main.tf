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

resource "coder_agent" "main" {
  os   = "windows"
  arch = "amd64"
}

locals {
  # A machine's name allows fewer characters than ours.
  name = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
}

resource "google_compute_disk" "root" {
  name  = "${local.name}-root"
  type  = "pd-ssd"
  image = "windows-cloud/windows-2022"
  size  = 60

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

  metadata = {
    "windows-startup-script-ps1" = <<-EOT
      $env:CODER_AGENT_TOKEN = "${coder_agent.main.token}"
      ${coder_agent.main.init_script}
    EOT
  }
}
