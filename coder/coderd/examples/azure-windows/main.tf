terraform {
  required_providers {
    coder = {
      source = "coder/coder"
    }
    azurerm = {
      source = "hashicorp/azurerm"
    }
    random = {
      source = "hashicorp/random"
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
    name  = "2 cores, 8 GiB"
    value = "Standard_B2ms"
  }
  option {
    name  = "4 cores, 16 GiB"
    value = "Standard_B4ms"
  }
}

data "coder_parameter" "disk_size" {
  name         = "disk_size"
  display_name = "Disk that stays (GiB)"
  type         = "number"
  default      = 64
  mutable      = false
  validation {
    min = 4
    max = 1024
  }
}

resource "coder_agent" "main" {
  os   = "windows"
  arch = "amd64"
  dir  = "F:/"
}

locals {
  name = "coder-${substr(data.coder_workspace.me.id, 0, 18)}"
}

# Azure wants a password for the machine's administrator; nobody logs in with it.
resource "random_password" "unused" {
  length      = 32
  min_lower   = 1
  min_upper   = 1
  min_numeric = 1
  min_special = 1
}

resource "azurerm_resource_group" "workspace" {
  name     = local.name
  location = data.coder_parameter.location.value

  tags = {
    Coder_Provisioned = "true"
    Coder_Owner       = data.coder_workspace_owner.me.name
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
  disk_size_gb         = data.coder_parameter.disk_size.value
  location             = azurerm_resource_group.workspace.location
  resource_group_name  = azurerm_resource_group.workspace.name
}

resource "azurerm_windows_virtual_machine" "workspace" {
  count                 = data.coder_workspace.me.start_count
  name                  = "machine"
  computer_name         = "workspace"
  size                  = data.coder_parameter.size.value
  location              = azurerm_resource_group.workspace.location
  resource_group_name   = azurerm_resource_group.workspace.name
  network_interface_ids = [azurerm_network_interface.workspace.id]
  admin_username        = "azureadmin"
  admin_password        = random_password.unused.result

  os_disk {
    caching              = "ReadWrite"
    storage_account_type = "StandardSSD_LRS"
  }

  source_image_reference {
    publisher = "MicrosoftWindowsServer"
    offer     = "WindowsServer"
    sku       = "2022-datacenter-azure-edition"
    version   = "latest"
  }

  # Windows only puts this into a file; the extension below runs it. The agent's script travels as base64, because it has
  # quotes and dollars of its own.
  custom_data = base64encode(<<-EOT
    $ErrorActionPreference = "Stop"

    $disk = Get-Disk | Where-Object { $_.Location -like "*LUN 10*" }
    if ($disk.IsOffline) { $disk | Set-Disk -IsOffline $false }
    if ($disk.PartitionStyle -eq "RAW") {
      $disk | Initialize-Disk -PartitionStyle GPT -PassThru |
        New-Partition -UseMaximumSize -DriveLetter F |
        Format-Volume -FileSystem NTFS -NewFileSystemLabel "coder-home" -Confirm:$false
    } else {
      $partition = $disk | Get-Partition | Where-Object { $_.Type -eq "Basic" }
      if ($partition.DriveLetter -ne "F") { $partition | Set-Partition -NewDriveLetter F }
    }

    $script = "C:\AzureData\coder-agent.ps1"
    $text = [Text.Encoding]::UTF8.GetString([Convert]::FromBase64String("${base64encode(coder_agent.main.init_script)}"))
    Set-Content -Path $script -Value "`$env:CODER_AGENT_TOKEN = `"${coder_agent.main.token}`"`r`n$text"
    icacls $script /inheritance:r /grant "SYSTEM:(F)" "Administrators:(F)"

    Register-ScheduledTask -TaskName "coder-agent" -Force `
      -Action (New-ScheduledTaskAction -Execute "powershell.exe" -Argument "-NoProfile -ExecutionPolicy Bypass -File $script") `
      -Trigger (New-ScheduledTaskTrigger -AtStartup) `
      -Principal (New-ScheduledTaskPrincipal -UserId "SYSTEM" -RunLevel Highest) `
      -Settings (New-ScheduledTaskSettingsSet -ExecutionTimeLimit 0 -RestartCount 99 -RestartInterval (New-TimeSpan -Minutes 1))
    Start-ScheduledTask -TaskName "coder-agent"
  EOT
  )
}

resource "azurerm_virtual_machine_data_disk_attachment" "home" {
  count              = data.coder_workspace.me.start_count
  managed_disk_id    = azurerm_managed_disk.home.id
  virtual_machine_id = azurerm_windows_virtual_machine.workspace[0].id
  lun                = 10
  caching            = "ReadWrite"
}

resource "azurerm_virtual_machine_extension" "setup" {
  count                = data.coder_workspace.me.start_count
  name                 = "setup"
  virtual_machine_id   = azurerm_windows_virtual_machine.workspace[0].id
  publisher            = "Microsoft.Compute"
  type                 = "CustomScriptExtension"
  type_handler_version = "1.10"

  protected_settings = jsonencode({
    commandToExecute = join(" ", [
      "powershell.exe -NoProfile -ExecutionPolicy Bypass -Command",
      "\"Copy-Item C:\\AzureData\\CustomData.bin C:\\AzureData\\setup.ps1; & C:\\AzureData\\setup.ps1\"",
    ])
  })

  # The script looks for the disk.
  depends_on = [azurerm_virtual_machine_data_disk_attachment.home]
}

resource "coder_metadata" "workspace" {
  count       = data.coder_workspace.me.start_count
  resource_id = azurerm_windows_virtual_machine.workspace[0].id

  item {
    key   = "location"
    value = azurerm_resource_group.workspace.location
  }
  item {
    key   = "size"
    value = data.coder_parameter.size.value
  }
}
