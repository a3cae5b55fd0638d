"""Terraform executor: runs jobs with a real terraform; serves our coder/coder provider in process.

It saves terraform runs: init only where a template needs it, the graph concurrently with other work, cost and tasks of
a plan from the provider's view, the state from its file. All runs of a job share one provider that knows only this job.
Secrets reach terraform by environment or by a file in the job's directory, never on a command line.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from functools import partial
from pathlib import Path, PurePosixPath

import trio

from coder.base.child_env import child_env
from coder.base.errors import CoderError
from coder.base.exception_groups import single_failure
from coder.base.json_types import as_list, as_object, as_text
from coder.base.log import get_logger
from coder.base.threads import in_thread_or_here
from coder.domain.agents.init_scripts import PLATFORMS, init_script
from coder.provisionerd import archive
from coder.provisionerd.config import TerraformConfig
from coder.provisionerd.executors.contract import Emit, Executor, ExecutorSession, Settings, filter_level, read_state
from coder.provisionerd.terraform import environment as env_of
from coder.provisionerd.terraform import template as template_of
from coder.provisionerd.terraform.binary import TerraformBinary, find_binary
from coder.provisionerd.terraform.download import download
from coder.provisionerd.terraform.extract import changes
from coder.provisionerd.terraform.extract.document import ExtractError
from coder.provisionerd.terraform.extract.extract import extract_plan, extract_state_file
from coder.provisionerd.terraform.graph_cache import GraphCache, template_key
from coder.provisionerd.terraform.graph_run import GraphRun
from coder.provisionerd.terraform.init_lock import PluginCache
from coder.provisionerd.terraform.log_lines import StageTimings
from coder.provisionerd.terraform.process import ProcessError, Runner
from coder.provisionerd.terraform.provider.serving import PlannedFacts, ServedProvider, serve_provider
from coder.provisionerd.terraform.provider_pin import explain_pin
from coder.provisionerd.terraform.stage import Stage
from coder.rpc.proto import provisioner_pb2 as pb

_log = get_logger("provisionerd.terraform")

_DOWNLOADED = ".terraform/modules/"
_PLAN_FILE = "plan.out"
_STATE_FILE = "terraform.tfstate"
_NOTHING_TO_DO = "The terraform state does not exist, there is nothing to do"
_NOTHING_TO_PREPARE = "The template needs no modules and no downloaded providers: nothing to initialize"


class TerraformExecutor:
    """Executor shared by the daemons of one process: terraform is searched for once, and there is one plugin cache."""

    def __init__(self, config: TerraformConfig) -> None:
        self._config = config
        self._cache = PluginCache(config.cache_dir)
        self._environment = env_of.inherited(child_env(base=config.environment))
        self._binary: TerraformBinary | None = None
        self.graphs = GraphCache()
        self.templates = template_of.TemplateCache()

    @asynccontextmanager
    async def open(self, settings: Settings) -> AsyncIterator[ExecutorSession]:
        """Open a job's session; leaving it kills the processes that still run."""
        with single_failure():
            async with serve_provider() as provider, trio.open_nursery() as nursery:
                yield _TerraformSession(self, settings, provider, nursery)
                nursery.cancel_scope.cancel()

    async def binary(self) -> TerraformBinary:
        """Return the program; search again for each job until one exists. Raises TerraformMissing."""
        if self._binary is None or not Path(self._binary.path).exists():
            config = self._config
            fetch = partial(download, config.releases, config.cache_dir / "tf") if config.releases else None
            self._binary = await find_binary(config.binary, self._environment, fetch)
        return self._binary

    def runner(self, binary: str, folder: Path) -> Runner:
        """Return a runner for commands in a job's directory."""
        return Runner(binary, folder, self._config.exit_timeout, self._config.limits)

    @property
    def config(self) -> TerraformConfig:
        return self._config

    @property
    def cache(self) -> PluginCache:
        return self._cache

    @property
    def environment(self) -> Mapping[str, str]:
        return self._environment


def agent_scripts() -> dict[tuple[str, str], str]:
    """Return init script templates by platform, with the placeholders that the provider fills in."""
    result = {}
    for system, architecture in PLATFORMS:
        script = init_script(system, architecture, "${ACCESS_URL}", "${AUTH_TYPE}") or ""
        # The provider's address has its own trailing slash.
        result[system, architecture] = script.replace("${ACCESS_URL}/", "${ACCESS_URL}")
    return result


