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

data "coder_parameter" "image" {
  name         = "image"
  display_name = "Image"
  description  = "What the workspace is made of; it needs curl or wget"
  default      = "codercom/enterprise-base:ubuntu"
  mutable      = true
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}

locals {
  # A machine's name allows fewer characters than ours.
  name = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
  container = {
    spec = {
      containers = [{
        name    = "workspace"
        image   = data.coder_parameter.image.value
        command = ["sh"]
        args    = ["-c", coder_agent.main.init_script]
        env     = [{ name = "CODER_AGENT_TOKEN", value = coder_agent.main.token }]
      }]
      restartPolicy = "Always"
    }
  }
}

data "google_compute_image" "containers" {
  family  = "cos-stable"
  project = "cos-cloud"
}

resource "google_compute_instance" "workspace" {
  count        = data.coder_workspace.me.start_count
  name         = local.name
  machine_type = "e2-medium"

  boot_disk {
    initialize_params {
      image = data.google_compute_image.containers.self_link
    }
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
    "gce-container-declaration" = yamlencode(local.container)
  }

  labels = {
    container-vm = data.google_compute_image.containers.name
  }
}
