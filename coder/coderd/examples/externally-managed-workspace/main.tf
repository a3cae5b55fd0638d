terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "agent_os" {
  name         = "agent_os"
  display_name = "Operating system"
  description  = "Operating system of the machine you will attach."
  type         = "string"
  default      = "linux"
  mutable      = true
  order        = 1

  option {
    name  = "Linux"
    value = "linux"
  }
  option {
    name  = "Windows"
    value = "windows"
  }
  option {
    name  = "macOS"
    value = "darwin"
  }
}

data "coder_parameter" "agent_arch" {
  name         = "agent_arch"
  display_name = "Architecture"
  description  = "Processor architecture of the machine you will attach."
  type         = "string"
  default      = "amd64"
  mutable      = true
  order        = 2

  # 32-bit ARM has an agent for Linux only.
  dynamic "option" {
    for_each = data.coder_parameter.agent_os.value == "linux" ? ["amd64", "arm64", "armv7"] : ["amd64", "arm64"]
    content {
      name  = option.value
      value = option.value
    }
  }
}

resource "coder_agent" "main" {
  os   = data.coder_parameter.agent_os.value
  arch = data.coder_parameter.agent_arch.value
}

# Tells Coder that somebody else runs the machine this agent lives on.
resource "coder_external_agent" "main" {
  agent_id = coder_agent.main.id
}
