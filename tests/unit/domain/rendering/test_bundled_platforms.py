"""The bundled template for external machines offers only platforms for which there is an agent."""

from __future__ import annotations

from coder.domain.agents.init_scripts import PLATFORMS
from coder.domain.rendering.module_scope import RenderRequest
from coder.domain.rendering.parameters import render
from tests.kit.paths import ROOT

_FILES = {
    "main.tf": (ROOT / "coder/coderd/examples/externally-managed-workspace/main.tf").read_bytes(),
}


def test_external_template_offers_existing_platforms() -> None:
    offered = set()
    for system in ("linux", "windows", "darwin"):
        for architecture in ("amd64", "arm64", "armv7"):
            inputs = {"agent_os": system, "agent_arch": architecture}
            rendered = render(_FILES, RenderRequest(inputs))
            assert rendered.diagnostics == [], rendered.diagnostics
            parameters = {item["name"]: item for item in rendered.parameters}
            options = {option["value"]["value"] for option in parameters["agent_arch"]["options"]}
            assert options == {arch for name, arch in PLATFORMS if name == system}
            refused = any(problem["severity"] == "error" for problem in parameters["agent_arch"]["diagnostics"])
            assert refused is ((system, architecture) not in PLATFORMS), parameters["agent_arch"]["diagnostics"]
            if not refused:
                offered.add((system, architecture))
    assert offered == set(PLATFORMS)
