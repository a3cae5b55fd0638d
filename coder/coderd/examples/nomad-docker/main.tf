terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    nomad = {
      source = "hashicorp/nomad"
    }
  }
}

variable "nomad_address" {
  type        = string
  default     = "http://127.0.0.1:4646"
  description = "Address of a Nomad server"
}

variable "datacenter" {
  type        = string
  default     = "dc1"
  description = "Data centre for the workspaces"
}

variable "host_volume" {
  type        = string
  default     = "coder-homes"
  description = "Host volume that home directories are kept on"
}

provider "nomad" {
  address = var.nomad_address
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "cpu" {
  name         = "cpu"
  display_name = "CPU (MHz)"
  type         = "number"
  default      = 1000
  mutable      = true
  validation {
    min = 250
    max = 16000
  }
}

data "coder_parameter" "memory" {
  name         = "memory"
  display_name = "Memory (MiB)"
  type         = "number"
  default      = 2048
  mutable      = true
  validation {
    min = 512
    max = 65536
  }
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"
  env  = { HOME = "/homes/${data.coder_workspace.me.id}" }

  metadata {
    key          = "cpu"
    display_name = "CPU"
    script       = "coder stat cpu"
    interval     = 10
    timeout      = 1
  }
}

locals {
  name = "coder-${data.coder_workspace.me.id}"
  home = "/homes/${data.coder_workspace.me.id}"
  start = join("\n", [
    "mkdir -p ${local.home}",
    "cd ${local.home}",
    coder_agent.main.init_script,
  ])
}

resource "nomad_job" "workspace" {
  count  = data.coder_workspace.me.start_count
  json   = true
  detach = true

  jobspec = jsonencode({
    Job = {
      ID          = local.name
      Name        = local.name
      Type        = "service"
      Datacenters = [var.datacenter]
      Meta = {
        workspace = data.coder_workspace.me.name
        owner     = data.coder_workspace_owner.me.name
      }
      TaskGroups = [{
        Name  = "workspace"
        Count = 1
        Volumes = {
          homes = { Name = "homes", Type = "host", Source = var.host_volume }
        }
        Tasks = [{
          Name   = "dev"
          Driver = "docker"
          User   = "root"
          Config = {
            image   = "codercom/enterprise-base:ubuntu"
            command = "sh"
            args    = ["-c", local.start]
          }
          Env = {
            CODER_AGENT_TOKEN = coder_agent.main.token
            HOME              = local.home
          }
          Resources = {
            CPU      = tonumber(data.coder_parameter.cpu.value)
            MemoryMB = tonumber(data.coder_parameter.memory.value)
          }
          VolumeMounts = [{ Volume = "homes", Destination = "/homes" }]
        }]
      }]
    }
  })
}
