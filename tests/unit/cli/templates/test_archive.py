"""Contents of the archive that `templates push` uploads."""

from __future__ import annotations

import io
import os
import re
import tarfile
from pathlib import Path, PurePosixPath

import pytest

from coder.base.errors import CoderError
from coder.cli.templates import archive
from coder.cli.templates.archive import pack_directory, rule_against

STAYS = [
    ".env",
    ".netrc",
    ".git/config",
    ".gitignore",
    ".venv/lib/v.py",
    ".terraform/providers/p",
    ".hidden/k",
    ".hidden.tf",
    "sub/.netrc",
    "sub/.ssh/id_ed25519",
    "terraform.tfvars",
    "terraform.tfvars.json",
    "prod.tfvars",
    "prod.tfvars.json",
    "x.auto.tfvars",
    "x.auto.tfvars.json",
    "sub/x.auto.tfvars",
    "sub/x.auto.tfvars.json",
    "terraform.tfstate",
    "terraform.tfstate.backup",
    "prod.tfstate",
    "terraform.tfstate.d/prod/terraform.tfstate",
    "sub/old.tfstate.1",
    "plan.tfplan",
]
PACKED = [
    "main.tf",
    "x.tf.json",
    "README.md",
    "cloud-init.yaml",
    ".terraform.lock.hcl",
    "sub/.terraform.lock.hcl",
    "envs/dev.tfvars",
    "envs/dev.tfvars.json",
    "envs/terraform.tfvars",
    "sub/main.tf",
    "env",
    "tfstate.md",
]


def template(root: Path, *names: str) -> Path:
    for name in ("main.tf", *names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


def names_of(data: bytes) -> list[str]:
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        return sorted(tar.getnames())


def pack(root: Path, *include: str) -> tuple[list[str], dict[str, str]]:
    packed = pack_directory(root, include)
    names = names_of(packed.archive)
    assert packed.files == len(names)
    return names, {str(item.path): item.reason for item in packed.skipped}


def test_only_the_template_is_packed(tmp_path: Path) -> None:
    names, skipped = pack(template(tmp_path, *STAYS, *PACKED))
    assert names == sorted(PACKED)
    for name in STAYS:
        path = PurePosixPath(name)
        assert any(str(each) in skipped for each in (path, *path.parents)), name


@pytest.mark.parametrize("name", STAYS)
def test_include_overrides_each_rule(name: str, tmp_path: Path) -> None:
    root = template(tmp_path, *STAYS)
    path = PurePosixPath(name)
    assert pack(root, name)[0] == sorted(["main.tf", name])
    assert name in pack(root, str(path.parent) if str(path.parent) != "." else path.name)[0]
    assert name in pack(root, "*")[0]


def test_every_skipped_path_has_a_reason(tmp_path: Path) -> None:
    root = template(tmp_path, ".env", "terraform.tfvars", "a.tfstate")
    os.mkfifo(root / "pipe")
    (root / "gone").symlink_to("nothing")
    (root / "outside").symlink_to("/etc")
    (root / "passwd").symlink_to("/etc/passwd")
    (root / "self").symlink_to(".")
    assert pack(root) == (
        ["main.tf"],
        {
            ".env": "hidden",
            "a.tfstate": "state of Terraform",
            "gone": "a link to nothing",
            "outside": "a link that leads out of the template",
            "passwd": "a link that leads out of the template",
            "pipe": "not a file",
            "self": "a directory that contains itself",
            "terraform.tfvars": "values of variables",
        },
    )


def test_links_inside_are_followed(tmp_path: Path) -> None:
    root = template(tmp_path, "real/a", "real/deep/b")
    (root / "linkdir").symlink_to("real")
    (root / "link").symlink_to("real/a")
    (root / "real/up").symlink_to("..")
    names, skipped = pack(root)
    assert names == ["link", "linkdir/a", "linkdir/deep/b", "main.tf", "real/a", "real/deep/b"]
    assert skipped.keys() == {"linkdir/up", "real/up"}


def test_linked_directory_outside_can_be_included(tmp_path: Path) -> None:
    root = template(tmp_path / "t")
    template(tmp_path / "shared", ".env")
    (root / "modules").symlink_to("../shared")
    assert pack(root)[0] == ["main.tf"]
    assert pack(root, "modules")[0] == ["main.tf", "modules/.env", "modules/main.tf"]
    assert pack(root, "modules/*.tf")[0] == ["main.tf", "modules/main.tf"]


def test_modes_are_kept(tmp_path: Path) -> None:
    root = template(tmp_path, "run.sh")
    (root / "run.sh").chmod(0o755)
    with tarfile.open(fileobj=io.BytesIO(pack_directory(root).archive)) as tar:
        assert {entry.name: entry.mode & 0o100 for entry in tar} == {"main.tf": 0, "run.sh": 0o100}


def test_large_file_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LARGE_FILE", 10)
    root = template(tmp_path)
    (root / "image").write_bytes(b"x" * 11)
    assert pack(root) == (["main.tf"], {"image": "0 MiB"})
    assert pack(root, "image") == (["image", "main.tf"], {})


def test_large_archive_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "LIMIT", 10)
    with pytest.raises(CoderError, match="exceeds"):
        pack(template(tmp_path))


