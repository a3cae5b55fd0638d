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

variable "builder_image" {
  type        = string
  default     = "ghcr.io/coder/envbuilder:latest"
  description = "The builder; pin a version before others depend on the template"
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
  default      = "t3.large"
  mutable      = false

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

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "Address of a Git repository with a devcontainer.json"
  default      = "https://github.com/coder/envbuilder-starter-devcontainer"
  mutable      = true
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
  count = data.coder_workspace.me.start_count
  os    = "linux"
  arch  = "amd64"
}

locals {
  # A stopped machine has no agent; what it would run is not there either.
  environment = join("\n", [
    "CODER_AGENT_TOKEN=${try(coder_agent.main[0].token, "")}",
    "CODER_AGENT_URL=${data.coder_workspace.me.access_url}",
    "ENVBUILDER_GIT_URL=${data.coder_parameter.repository.value}",
    "ENVBUILDER_INIT_SCRIPT=sh /opt/coder/init",
    "ENVBUILDER_FALLBACK_IMAGE=codercom/enterprise-base:ubuntu",
  ])
}

resource "aws_instance" "workspace" {
  ami           = data.aws_ami.ubuntu.id
  instance_type = data.coder_parameter.instance_type.value

  root_block_device {
    volume_size = 40
    volume_type = "gp3"
  }

  # Read at every boot, not at the first alone: each start has a new token.
  user_data_replace_on_change = false
  user_data                   = <<-EOT
    #cloud-config
    packages: [docker.io]
    cloud_final_modules:
      - [package-update-upgrade-install, once]
      - [write-files, always]
      - [scripts-user, always]
    write_files:
      - path: /opt/coder/init
        permissions: "0755"
        encoding: b64
        content: ${base64encode(try(coder_agent.main[0].init_script, ""))}
      - path: /opt/coder/environment
        permissions: "0600"
        encoding: b64
        content: ${base64encode(local.environment)}
    runcmd:
      - docker rm --force workspace || true
      - >-
        docker run --detach --name workspace --env-file /opt/coder/environment
        --volume /opt/coder/init:/opt/coder/init:ro --volume /workspaces:/workspaces ${var.builder_image}
  EOT

  tags = {
    Name              = "coder-${data.coder_workspace_owner.me.name}-${data.coder_workspace.me.name}"
    Coder_Provisioned = "true"
  }

  lifecycle {
    ignore_changes = [ami]
  }
}

resource "aws_ec2_instance_state" "workspace" {
  instance_id = aws_instance.workspace.id
  state       = data.coder_workspace.me.start_count == 1 ? "running" : "stopped"
}

resource "coder_metadata" "workspace" {
  resource_id = aws_instance.workspace.id

  item {
    key   = "region"
    value = data.coder_parameter.region.value
  }
  item {
    key   = "size"
    value = aws_instance.workspace.instance_type
  }
}
