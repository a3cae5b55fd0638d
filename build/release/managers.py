"""Manifests for Homebrew and winget: texts that name the programs with their addresses and hashes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from release.plan import LICENSE, PACKAGE, SUMMARY, Plan, digest, write

FORMULA = """# Agent, command line and, on Linux, the server. Written by scripts/release.
class CoderPy < Formula
  desc "{summary}"
  homepage "{url}"
  version "{version}"
  license "{license}"

  on_macos do
    on_arm do
      {darwin_arm64}
    end
    on_intel do
      {darwin_amd64}
    end
  end

  on_linux do
    on_arm do
      {linux_arm64}
    end
    on_intel do
      {linux_amd64}
    end
  end

  conflicts_with "coder", because: "both install bin/coder"

  def install
    bin.install Dir["coder-*"].first => "coder"
  end

  test do
    assert_match version.to_s, shell_output("#{{bin}}/coder version")
  end
end
"""
WINGET_VERSION = "1.6.0"
"""Of the manifests' schemas."""
IDENTIFIER = "CoderPy.Coder"
PUBLISHER = "coder-py"


def homebrew(plan: Plan) -> list[Path]:
    """Write the formula if the release has all four programs."""
    names = ("coder-darwin-arm64", "coder-darwin-amd64", "coder-linux-arm64", "coder-linux-amd64")
    programs = plan.programs
    if not all(name in programs for name in names):
        return []
    files = {
        name.removeprefix("coder-").replace(
            "-", "_"
        ): f'url "{plan.url}/{name}"\n      sha256 "{digest(programs[name])}"'
        for name in names
    }
    summary = SUMMARY[0].upper() + SUMMARY[1:]
    fields = {"summary": summary, "url": plan.url, "version": plan.version, "license": LICENSE}
    return [write(plan.out / f"homebrew/{PACKAGE}.rb", FORMULA.format(**fields, **files))]


def winget(plan: Plan) -> list[Path]:
    """Write the three manifests of the Windows program, if the release has it. Windows on arm64 runs the program for
    amd64."""
    program = plan.programs.get("coder-windows-amd64.exe")
    if program is None:
        return []
    publisher, _, name = IDENTIFIER.partition(".")
    folder = plan.out / "winget" / publisher[0].lower() / publisher / name / plan.version
    day = datetime.fromtimestamp(plan.time, UTC).date().isoformat()
    installers = "".join(
        f"- Architecture: {architecture}\n  InstallerUrl: {plan.url}/{program.name}\n"
        f"  InstallerSha256: {digest(program).upper()}\n"
        for architecture in ("x64", "arm64")
    )
    bodies = {
        "": ("version", "DefaultLocale: en-US\n"),
        ".installer": (
            "installer",
            f"InstallerType: portable\nCommands:\n- coder\nReleaseDate: {day}\nInstallers:\n{installers}",
        ),
        ".locale.en-US": (
            "defaultLocale",
            f"PackageLocale: en-US\nPublisher: {PUBLISHER}\nPackageName: Coder in Python\nLicense: {LICENSE}\n"
            f"ShortDescription: Agent and command line of Coder, {SUMMARY}\nPackageUrl: {plan.url}\n"
            f"Moniker: {PACKAGE}\n",
        ),
    }
    made = []
    for suffix, (kind, body) in bodies.items():
        head = f"# yaml-language-server: $schema=https://aka.ms/winget-manifest.{kind}.{WINGET_VERSION}.schema.json\n"
        head += f"PackageIdentifier: {IDENTIFIER}\nPackageVersion: {plan.version}\n"
        tail = f"ManifestType: {kind}\nManifestVersion: {WINGET_VERSION}\n"
        made.append(write(folder / f"{IDENTIFIER}{suffix}.yaml", head + body + tail))
    return made