NAMES = [
    'x = file(".env")',
    'x = file("${path.module}/.env")',
    'x = file("./.env")',
    'x = templatefile("${path.root}/.env", {a = 1})',
    'x = base64encode(filebase64("sub/../.env"))',
    'x = filemd5("${path.cwd}/.env")',
    'x = [for f in fileset(".modules", "*.tf") : f]',
    'resource "r" "n" {\n source = "${path.module}/.env"\n}',
    'module "m" {\n source = "./.modules/net"\n}',
    'x = var.a ? "${path.module}/.modules/net/x" : ""',
    'provisioner "p" {\n inner {\n  y = { z = [sha1(file("${path.module}/prod.tfstate"))] }\n }\n}',
    'x = file("linked/config")',
]
DOES_NOT_NAME = [
    '# file(".env")',
    'x = ".env"',
    'x = <<EOT\ncat .env ${path.module}/.env\nfile(".env")\nEOT',
    'x = file("/root/.env")',
    'x = file("~/.env")',
    'x = file("${path.module}/.environment")',
    'x = file("${path.module}/${var.name}")',
    'x = fileexists("${path.module}/.env") ? file("${path.module}/.env") : ""',
    'module "m" {\n source = "registry.coder.com/modules/.env/coder"\n}',
    'x = file("../.env")',
    'x = "a${',
]


def referring(root: Path, text: str) -> Path:
    template(root, ".env", ".modules/net/main.tf", "prod.tfstate")
    (root / "linked").symlink_to(template(root.parent / f"{root.name}-shared", "config"))
    (root / "main.tf").write_text(f"\n{text}\n")
    return root


@pytest.mark.parametrize("text", NAMES)
def test_named_path_is_an_error(text: str, tmp_path: Path) -> None:
    with pytest.raises(
        CoderError, match=r"main\.tf line \d+ names .* is not uploaded \(.*\): set --include (\S+)"
    ) as error:
        pack(referring(tmp_path, text))
    include = re.search(r"--include (\S+)", str(error.value))
    assert include is not None
    assert len(pack(tmp_path, include[1])[0]) > 1


@pytest.mark.parametrize("text", DOES_NOT_NAME)
def test_other_texts_name_no_path(text: str, tmp_path: Path) -> None:
    assert pack(referring(tmp_path, text))[0] == ["main.tf"]


def test_paths_are_relative_to_module(tmp_path: Path) -> None:
    root = template(tmp_path, "m/.env")
    (root / "m/main.tf").write_text('x = file("${path.module}/.env")')
    with pytest.raises(CoderError, match=r"m/main\.tf line 1 names m/\.env"):
        pack(root)


def test_json_files_name_paths(tmp_path: Path) -> None:
    root = template(tmp_path, ".env")
    (root / "x.tf.json").write_text('{"locals": {"x": "${file(\\".env\\")}"}}')
    with pytest.raises(CoderError, match=r"x\.tf\.json.* names \.env"):
        pack(root)


def test_skipped_terraform_file_is_an_error(tmp_path: Path) -> None:
    root = template(tmp_path / "t")
    (tmp_path / "shared.tf").write_text("")
    (root / "shared.tf").symlink_to("../shared.tf")
    with pytest.raises(CoderError, match=r"shared\.tf is part of the template, but .* --include shared\.tf"):
        pack(root)
    assert pack(root, "shared.tf")[0] == ["main.tf", "shared.tf"]


@pytest.mark.parametrize("name", PACKED)
def test_packed_names_have_no_rule(name: str) -> None:
    assert rule_against(PurePosixPath(name)) == ""
