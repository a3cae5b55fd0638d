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

data "aws_ami" "windows" {
  most_recent = true
  owners      = ["amazon"]

  filter {
    name   = "name"
    values = ["Windows_Server-2022-English-Full-Base-*"]
  }
}

resource "coder_agent" "main" {
  count = data.coder_workspace.me.start_count
  os    = "windows"
  arch  = "amd64"
}

resource "aws_instance" "workspace" {
  ami           = data.aws_ami.windows.id
  instance_type = data.coder_parameter.instance_type.value

  root_block_device {
    volume_size = 60
    volume_type = "gp3"
  }

  # `persist`: run at every boot, as each start has a new token.
  user_data_replace_on_change = false
  user_data                   = <<-EOT
    <powershell>
    $env:CODER_AGENT_TOKEN = "${try(coder_agent.main[0].token, "")}"
    ${try(coder_agent.main[0].init_script, "")}
    </powershell>
    <persist>true</persist>
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
