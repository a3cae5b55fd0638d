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

variable "display_name" {
  type        = string
  default     = "Startup script"
  description = "Name of the script in the log"
}

variable "script" {
  type        = string
  description = "The shell script"
}

variable "start_blocks_login" {
  type        = bool
  default     = false
  description = "Let logins wait until the script has ended"
}

resource "coder_script" "startup" {
  agent_id           = var.agent_id
  display_name       = var.display_name
  icon               = "/icon/terminal.svg"
  run_on_start       = true
  start_blocks_login = var.start_blocks_login
  script             = var.script
}
