terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}

variable "data_dir" {
  type        = string
  default     = "~/.local/share/coder-local-process"
  description = "Folder on the provisioner's machine that holds one folder per workspace."
}

variable "coder_binary" {
  type        = string
  default     = ""
  description = "The coder program the agent runs with; empty finds it on PATH."
}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

locals {
  folder = "${pathexpand(var.data_dir)}/${data.coder_workspace.me.id}"
}

resource "coder_agent" "main" {
  arch = data.coder_provisioner.me.arch
  os   = data.coder_provisioner.me.os

  env = {
    GIT_AUTHOR_NAME     = coalesce(data.coder_workspace_owner.me.full_name, data.coder_workspace_owner.me.name)
    GIT_AUTHOR_EMAIL    = data.coder_workspace_owner.me.email
    GIT_COMMITTER_NAME  = coalesce(data.coder_workspace_owner.me.full_name, data.coder_workspace_owner.me.name)
    GIT_COMMITTER_EMAIL = data.coder_workspace_owner.me.email
  }
}

# The workspace's folder outlives stops and starts; only delete removes it.
resource "terraform_data" "folder" {
  # What a destroy needs is kept in the state: provisioners that destroy may look at nothing else.
  input = {
    folder = local.folder
    remove = file("${path.module}/remove.sh")
  }

  provisioner "local-exec" {
    command = file("${path.module}/prepare.sh")
    environment = {
      FOLDER = local.folder
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = self.input.remove
    environment = {
      FOLDER = self.input.folder
    }
  }
}

# One agent process while the workspace is started.
resource "terraform_data" "agent" {
  count = data.coder_workspace.me.start_count

  # Every build makes a new token, and the old one is worth nothing then: start again with it.
  triggers_replace = [coder_agent.main.token]

  input = {
    folder = terraform_data.folder.output.folder
    stop   = file("${path.module}/stop.sh")
  }

  provisioner "local-exec" {
    command = file("${path.module}/start.sh")
    environment = {
      FOLDER            = local.folder
      CODER_BINARY      = var.coder_binary
      INIT_SCRIPT       = coder_agent.main.init_script
      CODER_AGENT_TOKEN = coder_agent.main.token
      CODER_AGENT_URL   = data.coder_workspace.me.access_url
    }
  }

  provisioner "local-exec" {
    when    = destroy
    command = self.input.stop
    environment = {
      FOLDER = self.input.folder
    }
  }
}

resource "coder_metadata" "agent" {
  count       = data.coder_workspace.me.start_count
  resource_id = terraform_data.agent[0].id

  item {
    key   = "folder"
    value = local.folder
  }
}
