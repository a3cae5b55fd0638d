terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    aws = {
      source = "hashicorp/aws"
    }
  }
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "region" {
  name         = "region"
  display_name = "Region"
  description  = "Where the machine runs"
  default      = "eu-central-1"
  mutable      = false

  dynamic "option" {
    for_each = {
      "eu-central-1"   = "Frankfurt"
      "eu-west-1"      = "Ireland"
      "us-east-1"      = "North Virginia"
      "us-west-2"      = "Oregon"
      "ap-southeast-1" = "Singapore"
      "ap-southeast-2" = "Sydney"
    }
    content {
      name  = option.value
      value = option.key
    }
  }
}

data "coder_parameter" "instance_type" {
  name         = "instance_type"
  display_name = "Size"
  default      = "t3.medium"
  mutable      = true

  option {
    name  = "2 cores, 2 GiB"
    value = "t3.small"
  }
  option {
    name  = "2 cores, 4 GiB"
    value = "t3.medium"
  }
  option {
    name  = "2 cores, 8 GiB"
    value = "t3.large"
  }
  option {
    name  = "4 cores, 16 GiB"
    value = "t3.xlarge"
  }
}

provider "aws" {
  region = data.coder_parameter.region.value
}

data "aws_ami" "ubuntu" {
  most_recent = true
  owners      = ["099720109477"] # Canonical

  filter {
    name   = "name"
    values = ["ubuntu/images/hvm-ssd-gp3/ubuntu-noble-24.04-amd64-server-*"]
  }
}

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
  zone = "${data.coder_parameter.region.value}a"
}

resource "aws_ebs_volume" "home" {
  availability_zone = local.zone
  size              = 20
  type              = "gp3"

  tags = {
    Name              = "coder-${data.coder_workspace.me.id}-home"
    Coder_Provisioned = "true"
  }

  lifecycle {
    ignore_changes = [tags]
  }
}

# Exists while the workspace runs: every start has a fresh machine, token and image. What is kept is the home disk.
resource "aws_instance" "workspace" {
  count             = data.coder_workspace.me.start_count
  ami               = data.aws_ami.ubuntu.id
  availability_zone = local.zone
  instance_type     = data.coder_parameter.instance_type.value

  user_data = <<-EOT
    #cloud-config
    users:
      - name: ${local.user}
        sudo: ALL=(ALL) NOPASSWD:ALL
        shell: /bin/bash
        no_create_home: true
    write_files:
      - path: /opt/coder/init
        permissions: "0755"
        encoding: b64
        content: ${base64encode(coder_agent.main.init_script)}
      - path: /opt/coder/home
        permissions: "0755"
        content: |
          #!/bin/sh
          # The home disk is attached once the machine runs.
          until [ -b /dev/nvme1n1 ]; do sleep 1; done
          blkid /dev/nvme1n1 || mkfs.ext4 -L coder-home /dev/nvme1n1
          mount /dev/nvme1n1 /home
          mkdir -p /home/${local.user}
          chown ${local.user}:${local.user} /home/${local.user}
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
      - /opt/coder/home
      - systemctl enable --now coder-agent
  EOT

  tags = {
    Name              = "coder-${data.coder_workspace_owner.me.name}-${data.coder_workspace.me.name}"
    Coder_Provisioned = "true"
  }
}

resource "aws_volume_attachment" "home" {
  count       = data.coder_workspace.me.start_count
  device_name = "/dev/sdf"
  volume_id   = aws_ebs_volume.home.id
  instance_id = aws_instance.workspace[0].id
}

resource "coder_metadata" "workspace" {
  count       = data.coder_workspace.me.start_count
  resource_id = aws_instance.workspace[0].id

  item {
    key   = "region"
    value = data.coder_parameter.region.value
  }
  item {
    key   = "size"
    value = aws_instance.workspace[0].instance_type
  }
}
