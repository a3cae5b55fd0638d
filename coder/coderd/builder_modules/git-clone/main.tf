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

variable "base_dir" {
  type        = string
  default     = ""
  description = "Folder that the clone is put into. Empty stands for the home directory."
}

variable "branch_name" {
  type        = string
  default     = ""
  description = "Branch. Empty stands for the default branch of the repository."
}

variable "folder_name" {
  type        = string
  default     = ""
  description = "Name of the folder. Empty stands for the name of the repository."
}

variable "post_clone_script" {
  type        = string
  default     = null
  description = "Shell script that runs in the folder after the clone"
}

variable "url" {
  type        = string
  description = "Address of the repository, such as https://github.com/coder/coder"
}

locals {
  # A word of the shell in single quotes, with any text in it.
  after  = "'${replace(coalesce(var.post_clone_script, " "), "'", "'\"'\"'")}'"
  base   = "'${replace(var.base_dir, "'", "'\"'\"'")}'"
  branch = "'${replace(var.branch_name, "'", "'\"'\"'")}'"
  folder = "'${replace(var.folder_name, "'", "'\"'\"'")}'"
  url    = "'${replace(var.url, "'", "'\"'\"'")}'"
}

resource "coder_script" "git_clone" {
  agent_id           = var.agent_id
  display_name       = "Git Clone"
  icon               = "/icon/git.svg"
  run_on_start       = true
  start_blocks_login = true
  script             = <<-EOT
    #!/bin/sh
    set -eu
    url=${local.url}
    branch=${local.branch}
    base=${local.base}
    folder=${local.folder}
    after=${local.after}
    case $base in
      "") base=$HOME ;;
      "~") base=$HOME ;;
      "~/"*) base=$HOME/$${base#"~/"} ;;
    esac
    target=$base/$${folder:-$(basename -- "$url" .git)}
    if [ -e "$target" ] && [ -n "$(ls -A -- "$target")" ]; then
      echo "$target exists and is not empty: nothing is cloned."
      exit 0
    fi
    mkdir -p -- "$base"
    git clone $${branch:+--branch="$branch"} -- "$url" "$target"
    cd -- "$target"
    sh -c "$after"
  EOT
}
