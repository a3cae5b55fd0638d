# Added to the bundled local-process template: what a form asks depends on what is chosen in it, a preset chooses it, an
# account elsewhere is needed. APP_PORT and LAB_PORT: where applications listen on this machine.
data "coder_external_auth" "desk" {
  id = "desk"
}

data "coder_parameter" "size" {
  name         = "size"
  display_name = "Size"
  type         = "string"
  form_type    = "radio"
  default      = "small"
  mutable      = true
  option {
    name  = "Small"
    value = "small"
  }
  option {
    name  = "Custom"
    value = "custom"
  }
}

data "coder_parameter" "cores" {
  count        = data.coder_parameter.size.value == "custom" ? 1 : 0
  name         = "cores"
  display_name = "Cores"
  type         = "number"
  default      = "2"
  mutable      = true
  validation {
    min = 1
    max = 8
  }
}

data "coder_workspace_preset" "roomy" {
  name = "Roomy"
  parameters = {
    size  = "custom"
    cores = "6"
  }
}

variable "greeting" {
  type        = string
  description = "What the first page says."
}

resource "coder_app" "page" {
  agent_id     = coder_agent.main.id
  slug         = "page"
  display_name = "Page by path"
  url          = "http://localhost:APP_PORT/echo"
}

resource "coder_app" "own" {
  agent_id     = coder_agent.main.id
  slug         = "own"
  display_name = "Page by host"
  url          = "http://localhost:APP_PORT/echo"
  subdomain    = true
}

# It has to know where it is: by path, an application's own links are below that.
resource "coder_app" "lab" {
  agent_id     = coder_agent.main.id
  slug         = "lab"
  display_name = "Notebooks"
  url          = "http://localhost:LAB_PORT/@ana/box.main/apps/lab"
}

resource "terraform_data" "greeting" {
  input = var.greeting
}

resource "coder_metadata" "greeting" {
  resource_id = terraform_data.greeting.id
  item {
    key   = "greeting"
    value = var.greeting
  }
}
