terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}

variable "agent_id" {
  type        = string
  description = "Agent that the module belongs to"
}

variable "allow_email_change" {
  type        = bool
  default     = false
  description = "Ask each user for the address"
}

variable "allow_username_change" {
  type        = bool
  default     = true
  description = "Ask each user for the name"
}

data "coder_workspace_owner" "me" {}

data "coder_parameter" "user_email" {
  count        = var.allow_email_change ? 1 : 0
  name         = "user_email"
  display_name = "Git address"
  description  = "Address of the author of your commits. Empty stands for the address of your account."
  type         = "string"
  default      = ""
  mutable      = true
}

data "coder_parameter" "username" {
  count        = var.allow_username_change ? 1 : 0
  name         = "username"
  display_name = "Git name"
  description  = "Name of the author of your commits. Empty stands for the name of your account."
  type         = "string"
  default      = ""
  mutable      = true
}

locals {
  owner = data.coder_workspace_owner.me
  name  = coalesce(try(data.coder_parameter.username[0].value, ""), local.owner.full_name, local.owner.name)
  email = coalesce(try(data.coder_parameter.user_email[0].value, ""), local.owner.email)
}

resource "coder_env" "git_config" {
  for_each = {
    GIT_AUTHOR_NAME     = local.name
    GIT_AUTHOR_EMAIL    = local.email
    GIT_COMMITTER_NAME  = local.name
    GIT_COMMITTER_EMAIL = local.email
  }
  agent_id = var.agent_id
  name     = each.key
  value    = each.value
}