class _TerraformSession:
    def __init__(
        self, executor: TerraformExecutor, settings: Settings, provider: ServedProvider, nursery: trio.Nursery
    ) -> None:
        self._executor = executor
        self._settings = settings
        self._provider = provider
        self._nursery = nursery
        self._folder = settings.folder / "template"
        self._runner: Runner | None = None
        self._graph_runner: Runner | None = None
        self._binary: TerraformBinary | None = None
        self._template: template_of.ReadTemplate | None = None
        self._variables: dict[str, str] = {}
        self._importing = True
        self._plan_json: bytes = b""
        self._nothing_to_do = False
        self._graph: GraphRun | None = None
        self._graph_key = b""
        self._given_state = b""
        self._last_state = b""

    # --- common parts
    def cancel(self) -> None:
        for runner in (self._runner, self._graph_runner):
            if runner is not None:
                runner.cancel()

    def state(self) -> bytes:
        """Return the last complete state: a terraform killed while it wrote the file leaves an incomplete one."""
        result = read_state(self._folder / _STATE_FILE)
        if result:
            self._last_state = result
        return self._last_state or self._given_state

    def _stage(self, name: str, emit: Emit) -> Stage:
        return Stage(name, filter_level(self._settings.log_level, emit), StageTimings(name), on_overflow=self.cancel)

    def _base_environment(self) -> dict[str, str]:
        base = dict(self._executor.environment)
        if self._executor.config.provider == "builtin":
            base["TF_REATTACH_PROVIDERS"] = self._provider.reattach
        return base

    def _job_environment(self) -> dict[str, str]:
        full = self._base_environment() | self._variables
        if self._settings.log_level:
            full["TF_LOG"] = "JSON"
        return full

    async def _run(self, stage: Stage, arguments: Sequence[str], environment: Mapping[str, str]) -> str:
        """Run one command into the log; return the error, or ""."""
        assert self._runner is not None  # noqa: S101 - init set it
        for line in env_of.explain(self._executor.environment):
            stage.emit(pb.LogLevel.WARN, line)
        try:
            status = await self._runner.run(arguments, environment, stage.on_stdout, stage.on_stderr)
        except ProcessError as problem:
            return f"{_step(arguments)}: {problem.message}"
        if stage.has_overflowed():
            return f"{_step(arguments)}: {stage.explain_overflow()}"
        return "" if status == 0 else f"{_step(arguments)}: {self._runner.explain(status)}"

    async def _capture(self, arguments: Sequence[str]) -> bytes:
        """Return the output of a short command. Raises ExtractError."""
        assert self._runner is not None  # noqa: S101 - init set it
        status, out, err = await self._runner.capture(arguments, self._base_environment())
        if status != 0:
            text = err.decode("utf-8", "replace").strip()[-2000:]
            raise ExtractError(
                f"terraform {arguments[0]}: {self._runner.explain(status)}" + (f": {text}" if text else "")
            )
        return out

    # --- init
    async def init(self, request: pb.InitRequest, module_archive: bytes, emit: Emit) -> pb.InitComplete:
        stage = self._stage("init", emit)
        self._importing = not request.omit_module_files
        try:
            self._binary = await self._executor.binary()
            self._runner = self._executor.runner(self._binary.path, self._folder)
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            for part in (request.template_source_archive, module_archive):
                for name in await in_thread_or_here(archive.unpack_untrusted, part, self._folder) if part else ():
                    stage.emit(pb.LogLevel.WARN, f"skipped {name}: links and devices are not unpacked")
        except CoderError as problem:
            stage.emit(pb.LogLevel.ERROR, problem.message)
            return pb.InitComplete(error=problem.message)
        except OSError as problem:
            return pb.InitComplete(error=f"unpack template: {problem.strerror or problem}")
        try:
            key = template_key(request.template_source_archive, module_archive)
            self._template = await self._executor.templates.read(key, self._folder)
        except template_of.TemplateError:
            self._template = None  # terraform explains it better, with the source line
        error = ""
        if self._template is None or template_of.needs_init(self._template) or self._upstream():
            error = await self._terraform_init(stage)
        else:
            stage.emit(pb.LogLevel.INFO, _NOTHING_TO_PREPARE)
            # The plugins (ours, and the built-in ones) are ready with the template: dashboards show the span.
            stage.timings.add(
                stage.started, datetime.now(UTC), "load", "", "provider plugins", pb.TimingState.COMPLETED
            )
        complete = pb.InitComplete(error=error, timings=stage.finish(failed=bool(error)))
        if not error:
            self._describe_modules(complete, request, stage)
            if module_archive or not self._downloaded_modules(complete):
                self._graph_key = template_key(request.template_source_archive, module_archive)
        return complete

    def _downloaded_modules(self, complete: pb.InitComplete) -> list[str]:
        """Return the directories of modules that are not part of the template itself."""
        folders = [module.dir for module in complete.modules if module.dir.startswith(_DOWNLOADED)]
        return [folder for folder in folders if ".." not in PurePosixPath(folder).parts]

    def _upstream(self) -> bool:
        return self._executor.config.provider != "builtin"

    async def _terraform_init(self, stage: Stage) -> str:
        assert self._binary is not None  # noqa: S101 - set just before
        arguments = ["init", "-no-color", "-input=false"]
        if self._binary.init_speaks_json:
            arguments.append("-json")
        lock_before = _checksum(self._folder / ".terraform.lock.hcl")
        async with self._executor.cache.exclusive() as plugins:
            cached = self._base_environment() | {"TF_PLUGIN_CACHE_DIR": str(plugins)}
            error = await self._run(stage, arguments, cached)
        lock_after = _checksum(self._folder / ".terraform.lock.hcl")
        if lock_before is not None and lock_before != lock_after:
            stage.emit(
                pb.LogLevel.WARN,
                "WARN: The terraform lock file has changed. Commit it with the template to keep provider versions.",
            )
        return error

    def _describe_modules(self, complete: pb.InitComplete, request: pb.InitRequest, stage: Stage) -> None:
        path = self._folder / ".terraform" / "modules" / "modules.json"
        if not path.is_file():
            return
        try:
            listed = as_list(as_object(json.loads(path.read_bytes())).get("Modules"))
        except (ValueError, RecursionError):  # the archive's own file, which Terraform did not have to write
            listed = []
        modules = [module for module in map(as_object, listed) if module.get("Key")]
        for module in modules:
            complete.modules.add(
                source=as_text(module.get("Source")),
                version=as_text(module.get("Version")),
                key=as_text(module["Key"]),
                dir=as_text(module.get("Dir")),
            )
        if request.omit_module_files:
            return
        downloaded = self._downloaded_modules(complete)
        packed = archive.pack_modules(self._folder, downloaded)
        if len(packed) > archive.MAX_MODULES:
            stage.emit(
                pb.LogLevel.WARN, f"the module files are {len(packed)} bytes, too many to store with the version"
            )
        elif downloaded:
            complete.module_files = packed

    # --- parse
    async def parse(self, emit: Emit) -> pb.ParseComplete:
        await trio.lowlevel.checkpoint()
        try:
            template = self._template or await template_of.read_template_aside(self._folder)
            complete = pb.ParseComplete(
                template_variables=template_of.variables(template),
                workspace_tags=template_of.workspace_tags(template),
            )
        except template_of.TemplateError as problem:
            return pb.ParseComplete(error=problem.message)
        readme = self._folder / "README.md"
        if readme.is_file():
            complete.readme = readme.read_bytes()
        return complete

    # --- plan
    async def plan(self, request: pb.PlanRequest, emit: Emit) -> pb.PlanComplete:
        stage = self._stage("plan", emit)
        self._given_state = request.state
        destroy = request.metadata.workspace_transition == pb.WorkspaceTransition.DESTROY
        if request.state:
            path = self._folder / _STATE_FILE
            if path.is_dir():
                error = f"the template has a folder named {_STATE_FILE}, which is the name of the state's file"
                return pb.PlanComplete(error=error, timings=stage.finish(failed=True))
            path.touch(mode=0o600)
            path.write_bytes(request.state)
        self._nothing_to_do = destroy and not request.state
        if self._nothing_to_do:
            stage.emit(pb.LogLevel.INFO, _NOTHING_TO_DO)
            return pb.PlanComplete()
        self._variables = env_of.job_variables(
            request.metadata,
            agent_scripts(),
            parameters=request.rich_parameter_values,
            previous=request.previous_parameter_values,
            external_auth=request.external_auth_providers,
        )
        self._provider.environment = self._variables
        self._provider.planned = PlannedFacts()
        if self._template is not None and not self._upstream():
            stage.pin = explain_pin(self._template)
        error = await self._run(stage, self._plan_arguments(request, destroy), self._job_environment())
        if error:
            error = stage.pin if stage.is_pin_told else error
            return pb.PlanComplete(error=error, timings=stage.finish(failed=True))
        return await self._after_plan(request, stage)

    def _plan_arguments(self, request: pb.PlanRequest, destroy: bool) -> list[str]:
        arguments = ["plan", "-no-color", "-input=false", "-json", "-refresh=true", f"-out={_PLAN_FILE}"]
        if destroy:
            arguments.append("-destroy")
        if request.variable_values and self._template is not None:
            path = self._settings.folder / "values.tfvars"
            path.touch(mode=0o600)
            path.write_text(template_of.variables_file(self._template, request.variable_values))
            arguments.append(f"-var-file={path}")
        return arguments

    async def _after_plan(self, request: pb.PlanRequest, stage: Stage) -> pb.PlanComplete:
        self._start_graph()
        facts = self._provider.planned
        complete = pb.PlanComplete(dailyCost=facts.daily_cost, ai_task_count=facts.ai_tasks)
        self._plan_json = b""
        # A build needs the shown plan only to name replacements, or when the provider was not ours.
        if self._importing or stage.replaces or self._upstream():
            try:
                self._plan_json = await self._capture(["show", "-json", "-no-color", _PLAN_FILE])
            except ExtractError as problem:
                return pb.PlanComplete(error=problem.message, timings=stage.finish(failed=True))
            plan = json.loads(self._plan_json)
            complete.dailyCost = changes.daily_cost(plan)
            complete.ai_task_count = changes.ai_task_count(plan)
            complete.resource_replacements.extend(changes.resource_replacements(plan))
            if request.metadata.workspace_id:
                for line in changes.replacement_log(plan):
                    stage.emit(pb.LogLevel.WARN, line)
            complete.plan = self._plan_json if self._importing else b""
        complete.timings.extend(stage.finish())
        return complete

    # --- graph
    def _start_graph(self) -> None:
        """Start the graph run; it depends on the template alone, so one concurrent run serves the whole job."""
        if self._graph is not None:
            return
        self._graph = GraphRun()
        self._graph.dot = self._executor.graphs.find(self._graph_key, self._given_state) if self._graph_key else ""
        if self._graph.dot:
            self._graph.done.set()
        else:
            assert self._binary is not None  # noqa: S101 - set by init
            arguments = ["graph", *(["-type=plan"] if self._binary.graph_has_type else [])]
            runner = self._graph_runner = self._executor.runner(self._binary.path, self._folder)
            self._nursery.start_soon(self._graph.run, runner, arguments, self._base_environment(), self._keep_graph)

    def _keep_graph(self, dot: str) -> None:
        if self._graph_key:
            self._executor.graphs.store(self._graph_key, dot)

    async def graph(self, request: pb.GraphRequest, emit: Emit) -> pb.GraphComplete:
        stage = self._stage("graph", emit)
        if self._nothing_to_do:
            return pb.GraphComplete()
        self._start_graph()
        assert self._graph is not None  # noqa: S101 - just started
        await self._graph.done.wait()
        try:
            if self._graph.error:
                raise ExtractError(self._graph.error)
            if request.source == pb.GraphSource.SOURCE_STATE:
                result = extract_state_file(self.state(), self._graph.dot)
            else:
                plan = self._plan_json or await self._capture(["show", "-json", "-no-color", _PLAN_FILE])
                result = extract_plan(json.loads(plan), self._graph.dot)
        except ExtractError as problem:
            location = f" ({problem.address})" if problem.address else ""
            stage.emit(pb.LogLevel.ERROR, f"{problem.message}{location}")
            return pb.GraphComplete(error=problem.message, timings=stage.finish(failed=True))
        for warning in result.warnings:
            _log.debug(warning.message, **warning.fields)
        result.complete.timings.extend(stage.finish())
        return result.complete

    # --- apply
    async def apply(self, request: pb.ApplyRequest, emit: Emit) -> pb.ApplyComplete:
        stage = self._stage("apply", emit)
        if self._nothing_to_do:
            stage.emit(pb.LogLevel.INFO, _NOTHING_TO_DO)
            return pb.ApplyComplete()
        arguments = ["apply", "-no-color", "-auto-approve", "-input=false", "-json", _PLAN_FILE]
        error = await self._run(stage, arguments, self._job_environment())
        return pb.ApplyComplete(state=self.state(), error=error, timings=stage.finish(failed=bool(error)))


def _step(arguments: Sequence[str]) -> str:
    """Return the name of a step for errors (recorded: init has its own wording)."""
    return "initialize terraform" if arguments[0] == "init" else f"terraform {arguments[0]}"


def _checksum(path: Path) -> int | None:
    return zlib.crc32(path.read_bytes()) if path.is_file() else None


def executor_kinds(config: TerraformConfig) -> dict[str, Executor]:
    """Return the executors a daemon can offer, by provisioner type."""
    from coder.provisionerd.executors.echo import EchoExecutor

    return {"terraform": TerraformExecutor(config), "echo": EchoExecutor()}
