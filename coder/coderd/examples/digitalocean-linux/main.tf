terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    digitalocean = {
      source = "digitalocean/digitalocean"
    }
  }
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "region" {
  name         = "region"
  display_name = "Region"
  default      = "fra1"
  mutable      = false

  dynamic "option" {
    for_each = {
      fra1 = "Frankfurt"
      ams3 = "Amsterdam"
      lon1 = "London"
      nyc3 = "New York"
      sfo3 = "San Francisco"
      sgp1 = "Singapore"
    }
    content {
      name  = option.value
      value = option.key
    }
  }
}

data "coder_parameter" "size" {
  name         = "size"
  display_name = "Size"
  default      = "s-2vcpu-4gb"
  mutable      = true

  option {
    name  = "1 core, 2 GiB"
    value = "s-1vcpu-2gb"
  }
  option {
    name  = "2 cores, 4 GiB"
    value = "s-2vcpu-4gb"
  }
  option {
    name  = "4 cores, 8 GiB"
    value = "s-4vcpu-8gb"
  }
}

provider "digitalocean" {}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"

  metadata {
    key          = "cpu"
    display_name = "CPU"
    script       = "coder stat cpu"
    interval     = 10
    timeout      = 1
  }
}

locals {
  user = lower(data.coder_workspace_owner.me.name)
}

resource "digitalocean_volume" "home" {
  region                   = data.coder_parameter.region.value
  name                     = "coder-${data.coder_workspace.me.id}-home"
  size                     = 20
  initial_filesystem_type  = "ext4"
  initial_filesystem_label = "coder-home"

  lifecycle {
    ignore_changes = all
  }
}

resource "digitalocean_droplet" "workspace" {
  count      = data.coder_workspace.me.start_count
  region     = data.coder_parameter.region.value
  name       = "coder-${data.coder_workspace_owner.me.name}-${data.coder_workspace.me.name}"
  image      = "ubuntu-24-04-x64"
  size       = data.coder_parameter.size.value
  volume_ids = [digitalocean_volume.home.id]

  user_data = <<-EOT
    #cloud-config
    users:
      - name: ${local.user}
        sudo: ALL=(ALL) NOPASSWD:ALL
        shell: /bin/bash
        no_create_home: true
    mounts:
      - [LABEL=coder-home, /home, auto, "defaults,nofail"]
    write_files:
      - path: /opt/coder/init
        permissions: "0755"
        encoding: b64
        content: ${base64encode(coder_agent.main.init_script)}
      - path: /etc/systemd/system/coder-agent.service
        content: |
          [Unit]
          Description=Coder agent
          After=network-online.target
          Wants=network-online.target
          [Service]
          User=${local.user}
          Environment=CODER_AGENT_TOKEN=${coder_agent.main.token}
          ExecStart=/opt/coder/init
          Restart=always
          RestartSec=10
          [Install]
          WantedBy=multi-user.target
    runcmd:
      - mkdir -p /home/${local.user}
      - chown ${local.user}:${local.user} /home/${local.user}
      - systemctl enable --now coder-agent
  EOT
}
