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

variable "name" {
  type        = string
  description = "Name of the variable, such as HTTPS_PROXY"

  validation {
    condition     = can(regex("^[A-Za-z_][A-Za-z0-9_]*$", var.name))
    error_message = "The name of an environment variable has letters, digits and underscores."
  }
}

variable "value" {
  type        = string
  description = "Value of the variable. Users of the template can read it."
}

resource "coder_env" "variable" {
  agent_id = var.agent_id
  name     = var.name
  value    = var.value
}
