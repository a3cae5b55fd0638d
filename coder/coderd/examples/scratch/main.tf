terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
  }
}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

resource "coder_agent" "main" {
  arch = data.coder_provisioner.me.arch
  os   = data.coder_provisioner.me.os

  metadata {
    key          = "load"
    display_name = "Load average"
    interval     = 10
    timeout      = 5
    script       = "cut -d ' ' -f 1 /proc/loadavg"
  }
}

# Replace this with the machine your workspace needs. It must run the agent's
# init script with CODER_AGENT_TOKEN set to the agent's token.
resource "terraform_data" "machine" {
  count = data.coder_workspace.me.start_count
}
