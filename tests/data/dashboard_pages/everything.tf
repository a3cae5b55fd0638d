# Added to the bundled local-process template: every form a parameter can have, applications, resources with facts.
data "coder_parameter" "input" {
  name         = "a_input"
  display_name = "Input"
  type         = "string"
  default      = "text"
  mutable      = true
}

data "coder_parameter" "textarea" {
  name         = "a_textarea"
  display_name = "Textarea"
  type         = "string"
  form_type    = "textarea"
  default      = "lines"
  mutable      = true
}

data "coder_parameter" "slider" {
  name         = "a_slider"
  display_name = "Slider"
  type         = "number"
  form_type    = "slider"
  default      = "4"
  mutable      = true
  validation {
    min = 1
    max = 9
  }
}

data "coder_parameter" "dropdown" {
  name         = "a_dropdown"
  display_name = "Dropdown"
  type         = "string"
  form_type    = "dropdown"
  default      = "s"
  mutable      = true
  option {
    name  = "Small"
    value = "s"
  }
  option {
    name  = "Big"
    value = "b"
  }
}

data "coder_parameter" "multi_select" {
  name         = "a_multi_select"
  display_name = "Several"
  type         = "list(string)"
  form_type    = "multi-select"
  default      = jsonencode(["go"])
  mutable      = true
  option {
    name  = "Go"
    value = "go"
  }
  option {
    name  = "Rust"
    value = "rust"
  }
}

data "coder_parameter" "tag_select" {
  name         = "a_tag_select"
  display_name = "Words"
  type         = "list(string)"
  form_type    = "tag-select"
  default      = jsonencode([])
  mutable      = true
}

data "coder_parameter" "radio" {
  name         = "a_radio"
  display_name = "Radio"
  type         = "string"
  form_type    = "radio"
  default      = "l"
  mutable      = true
  option {
    name  = "Left"
    value = "l"
  }
  option {
    name  = "Right"
    value = "r"
  }
}

data "coder_parameter" "checkbox" {
  name         = "a_checkbox"
  display_name = "Checkbox"
  type         = "bool"
  form_type    = "checkbox"
  default      = "false"
  mutable      = true
}

data "coder_parameter" "switch" {
  name         = "a_switch"
  display_name = "Switch"
  type         = "bool"
  form_type    = "switch"
  default      = "false"
  mutable      = true
}

data "coder_parameter" "option" {
  name         = "an_option"
  display_name = "Build option"
  type         = "bool"
  form_type    = "checkbox"
  default      = "false"
  mutable      = true
  ephemeral    = true
}

data "coder_workspace_preset" "large" {
  name = "Large"
  parameters = {
    a_slider = "9"
  }
}

resource "coder_app" "page" {
  agent_id     = coder_agent.main.id
  slug         = "page"
  display_name = "Web page"
  url          = "http://localhost:1"
}

resource "coder_app" "processes" {
  agent_id     = coder_agent.main.id
  slug         = "processes"
  display_name = "Processes"
  command      = "ps"
}

resource "coder_app" "grouped" {
  agent_id     = coder_agent.main.id
  slug         = "grouped"
  display_name = "One of several"
  group        = "Tools"
  url          = "http://localhost:2"
}

resource "coder_ai_task" "chat" {
  count  = data.coder_workspace.me.start_count
  app_id = coder_app.page.id
}

resource "terraform_data" "disk" {}

resource "coder_metadata" "disk" {
  resource_id = terraform_data.disk.id
  item {
    key   = "size"
    value = "20 GiB"
  }
  item {
    key       = "password"
    value     = "hunter2"
    sensitive = true
  }
}

resource "terraform_data" "unseen" {}

resource "coder_metadata" "unseen" {
  resource_id = terraform_data.unseen.id
  hide        = true
}
