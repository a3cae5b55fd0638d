terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    incus = {
      source = "lxc/incus"
    }
  }
}

variable "pool" {
  type        = string
  default     = "default"
  description = "Storage pool for the workspaces' disks"
}

provider "incus" {}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "image" {
  name         = "image"
  display_name = "Image"
  default      = "images:debian/13/cloud"
  mutable      = false

  option {
    name  = "Debian"
    value = "images:debian/13/cloud"
  }
  option {
    name  = "Ubuntu"
    value = "images:ubuntu/24.04/cloud"
  }
}

data "coder_parameter" "cpu" {
  name         = "cpu"
  display_name = "CPU cores"
  type         = "number"
  default      = 2
  mutable      = true
  validation {
    min = 1
    max = 16
  }
}

data "coder_parameter" "memory" {
  name         = "memory"
  display_name = "Memory (GiB)"
  type         = "number"
  default      = 4
  mutable      = true
  validation {
    min = 1
    max = 64
  }
}

resource "coder_agent" "main" {
  count = data.coder_workspace.me.start_count
  os    = "linux"
  arch  = data.coder_provisioner.me.arch

  metadata {
    key          = "memory"
    display_name = "Memory"
    script       = "coder stat mem"
    interval     = 10
    timeout      = 1
  }
}

locals {
  user = lower(data.coder_workspace_owner.me.name)
}

resource "incus_instance" "workspace" {
  name    = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
  image   = data.coder_parameter.image.value
  running = data.coder_workspace.me.start_count == 1

  config = {
    "limits.cpu"                           = data.coder_parameter.cpu.value
    "limits.memory"                        = "${data.coder_parameter.memory.value}GiB"
    "security.nesting"                     = true
    "security.syscalls.intercept.mknod"    = true
    "security.syscalls.intercept.setxattr" = true
    "boot.autostart"                       = false
    "cloud-init.user-data"                 = <<-EOT
      #cloud-config
      packages: [curl, docker.io, sudo]
      users:
        - name: ${local.user}
          groups: [docker]
          sudo: ALL=(ALL) NOPASSWD:ALL
          shell: /bin/bash
      write_files:
        - path: /etc/systemd/system/coder-agent.service
          content: |
            [Unit]
            Description=Coder agent
            After=network-online.target
            Wants=network-online.target
            [Service]
            User=${local.user}
            EnvironmentFile=/opt/coder/environment
            ExecStart=/opt/coder/init
            Restart=always
            RestartSec=10
            [Install]
            WantedBy=multi-user.target
      runcmd:
        - systemctl enable --now coder-agent
    EOT
  }

  device {
    name = "root"
    type = "disk"
    properties = {
      path = "/"
      pool = var.pool
    }
  }
}

# Written at every start: each has a new token, and cloud-init reads its data once.
resource "incus_instance_file" "init" {
  count       = data.coder_workspace.me.start_count
  instance    = incus_instance.workspace.name
  target_path = "/opt/coder/init"
  content     = coder_agent.main[0].init_script
  mode        = "0755"

  create_directories = true
}

resource "incus_instance_file" "environment" {
  count       = data.coder_workspace.me.start_count
  instance    = incus_instance.workspace.name
  target_path = "/opt/coder/environment"
  content     = "CODER_AGENT_TOKEN=${coder_agent.main[0].token}\n"
  mode        = "0644"

  create_directories = true
}
