terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    azurerm = {
      source = "hashicorp/azurerm"
    }
    tls = {
      source = "hashicorp/tls"
    }
  }
}

provider "azurerm" {
  features {}
}

data "coder_workspace" "me" {}
data "coder_workspace_owner" "me" {}

data "coder_parameter" "location" {
  name         = "location"
  display_name = "Location"
  description  = "Where the machine runs"
  default      = "germanywestcentral"
  mutable      = false

  dynamic "option" {
    for_each = {
      "germanywestcentral" = "Frankfurt"
      "northeurope"        = "Ireland"
      "eastus"             = "Virginia"
      "westus3"            = "Arizona"
      "southeastasia"      = "Singapore"
    }
    content {
      name  = option.value
      value = option.key
    }
  }
}

data "coder_parameter" "size" {
  name         = "size"
  display_name = "Size"
  default      = "Standard_B2ms"
  mutable      = true

  option {
    name  = "2 cores, 4 GiB"
    value = "Standard_B2s"
  }
  option {
    name  = "2 cores, 8 GiB"
    value = "Standard_B2ms"
  }
  option {
    name  = "4 cores, 16 GiB"
    value = "Standard_B4ms"
  }
}

data "coder_parameter" "home_size" {
  name         = "home_size"
  display_name = "Home disk (GiB)"
  type         = "number"
  default      = 20
  mutable      = false
  validation {
    min = 4
    max = 1024
  }
}

resource "coder_agent" "main" {
  os   = "linux"
  arch = "amd64"

  metadata {
    key          = "cpu"
    display_name = "CPU"
    script       = "coder stat cpu"
    interval     = 10
    timeout      = 1
  }
}

locals {
  name = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
  user = lower(data.coder_workspace_owner.me.name)
}

# Azure wants a key for the machine's administrator; nobody logs in with it.
resource "tls_private_key" "unused" {
  algorithm = "RSA"
}

resource "azurerm_resource_group" "workspace" {
  name     = local.name
  location = data.coder_parameter.location.value

  tags = {
    Coder_Provisioned = "true"
  }
}

resource "azurerm_virtual_network" "workspace" {
  name                = "network"
  address_space       = ["10.0.0.0/24"]
  location            = azurerm_resource_group.workspace.location
  resource_group_name = azurerm_resource_group.workspace.name
}

resource "azurerm_subnet" "workspace" {
  name                 = "machines"
  address_prefixes     = ["10.0.0.0/27"]
  virtual_network_name = azurerm_virtual_network.workspace.name
  resource_group_name  = azurerm_resource_group.workspace.name
}

# The way out; nothing comes in.
resource "azurerm_public_ip" "workspace" {
  name                = "out"
  allocation_method   = "Static"
  sku                 = "Standard"
  location            = azurerm_resource_group.workspace.location
  resource_group_name = azurerm_resource_group.workspace.name
}

resource "azurerm_network_interface" "workspace" {
  name                = "nic"
  location            = azurerm_resource_group.workspace.location
  resource_group_name = azurerm_resource_group.workspace.name

  ip_configuration {
    name                          = "internal"
    subnet_id                     = azurerm_subnet.workspace.id
    private_ip_address_allocation = "Dynamic"
    public_ip_address_id          = azurerm_public_ip.workspace.id
  }
}

resource "azurerm_managed_disk" "home" {
  name                 = "home"
  create_option        = "Empty"
  storage_account_type = "StandardSSD_LRS"
  disk_size_gb         = data.coder_parameter.home_size.value
  location             = azurerm_resource_group.workspace.location
  resource_group_name  = azurerm_resource_group.workspace.name
}

resource "azurerm_linux_virtual_machine" "workspace" {
  count                 = data.coder_workspace.me.start_count
  name                  = "machine"
  computer_name         = "workspace"
  size                  = data.coder_parameter.size.value
  location              = azurerm_resource_group.workspace.location
  resource_group_name   = azurerm_resource_group.workspace.name
  network_interface_ids = [azurerm_network_interface.workspace.id]
  admin_username        = "azureadmin"

  admin_ssh_key {
    username   = "azureadmin"
    public_key = tls_private_key.unused.public_key_openssh
  }

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "StandardSSD_LRS"
  }

  source_image_reference {
    publisher = "Canonical"
    offer     = "ubuntu-24_04-lts"
    sku       = "server"
    version   = "latest"
  }

  custom_data = base64encode(<<-EOT
    #cloud-config
    users:
      - name: ${local.user}
        sudo: ALL=(ALL) NOPASSWD:ALL
        shell: /bin/bash
        no_create_home: true
    write_files:
      - path: /opt/coder/init
        permissions: "0755"
        encoding: b64
        content: ${base64encode(coder_agent.main.init_script)}
      - path: /opt/coder/home
        permissions: "0755"
        content: |
          #!/bin/sh
          # The home disk is attached once the machine runs.
          disk=/dev/disk/azure/scsi1/lun10
          until [ -b "$disk" ]; do sleep 1; done
          blkid "$disk" || mkfs.ext4 -L coder-home "$disk"
          mount "$disk" /home
          mkdir -p /home/${local.user}
          chown ${local.user}:${local.user} /home/${local.user}
      - path: /etc/systemd/system/coder-agent.service
        content: |
          [Unit]
          Description=Coder agent
          After=network-online.target
          Wants=network-online.target
          [Service]
          User=${local.user}
          Environment=CODER_AGENT_TOKEN=${coder_agent.main.token}
          ExecStart=/opt/coder/init
          Restart=always
          RestartSec=10
          [Install]
          WantedBy=multi-user.target
    runcmd:
      - /opt/coder/home
      - systemctl enable --now coder-agent
  EOT
  )
}

resource "azurerm_virtual_machine_data_disk_attachment" "home" {
  count              = data.coder_workspace.me.start_count
  managed_disk_id    = azurerm_managed_disk.home.id
  virtual_machine_id = azurerm_linux_virtual_machine.workspace[0].id
  lun                = 10
  caching            = "ReadWrite"
}

resource "coder_metadata" "workspace" {
  count       = data.coder_workspace.me.start_count
  resource_id = azurerm_linux_virtual_machine.workspace[0].id

  item {
    key   = "location"
    value = azurerm_resource_group.workspace.location
  }
  item {
    key   = "size"
    value = data.coder_parameter.size.value
  }
}
