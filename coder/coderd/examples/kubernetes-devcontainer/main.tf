terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    kubernetes = {
      source = "hashicorp/kubernetes"
    }
  }
}

variable "use_kubeconfig" {
  type        = bool
  default     = false
  description = "Use ~/.kube/config of the provisioner; false inside the cluster"
}

variable "namespace" {
  type        = string
  description = "Namespace for the workspaces; it must exist"
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

provider "kubernetes" {
  config_path = var.use_kubeconfig ? "~/.kube/config" : null
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "Address of a Git repository with a devcontainer.json"
  default      = "https://github.com/coder/envbuilder-starter-devcontainer"
  mutable      = true
}

data "coder_parameter" "cpu" {
  name         = "cpu"
  display_name = "CPU cores"
  type         = "number"
  form_type    = "slider"
  default      = 2
  mutable      = true
  validation {
    min = 1
    max = 8
  }
}

data "coder_parameter" "memory" {
  name         = "memory"
  display_name = "Memory (GiB)"
  type         = "number"
  form_type    = "slider"
  default      = 4
  mutable      = true
  validation {
    min = 2
    max = 16
  }
}

locals {
  name = "coder-${data.coder_workspace.me.id}"
  labels = {
    "app.kubernetes.io/name"     = "coder-workspace"
    "app.kubernetes.io/instance" = local.name
    "app.kubernetes.io/part-of"  = "coder"
    "coder.workspace"            = data.coder_workspace.me.name
    "coder.owner"                = data.coder_workspace_owner.me.name
  }
  builder = {
    CODER_AGENT_URL           = data.coder_workspace.me.access_url
    ENVBUILDER_GIT_URL        = data.coder_parameter.repository.value
    ENVBUILDER_INIT_SCRIPT    = coder_agent.main.init_script
    ENVBUILDER_FALLBACK_IMAGE = "codercom/enterprise-base:ubuntu"
    ENVBUILDER_CACHE_REPO     = var.cache_repo
    ENVBUILDER_PUSH_IMAGE     = var.cache_repo == "" ? "" : "true"
  }
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
}

resource "kubernetes_secret_v1" "agent" {
  count = data.coder_workspace.me.start_count

  metadata {
    name      = local.name
    namespace = var.namespace
    labels    = local.labels
  }

  data = {
    CODER_AGENT_TOKEN = coder_agent.main.token
  }
}

resource "kubernetes_persistent_volume_claim_v1" "workspaces" {
  metadata {
    name      = "${local.name}-workspaces"
    namespace = var.namespace
    labels    = local.labels
  }

  wait_until_bound = false

  spec {
    access_modes = ["ReadWriteOnce"]
    resources {
      requests = {
        storage = "20Gi"
      }
    }
  }
}

resource "kubernetes_deployment_v1" "workspace" {
  count            = data.coder_workspace.me.start_count
  wait_for_rollout = false

  metadata {
    name      = local.name
    namespace = var.namespace
    labels    = local.labels
  }

  spec {
    replicas = 1

    selector {
      match_labels = { "app.kubernetes.io/instance" = local.name }
    }

    strategy {
      type = "Recreate"
    }

    template {
      metadata {
        labels = local.labels
      }

      spec {
        container {
          name  = "dev"
          image = var.builder_image

          dynamic "env" {
            for_each = { for name, value in local.builder : name => value if value != "" }
            content {
              name  = env.key
              value = env.value
            }
          }

          env_from {
            secret_ref {
              name = kubernetes_secret_v1.agent[0].metadata[0].name
            }
          }

          resources {
            requests = {
              cpu    = "250m"
              memory = "1Gi"
            }
            limits = {
              cpu    = data.coder_parameter.cpu.value
              memory = "${data.coder_parameter.memory.value}Gi"
            }
          }

          volume_mount {
            mount_path = "/workspaces"
            name       = "workspaces"
          }
        }

        volume {
          name = "workspaces"
          persistent_volume_claim {
            claim_name = kubernetes_persistent_volume_claim_v1.workspaces.metadata[0].name
          }
        }
      }
    }
  }
}
