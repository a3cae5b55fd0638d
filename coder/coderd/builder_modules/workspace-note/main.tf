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

variable "label" {
  type        = string
  default     = "Note"
  description = "Label of the note"
}

variable "text" {
  type        = string
  description = "Text of the note, such as who helps with this template"
}

resource "terraform_data" "note" {
  input = var.agent_id
}

resource "coder_metadata" "note" {
  resource_id = terraform_data.note.id

  item {
    key   = var.label
    value = var.text
  }
}
