"""Composed templates: values stay in their literals, conflicts are refused, blocks read as a person writes them."""

from __future__ import annotations

import re
from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coder.api.base.refusals import InvalidFields
from coder.coderd.services.templates.builder.catalogue import MAIN, bases, modules
from coder.coderd.services.templates.builder.composition import MAX_MODULES, Chosen, compose
from coder.coderd.services.templates.builder.values import MAX_VALUE
from coder.domain.hcl.parser import parse_file_untrusted
from coder.domain.hcl.tree import File, HclBlock
from coder.domain.rendering.module_scope import ModuleScope, RenderRequest
from coder.domain.rendering.sources import read_source
from coder.domain.templates.module_registry import registry_host

PARTS = [*'"\\$%{}~<-\n\r\tEOT_ #/*\u2028é\x7f', "${", "%{", "<<EOT", "\nEOT\n", '"\n}\nresource "x" "y" {']
HOSTILE = st.lists(st.sampled_from(PARTS), max_size=40).map("".join)
REGISTRY = "registry.example.com"


def parsed(files: Mapping[str, bytes]) -> File:
    return parse_file_untrusted(files[MAIN].decode(), MAIN)


def block_of(file: File, kind: str, name: str) -> HclBlock:
    return next(block for block in file.body.blocks if (block.type, *block.labels) == (kind, name))


def value_in(files: Mapping[str, bytes], block: HclBlock, name: str) -> object:
    scope = ModuleScope(files, read_source(files), RenderRequest())
    return scope.evaluate(block.body.attributes[name])


def refusal(base: str, values: Mapping[str, str], *chosen: tuple[str, Mapping[str, str]]) -> dict[str, str]:
    """Return the faults of a composition by field."""
    with pytest.raises(InvalidFields) as caught:
        compose(bases()[base], values, [Chosen(modules()[name], given) for name, given in chosen])
    return dict(caught.value.validations)


@settings(max_examples=100, deadline=None)
@given(HOSTILE)
def test_hostile_module_value_stays_literal(text: str) -> None:
    chosen = [Chosen(modules()["startup-script"], {"script": f"x{text}"})]
    composed = parsed(files := compose(bases()["scratch"], {}, chosen))
    expected = [(block.type, block.labels) for block in parsed(bases()["scratch"].files).body.blocks]
    assert [(block.type, block.labels) for block in composed.body.blocks] == [
        *expected,
        ("module", ("startup-script",)),
    ]
    call = block_of(composed, "module", "startup-script")
    assert list(call.body.attributes) == ["source", "agent_id", "script"]
    assert value_in(files, call, "script") == f"x{text}"


@settings(max_examples=30, deadline=None)
@given(HOSTILE)
def test_hostile_base_value_stays_literal(text: str) -> None:
    files = compose(bases()["kubernetes"], {"namespace": f"x{text}", "container_image": f"y{text}"}, [])
    composed, plain = parsed(files), parsed(bases()["kubernetes"].files)
    assert [block.labels for block in composed.body.blocks] == [block.labels for block in plain.body.blocks]
    assert value_in(files, block_of(composed, "variable", "namespace"), "default") == f"x{text}"
    assert files[MAIN].decode().count("codercom/enterprise-base:ubuntu") == 0


def test_nothing_chosen_changes_nothing() -> None:
    base = bases()["local-process"]
    assert compose(base, {}, []) == dict(sorted(base.files.items()))


def test_values_replace_defaults() -> None:
    values = {"use_kubeconfig": "true", "namespace": "dev", "container_image": "alpine"}
    text = compose(bases()["kubernetes"], values, [])[MAIN].decode()
    assert '  type        = bool\n  default     = true\n  description = "Use' in text
    assert '  type        = string\n  default     = "dev"\n  description = "Namespace' in text
    assert text.count('"alpine"') == 1


def test_module_call_reads_well() -> None:
    chosen = [
        Chosen(
            modules()["git-clone"], {"url": "https://git.test/a.git", "post_clone_script": "make\necho $HOME ${X}\n"}
        ),
        Chosen(modules()["code-server"], {"port": "13337", "offline": "true"}),
    ]
    files = compose(bases()["scratch"], {}, chosen)
    assert (
        files[MAIN]
        .decode()
        .endswith(
            'module "git-clone" {\n  source = "./modules/git-clone"\n\n  agent_id = coder_agent.main.id\n'
            '  url      = "https://git.test/a.git"\n\n'
            "  post_clone_script = <<EOT\nmake\necho $HOME $${X}\nEOT\n}\n\n"
            'module "code-server" {\n  source = "./modules/code-server"\n\n  agent_id = coder_agent.main.id\n'
            "  offline  = true\n}\n"
        )
    )
    assert {name for name in files if name.startswith("modules/")} == {
        f"modules/{module}/{name}" for module in ("code-server", "git-clone") for name in ("README.md", "main.tf")
    }
    assert b"## Modules\n\n- Git Clone: Clone a Git repository at the first start.\n" in files["README.md"]


