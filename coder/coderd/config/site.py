"""Settings: values for clients, and the site as a whole."""

from __future__ import annotations

from dataclasses import dataclass

from coder.base.json_types import Json
from coder.coderd.config.groups import CLIENT, GENERAL, TEMPLATE_BUILDER
from coder.coderd.config.setting import concern, setting


@concern(CLIENT)
@dataclass(frozen=True, kw_only=True)
class ClientSettings:
    """Values for clients."""

    ssh_hostname_prefix: str = setting(
        "coder.",
        "SSH Host Prefix",
        "Prefix of host names in SSH configurations.",
        yaml="sshHostnamePrefix",
        path="config_ssh.DeploymentName",
        hidden=True,
        instead=("workspace-hostname-suffix",),
    )
    workspace_hostname_suffix: str = setting(
        "coder",
        "Workspace Hostname Suffix",
        "Suffix of host names in SSH configurations.",
        yaml="workspaceHostnameSuffix",
        path="workspace_hostname_suffix",
    )
    ssh_config_options: tuple[str, ...] = setting(
        (),
        "SSH Config Options",
        "Options written to users' SSH configurations (key=value).",
        yaml="sshConfigOptions",
        path="config_ssh.SSHConfigOptions",
    )
    ssh_keygen_algorithm: str = setting(
        "ed25519",
        "SSH Keygen Algorithm",
        "Algorithm of generated Git SSH keys: ed25519, ecdsa or rsa4096.",
        group=GENERAL,
        yaml="sshKeygenAlgorithm",
        path="ssh_keygen_algorithm",
    )
    web_terminal_renderer: str = setting(
        "canvas",
        "Web Terminal Renderer",
        "Renderer of the web terminal: the page (dom; canvas is the same) or the graphics card (webgl).",
        yaml="webTerminalRenderer",
        path="web_terminal_renderer",
        choices=("canvas", "webgl", "dom"),
    )
    hide_ai_tasks: bool = setting(
        False, "Hide AI Tasks", "Hide the Tasks page of the dashboard.", yaml="hideAITasks", shown="false"
    )
    cli_upgrade_message: str = setting(
        "",
        "CLI Upgrade Message",
        "Upgrade message of a command line whose version differs from the server's.",
        yaml="cliUpgradeMessage",
        path="cli_upgrade_message?",
    )


@concern(TEMPLATE_BUILDER)
@dataclass(frozen=True, kw_only=True)
class TemplateBuilderSettings:
    """The template builder."""

    disable_template_builder: bool = setting(
        False,
        "Disable Template Builder",
        "Remove the template builder from the dashboard and refuse its API.",
        yaml="disabled",
        path="template_builder.disabled?",
    )
    template_builder_registry_url: str = setting(
        "",
        "Template Builder Registry URL",
        "Host of a registry that composed templates load their modules from; without it, templates contain them.",
        yaml="registryURL",
        path="template_builder.registry_url",
    )


@concern(GENERAL)
@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """The site as a whole."""

    experiments: tuple[str, ...] = setting(
        (),
        "Experiments",
        "Experiments to turn on, separated by commas.",
        yaml="experiments",
        path="experiments?",
        proxies=True,
    )
    site_dir: str = setting("", "Site Dir", "Folder of another dashboard to serve.", hidden=True)
    swagger_enable: bool = setting(
        False,
        "Enable swagger endpoint",
        "Serve the description of the API at /swagger, as a page to read and as JSON.",
        yaml="enableSwagger",
        path="swagger.enable",
    )
    terms_of_service_url: str = setting(
        "",
        "Terms of Service URL",
        "URL of terms of service, linked from the sign-in page.",
        yaml="termsOfServiceURL",
        path="terms_of_service_url?",
    )
    support_links: Json = setting(
        "",
        "Support Links",
        "Links of the dashboard's help menu, as a YAML or JSON list with name, target and icon.",
        yaml="supportLinks",
        path="support.links",
    )
    enable_authz_recordings: bool = setting(
        False,
        "Enable Authorization Recordings",
        "Refused: checks of permissions are not recorded.",
        hidden=True,
        shown="false",
    )
    wg_tunnel_host: str = setting(
        "",
        "Custom wgtunnel Host",
        "Refused: no public tunnel is opened.",
        env="WGTUNNEL_HOST",
        yaml="wgtunnelHost",
        path="wgtunnel_host?",
        hidden=True,
    )
