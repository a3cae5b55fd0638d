terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    docker = {
      source = "kreuzwerker/docker"
    }
  }
}

provider "docker" {}

data "coder_provisioner" "me" {}
data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "languages" {
  name         = "languages"
  display_name = "Languages"
  description  = "Installed at the first start"
  type         = "list(string)"
  form_type    = "multi-select"
  default      = jsonencode(["python"])
  mutable      = true
  order        = 1

  option {
    name  = "Python"
    value = "python"
  }
  option {
    name  = "Go"
    value = "go"
  }
  option {
    name  = "Node.js"
    value = "node"
  }
  option {
    name  = "Java"
    value = "java"
  }
}

data "coder_parameter" "editor" {
  name         = "editor"
  display_name = "Editor in the browser"
  type         = "bool"
  form_type    = "switch"
  default      = true
  mutable      = true
  order        = 2
}

data "coder_parameter" "repository" {
  name         = "repository"
  display_name = "Repository"
  description  = "Cloned into the home directory; may be empty"
  default      = ""
  mutable      = true
  order        = 3
}

data "coder_workspace_preset" "web" {
  name = "Web"
  parameters = {
    languages = jsonencode(["node"])
    editor    = true
  }
}

data "coder_workspace_preset" "data" {
  name = "Data"
  parameters = {
    languages = jsonencode(["python"])
    editor    = true
  }
}

locals {
  packages = {
    python = "python3 python3-pip python3-venv"
    go     = "golang"
    node   = "nodejs npm"
    java   = "default-jdk"
  }
  chosen = join(" ", [for name in jsondecode(data.coder_parameter.languages.value) : local.packages[name]])
}

resource "coder_agent" "main" {
  arch = data.coder_provisioner.me.arch
  os   = "linux"

  display_apps {
    vscode                 = true
    web_terminal           = true
    ssh_helper             = true
    port_forwarding_helper = true
    vscode_insiders        = false
  }

  metadata {
    key          = "cpu"
    display_name = "CPU"
    script       = "coder stat cpu"
    interval     = 10
    timeout      = 1
  }

  metadata {
    key          = "memory"
    display_name = "Memory"
    script       = "coder stat mem"
    interval     = 10
    timeout      = 1
  }
}

resource "coder_script" "prepare" {
  agent_id           = coder_agent.main.id
  display_name       = "Prepare"
  icon               = "/icon/coder.svg"
  run_on_start       = true
  start_blocks_login = true
  script             = <<-EOT
    set -eu
    [ -e ~/.profile ] || cp -rT /etc/skel ~
    chosen="${local.chosen}"
    if [ -n "$chosen" ]; then
      sudo apt-get update -q
      sudo DEBIAN_FRONTEND=noninteractive apt-get install -q -y $chosen
    fi
    repository="${data.coder_parameter.repository.value}"
    if [ -n "$repository" ]; then
      folder=~/$(basename "$repository" .git)
      [ -d "$folder" ] || git clone "$repository" "$folder"
    fi
  EOT
}

resource "coder_script" "editor" {
  count        = data.coder_parameter.editor.value ? data.coder_workspace.me.start_count : 0
  agent_id     = coder_agent.main.id
  display_name = "Editor"
  icon         = "/icon/code.svg"
  run_on_start = true
  script       = <<-EOT
    set -eu
    [ -x ~/.local/bin/code-server ] || curl -fsSL https://code-server.dev/install.sh | sh -s -- --method=standalone
    nohup ~/.local/bin/code-server --auth none --port 13337 >/tmp/code-server.log 2>&1 &
  EOT
}

resource "coder_app" "editor" {
  count        = data.coder_parameter.editor.value ? data.coder_workspace.me.start_count : 0
  agent_id     = coder_agent.main.id
  slug         = "editor"
  display_name = "Editor"
  icon         = "/icon/code.svg"
  url          = "http://localhost:13337/"
  share        = "owner"

  healthcheck {
    url       = "http://localhost:13337/healthz"
    interval  = 5
    threshold = 6
  }
}

resource "docker_volume" "home" {
  name = "coder-${data.coder_workspace.me.id}-home"

  # The name carries the workspace's id: a rename must not make a new, empty home.
  lifecycle {
    ignore_changes = all
  }
}

resource "docker_container" "workspace" {
  count    = data.coder_workspace.me.start_count
  name     = "coder-${data.coder_workspace_owner.me.name}-${lower(data.coder_workspace.me.name)}"
  hostname = data.coder_workspace.me.name
  image    = "codercom/enterprise-base:ubuntu"

  entrypoint = ["sh", "-c", replace(coder_agent.main.init_script, "/localhost|127\\.0\\.0\\.1/", "host.docker.internal")]
  env        = ["CODER_AGENT_TOKEN=${coder_agent.main.token}"]

  host {
    host = "host.docker.internal"
    ip   = "host-gateway"
  }

  volumes {
    container_path = "/home/coder"
    volume_name    = docker_volume.home.name
  }
}