def test_counted_agent_is_indexed() -> None:
    text = compose(bases()["aws-windows"], {}, [Chosen(modules()["zed"])])[MAIN].decode()
    assert text.endswith(
        'module "zed" {\n  count  = data.coder_workspace.me.start_count\n  source = "./modules/zed"\n\n'
        "  agent_id = coder_agent.main[0].id\n}\n"
    )


def test_registry_replaces_own_modules() -> None:
    chosen = [Chosen(modules()["code-server"]), Chosen(modules()["startup-script"], {"script": "true"})]
    files = compose(bases()["scratch"], {}, chosen, REGISTRY)
    text = files[MAIN].decode()
    assert '  source  = "registry.example.com/coder/code-server/coder"\n  version = "1.5.0"\n' in text
    assert 'source = "./modules/startup-script"' in text, "no registry has it"
    assert "modules/code-server/main.tf" not in files and "modules/startup-script/main.tf" in files


@pytest.mark.parametrize(
    ("name", "values", "field", "detail"),
    [
        ("git-clone", {}, "modules.git-clone.url", "A value is required."),
        ("git-clone", {"url": ""}, "modules.git-clone.url", "A value is required."),
        ("git-clone", {"url": "a\0b"}, "modules.git-clone.url", "Must not contain a NUL character."),
        ("git-clone", {"url": "\ud800"}, "modules.git-clone.url", "Must be valid Unicode text."),
        ("git-clone", {"url": "x" * (MAX_VALUE + 1)}, "modules.git-clone.url", "Must have at most 32768 characters."),
        ("code-server", {"port": "x"}, "modules.code-server.port", "Must be a number."),
        ("code-server", {"port": "1\n}"}, "modules.code-server.port", "Must be a number."),
        ("code-server", {"port": "٣"}, "modules.code-server.port", "Must be a number."),
        ("code-server", {"port": "65536"}, "modules.code-server.port", "Must be a port from 1 to 65535."),
        ("code-server", {"port": "1.5"}, "modules.code-server.port", "Must be a port from 1 to 65535."),
        ("code-server", {"offline": "yes"}, "modules.code-server.offline", "Must be true or false."),
        ("code-server", {"agent_id": "x"}, "modules.code-server.agent_id", "There is no such variable."),
        ("vscode-web", {}, "modules.vscode-web.accept_license", "You must accept this to use the module."),
    ],
)
def test_wrong_values_are_refused(name: str, values: dict[str, str], field: str, detail: str) -> None:
    assert refusal("scratch", {}, (name, values)) == {field: detail}


def test_base_values_are_checked() -> None:
    assert refusal("gcp-linux", {"zone": "x"}) == {
        "base_variable_values.zone": "There is no such variable.",
        "base_variable_values.project_id": "A value is required.",
    }
    assert refusal("kubernetes", {"namespace": "x", "use_kubeconfig": "1"}) == {
        "base_variable_values.use_kubeconfig": "Must be true or false."
    }


def test_conflicts_are_refused() -> None:
    accepted = {"accept_license": "true"}
    assert refusal("scratch", {}, ("code-server", {}), ("vscode-web", accepted)) == {
        "modules.vscode-web": "VS Code Web cannot be combined with code-server."
    }
    assert refusal("scratch", {}, ("zed", {}), ("zed", {})) == {"modules.zed": "Zed is chosen twice."}
    assert refusal("aws-windows", {}, ("code-server", {})) == {
        "modules.code-server": "code-server does not work on windows."
    }
    assert refusal("scratch", {}, ("code-server", {}), ("jupyterlab", {"port": "13337"})) == {
        "modules.jupyterlab.port": "Port 13337 is already used by code-server."
    }
    many: list[tuple[str, dict[str, str]]] = [("zed", {})] * (MAX_MODULES + 1)
    assert refusal("scratch", {}, *many)["modules"] == f"Choose at most {MAX_MODULES} modules."


@pytest.mark.parametrize(
    ("address", "host"),
    [("", ""), ("Registry.example.com", REGISTRY), ("https://registry.example.com/", REGISTRY), ("a:8443", "a:8443")],
)
def test_registry_address_is_host(address: str, host: str) -> None:
    assert registry_host(address) == host


@pytest.mark.parametrize("address", ["http://a", "a/b", 'a"', "${a}", "a b", "-a", "a\nb"])
def test_other_registry_addresses_are_refused(address: str) -> None:
    with pytest.raises(ValueError, match=re.escape("is not the host of a registry")):
        registry_host(address)
