"""Jobs that a hostile server, template author or user makes a provisioner daemon run.

A value is a function of nothing that returns the job; those of `TERRAFORM` need the real program.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from coder.rpc.proto import provisioner_pb2 as pb
from coder.rpc.proto import provisionerd_pb2 as pd
from tests.kit.provisioners.scripted_job_server import echo_archive, tar_of

Make = Callable[[], pd.AcquiredJob]
DEEP, MIDDLE = 50_000, 900
CONTROL = "\x1b]0;x\x07\r\nforged=line\x00"
WORKSPACE = "aaaaaaaa-0000-4000-8000-000000000001"


def job(kind_: str = "workspace_build", archive: bytes | None = None, **fields: Any) -> pd.AcquiredJob:
    found = pd.AcquiredJob(
        job_id="attack", provisioner="echo", template_source_archive=echo_archive() if archive is None else archive
    )
    getattr(found, kind_).SetInParent()
    for name, value in fields.items():
        setattr(found, name, value)
    return found


def _fields() -> dict[str, Make]:
    return {
        "id with slashes": lambda: job(job_id="../../../tmp/x"),
        "id of control characters": lambda: job(job_id=CONTROL),
        "id of 60 KB": lambda: job(job_id="a" * 60_000),
        "id with a zero byte": lambda: job(job_id="\0"),
        "unknown executor": lambda: job(provisioner="cloudformation"),
        "empty executor": lambda: job(provisioner=""),
        "executor of control characters": lambda: job(provisioner=CONTROL),
        "no kind of job": lambda: pd.AcquiredJob(
            job_id="attack", provisioner="echo", template_source_archive=echo_archive()
        ),
        "created before 1970": lambda: job(created_at=-(1 << 62)),
        "created in the far future": lambda: job(created_at=(1 << 62)),
        "user of control characters": lambda: job(user_name=CONTROL),
        "no archive": lambda: job(archive=b""),
        "archive of zeros": lambda: job(archive=bytes(10_240)),
        "archive of text": lambda: job(archive=b"hello" * 2000),
        "archive that is gzip": lambda: job(archive=b"\x1f\x8b\x08" + bytes(600)),
        "archive with a broken message": lambda: job(archive=tar_of({"0.plan.protobuf": b"\xff" * 40})),
        "archive with an empty message": lambda: job(archive=tar_of({"0.plan.protobuf": b""})),
        "archive with another message": lambda: job(
            archive=tar_of({"0.plan.protobuf": pb.Response(log=pb.Log(output="x")).SerializeToString()})
        ),
        "archive with a step of letters": lambda: job(archive=tar_of({"x.plan.protobuf": b""})),
        "archive with a huge step": lambda: job(archive=tar_of({"9" * 200 + ".plan.protobuf": b""})),
        "trace data of control characters": lambda: _traced({"traceparent": CONTROL, "tracestate": CONTROL}),
        "trace data that is none": lambda: _traced({"traceparent": "00-zz-zz-zz"}),
        "trace data of 60 KB": lambda: _traced({"baggage": "a=b," * 15_000}),
        "unknown log level": lambda: _built(log_level="shout"),
        "template id with slashes": lambda: _described(template_id="../../x"),
        "version id with slashes": lambda: _described(template_version_id="/etc"),
        "version id of 5 KB": lambda: _described(template_version_id="a" * 5000),
        "unknown transition": lambda: _described(workspace_transition=99),
        "no address of the server": lambda: _described(coder_url=""),
        "address with credentials": lambda: _described(coder_url="http://a:b@[::1"),
        "names of control characters": lambda: _described(workspace_name=CONTROL, workspace_owner=CONTROL),
        "20,000 groups": lambda: _described(workspace_owner_groups=["g"] * 20_000),
        "parameter without a name": lambda: _valued([("", "x")]),
        "parameters of one name": lambda: _valued([("a", "1"), ("a", "2")]),
        "parameter of 1 MB": lambda: _valued([("a", "x" * 1_000_000)]),
        "parameter of control characters": lambda: _valued([(CONTROL, CONTROL)]),
        "5,000 parameters": lambda: _valued([(f"p{n}", "") for n in range(5000)]),
    }


def _traced(data: dict[str, str]) -> pd.AcquiredJob:
    found = job()
    found.trace_metadata.update(data)
    return found


def _built(**fields: Any) -> pd.AcquiredJob:
    found = job()
    found.workspace_build.CopyFrom(pd.AcquiredJob.WorkspaceBuild(**fields))
    return found


def _described(**fields: Any) -> pd.AcquiredJob:
    return _built(metadata=pb.Metadata(**fields))


def _valued(values: list[tuple[str, str]]) -> pd.AcquiredJob:
    return _built(rich_parameter_values=[pb.RichParameterValue(name=name, value=value) for name, value in values])


STATES: dict[str, bytes] = {
    "no JSON": b"\xff\xfe\x00",
    "a list": b"[]",
    "a number": b"7",
    "null": b"null",
    "nested 50,000 deep": b"[" * DEEP + b"]" * DEEP,
    "a token nested 900 deep": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":'
    + b"[" * MIDDLE
    + b"]" * MIDDLE
    + b"}}]}]}",
    "a token nested 50,000 deep": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":'
    + b"[" * DEEP
    + b"]" * DEEP
    + b"}}]}]}",
    "a number of 5,000 digits": b'{"version":' + b"9" * 5000 + b"}",
    "resources as object": b'{"resources":{}}',
    "resources as numbers": b'{"resources":[1,2]}',
    "types as numbers": b'{"resources":[{"type":1,"instances":[1]}]}',
    "instances as text": b'{"resources":[{"type":"coder_agent","instances":"x"}]}',
    "attributes as list": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":[]}]}]}',
    "sensitive paths as numbers": b'{"resources":[{"type":"x","instances":[{"attributes":{"a":"b"},"sensitive_attributes":[1,[],[2],[{"value":3}]]}]}]}',
    "a token of one letter": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":"a"}}]}]}',
    "a token of spaces": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":"        "}}]}]}',
    "a token with a lone surrogate": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":"\\ud800abcdefgh"}}]}]}',
    "a token of 1 MB": b'{"resources":[{"type":"coder_agent","instances":[{"attributes":{"token":"'
    + b"x" * 1_000_000
    + b'"}}]}]}',
    "20,000 tokens": b'{"resources":[{"type":"coder_agent","instances":['
    + b",".join(b'{"attributes":{"token":"token-%d"}}' % n for n in range(20_000))
    + b"]}]}",
    "byte order mark": b"\xef\xbb\xbf{}",
    "keys twice": b'{"resources":[],"resources":[{}]}',
    "NaN": b'{"version":NaN,"resources":[NaN]}',
}


def _states() -> dict[str, Make]:
    def dry(state: bytes) -> pd.AcquiredJob:
        found = job("template_dry_run")
        found.template_dry_run.state = state
        found.template_dry_run.preview = True
        return found

    return {name: (lambda state=state: dry(state)) for name, state in STATES.items()}  # type: ignore[misc]


def _steps() -> dict[str, Make]:
    """What an executor answers, that is what a template makes Terraform print."""

    def planned(*answers: Any, step: str = "plan") -> Make:
        return lambda: job(archive=echo_archive(**{step: list(answers)}))

    def log(text: str, level: int = 1) -> pb.Log:
        return pb.Log(level=level, output=text)  # type: ignore[arg-type]

    def shown(**resource: Any) -> Make:
        return planned(pb.GraphComplete(resources=[pb.Resource(**resource)]), step="graph")

    ended = pb.PlanComplete(plan=b"{}")
    return {
        "log of control characters": planned(log(CONTROL), ended),
        "log of 3 MB": planned(log("x" * 3_000_000), ended),
        "20,000 log lines": planned(*[log("line")] * 200, ended),
        "log of an unknown level": planned(log("x", 77), ended),
        "plan that is no JSON": planned(pb.PlanComplete(plan=b"\xff")),
        "plan nested 50,000 deep": planned(pb.PlanComplete(plan=b"[" * DEEP + b"]" * DEEP)),
        "plan that is a number": planned(pb.PlanComplete(plan=b"7")),
        "plan with a negative cost": planned(pb.PlanComplete(plan=b"{}", dailyCost=-(1 << 31))),
        "plan with an error of control characters": planned(pb.PlanComplete(error=CONTROL)),
        "plan with an error of 3 MB": planned(pb.PlanComplete(error="e" * 3_000_000)),
        "apply with a state that is no JSON": planned(pb.ApplyComplete(state=b"\xff"), step="apply"),
        "apply with an error and a state": planned(pb.ApplyComplete(state=b"{}", error="x"), step="apply"),
        "init with an error": planned(pb.InitComplete(error=CONTROL), step="init"),
        "init with modules of dots": planned(
            pb.InitComplete(modules=[pb.Module(key="a", dir="../../..", source="x")]), step="init"
        ),
        "parse with tags of control characters": planned(
            pb.ParseComplete(workspace_tags={CONTROL: CONTROL}), step="parse"
        ),
        "parse with a README of broken UTF-8": planned(pb.ParseComplete(readme=b"\xff\xfe"), step="parse"),
        "parse with an error": planned(pb.ParseComplete(error="x"), step="parse"),
        "resource without a name": shown(name="", type=""),
        "resource of control characters": shown(name=CONTROL, type=CONTROL),
        "agent without an id": shown(name="a", type="b", agents=[pb.Agent()]),
        "two agents of one name": shown(name="a", type="b", agents=[pb.Agent(name="x"), pb.Agent(name="x")]),
        "agent with 5,000 variables": shown(
            name="a", type="b", agents=[pb.Agent(name="x", env={f"a{n}": "" for n in range(5000)})]
        ),
        "10,000 metadata": shown(name="a", type="b", metadata=[pb.Resource.Metadata(key="k")] * 10_000),
    }


ECHO: dict[str, dict[str, Make]] = {"fields of jobs": _fields(), "states": _states(), "answers of executors": _steps()}

HEAD = 'terraform {\n  required_providers {\n    coder = { source = "coder/coder" }\n  }\n}\n'


def _terraform(files: str | dict[str, str | bytes], kind_: str = "template_import", **build: Any) -> Make:
    def make() -> pd.AcquiredJob:
        packed = {"main.tf": files} if isinstance(files, str) else files
        found = job(kind_, tar_of(packed), provisioner="terraform")
        metadata = pb.Metadata(
            coder_url="http://c.test",
            workspace_transition=pb.WorkspaceTransition.START,
            workspace_name="w",
            workspace_owner="ada",
            workspace_id=WORKSPACE,
        )
        if kind_ == "workspace_build":
            found.workspace_build.CopyFrom(pd.AcquiredJob.WorkspaceBuild(metadata=metadata, **build))
        else:
            getattr(found, kind_).metadata.CopyFrom(metadata)
        return found

    return make


def _running(command: str) -> str:
    return f'resource "terraform_data" "x" {{\n  provisioner "local-exec" {{\n    command = "{command}"\n  }}\n}}\n'


SECRET = "hunter2-secret"
_PLAIN = 'resource "terraform_data" "x" {}\n'
TERRAFORM: dict[str, Make] = {
    "no syntax": _terraform("}}}}"),
    "broken UTF-8": _terraform({"main.tf": b'locals { a = "\xff\xfe" }'}),
    "byte order mark of UTF-16": _terraform({"main.tf": "locals {}".encode("utf-16")}),
    "zero bytes": _terraform({"main.tf": b"locals {\0}"}),
    "blocks nested 5,000 deep": _terraform("a {" * 5000 + "}" * 5000),
    "lists nested 5,000 deep": _terraform("locals { a = " + "[" * 5000 + "]" * 5000 + " }"),
    "JSON nested 5,000 deep": _terraform({"main.tf.json": '{"locals":{"a":' + "[" * 5000 + "]" * 5000 + "}}"}),
    "JSON that is a number": _terraform({"main.tf.json": "7"}),
    "a cycle": _terraform("locals {\n a = local.b\n b = local.a\n}\n"),
    "a regex that backtracks": _terraform(
        'output "a" { value = regexall("(a+)+$", join("", [for i in range(1000) : "a"])) }'
    ),
    "unknown provider": _terraform('terraform {\n required_providers { x = { source = "nowhere.invalid/x/x" } }\n}\n'),
    "provider of a version that does not exist": _terraform(
        'terraform {\n required_providers { coder = { source = "coder/coder", version = "99.0.0" } }\n}\n'
    ),
    "required version of the future": _terraform('terraform { required_version = ">= 99" }'),
    "a backend elsewhere": _terraform(
        'terraform {\n backend "http" { address = "http://127.0.0.1:9/x" }\n}\n' + _PLAIN
    ),
    "a backend in a file": _terraform('terraform {\n backend "local" { path = "elsewhere.tfstate" }\n}\n' + _PLAIN),
    "cloud": _terraform('terraform {\n cloud {\n organization = "x"\n }\n}\n'),
    "module outside": _terraform('module "a" { source = "../../../../etc" }'),
    "module that is itself": _terraform('module "a" { source = "./" }'),
    "module from an option": _terraform('module "a" { source = "git::ssh://-oProxyCommand=x/y" }'),
    "own list of modules": _terraform(
        {
            "main.tf": _PLAIN,
            ".terraform/modules/modules.json": '{"Modules":[{"Key":"a","Source":"x","Dir":"../../.."}]}',
        }
    ),
    "own list of modules that is a list": _terraform({"main.tf": _PLAIN, ".terraform/modules/modules.json": "[]"}),
    "own list of modules, nested": _terraform({"main.tf": _PLAIN, ".terraform/modules/modules.json": "[" * DEEP}),
    "own lock file": _terraform({"main.tf": HEAD, ".terraform.lock.hcl": 'provider "x" {{{'}),
    "own plan file": _terraform({"main.tf": _PLAIN, "terraform.tfplan": "x"}),
    "own state file": _terraform({"main.tf": _PLAIN, "terraform.tfstate": "{}"}, "workspace_build"),
    "own variables": _terraform({"main.tf": 'variable "a" {}\n', "a.auto.tfvars": "a = {{{"}),
    "override file": _terraform({"main.tf": _PLAIN, "main_override.tf": 'resource "terraform_data" "y" {}'}),
    "file names of control characters": _terraform({"a\x1b[2J\n.tf": _PLAIN}),
    "a directory for main.tf": _terraform({"main.tf/x": _PLAIN}),
    "parameters of one name": _terraform(
        HEAD + 'data "coder_parameter" "a" {\n name = "x"\n}\ndata "coder_parameter" "b" {\n name = "x"\n}\n'
    ),
    "prints a secret": _terraform(
        _running(f"echo {SECRET}") + 'variable "pw" {\n sensitive = true\n}\n',
        "workspace_build",
        variable_values=[pb.VariableValue(name="pw", value=SECRET, sensitive=True)],
    ),
    "prints a secret in pieces": _terraform(
        _running(f"printf {SECRET[:7]}; printf {SECRET[7:]}"),
        "workspace_build",
        variable_values=[pb.VariableValue(name="pw", value=SECRET, sensitive=True)],
    ),
    "prints 30 MB in one line": _terraform(_running("head -c 30000000 /dev/zero | tr '\\\\0' a"), "workspace_build"),
    "prints 200,000 lines": _terraform(_running("yes | head -n 200000"), "workspace_build"),
    "prints zeros": _terraform(_running("head -c 2000000 /dev/zero"), "workspace_build"),
    "prints lines of JSON": _terraform(_running('echo \'{\\"@message\\":7,\\"@level\\":[]}\''), "workspace_build"),
    "prints escape sequences": _terraform(_running("printf '\\\\033]0;x\\\\007'"), "workspace_build"),
    "leaves a process behind": _terraform(_running("sleep 21 >/dev/null 2>&1 &"), "workspace_build"),
    "leaves a process of a new session": _terraform(_running("setsid sleep 22 >/dev/null 2>&1 &"), "workspace_build"),
    "kills its parent": _terraform(_running("kill -9 $PPID"), "workspace_build"),
    "deletes its folder": _terraform(_running("rm -rf ../../template"), "workspace_build"),
    "makes its folder unreadable": _terraform(_running("chmod 0 ."), "workspace_build"),
    "replaces its state by a link": _terraform(_running("ln -sf /etc/passwd terraform.tfstate"), "workspace_build"),
    "replaces its state by a pipe": _terraform(
        _running("rm -f terraform.tfstate; mkfifo terraform.tfstate"), "workspace_build"
    ),
    "state nested": _terraform(_PLAIN, "workspace_build", state=STATES["nested 50,000 deep"]),
    "state of another version": _terraform(_PLAIN, "workspace_build", state=b'{"version":99}'),
    "state with numbers for resources": _terraform(_PLAIN, "workspace_build", state=b'{"version":4,"resources":[7]}'),
    "variable of control characters": _terraform(
        'variable "a" {}\n', "workspace_build", variable_values=[pb.VariableValue(name="a", value=CONTROL)]
    ),
    "variable without a name": _terraform(
        _PLAIN, "workspace_build", variable_values=[pb.VariableValue(name="", value="x")]
    ),
    "variable name with an equals sign": _terraform(
        _PLAIN, "workspace_build", variable_values=[pb.VariableValue(name="a=b", value="x")]
    ),
    "parameter with a zero byte": _terraform(
        _PLAIN, "workspace_build", rich_parameter_values=[pb.RichParameterValue(name="a", value="\0")]
    ),
}
