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
  default     = "Web application"
  description = "Text of the button"
}

variable "port" {
  type        = number
  description = "Port on which the program listens"
}

variable "share" {
  type        = string
  default     = "owner"
  description = "Who may open it: owner, organization, authenticated or public"

  validation {
    condition     = contains(["owner", "organization", "authenticated", "public"], var.share)
    error_message = "Who may open it is one of owner, organization, authenticated and public."
  }
}

variable "subdomain" {
  type        = bool
  default     = false
  description = "Serve it on a host name of its own, which needs a wildcard access URL"
}

resource "coder_app" "web_app" {
  agent_id     = var.agent_id
  slug         = "web-app"
  display_name = var.display_name
  icon         = "/icon/widgets.svg"
  url          = "http://localhost:${var.port}/"
  share        = var.share
  subdomain    = var.subdomain

  healthcheck {
    url       = "http://localhost:${var.port}/"
    interval  = 5
    threshold = 6
  }
}
