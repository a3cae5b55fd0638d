"""The long-lived objects of a server process: `Services`, built by role in a visible order.

Lives here: which objects exist, which role needs them, and what each is built from. Does not live here: opening the
database and the listeners, and the order in which a server starts (`app.py`). Objects are built without a database and
start no task; `start_services` starts the tasks of those that have some. Code reaches them as fields of
`Context.services`, as in `ctx.services.api.job_queue`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from coder.appproxy.apps.upstream import AppPool
from coder.appproxy.http.rate_limits import RateLimits
from coder.coderd.http.server.body_bounds import BodyBudget
from coder.coderd.http.server.swagger import ApiDescription
from coder.coderd.rpc_endpoints.absent_clients import AbsentClients
from coder.coderd.services.access.auth_cache import AuthCache
from coder.coderd.services.access.rights_changes import RightsChanges
from coder.coderd.services.access.session_revocation import SessionRegistry
from coder.coderd.services.activity.last_use import LastUse
from coder.coderd.services.agents.agent_connections import AgentConnections
from coder.coderd.services.agents.instance_identity import Clouds
from coder.coderd.services.agents.report_batches import ReportBatches
from coder.coderd.services.agents.report_budgets import ReportBudgets
from coder.coderd.services.agents.speed_tests import SpeedTests
from coder.coderd.services.apps.admission_cache import AdmissionCache
from coder.coderd.services.apps.app_streams import OpenStreams
from coder.coderd.services.apps.app_usage import AppUsage
from coder.coderd.services.foundation.deferred_work import DeferredWork
from coder.coderd.services.foundation.encryption_at_rest import Sealer
from coder.coderd.services.foundation.sandbox import Sandbox
from coder.coderd.services.foundation.signing_keys import SigningKeys
from coder.coderd.services.foundation.this_replica import ThisReplica
from coder.coderd.services.login.oidc import OidcProvider
from coder.coderd.services.login.provider_tokens import LinkWaits
from coder.coderd.services.network.agent_admission import AgentAdmission
from coder.coderd.services.network.carried_streams import CarriedStreams
from coder.coderd.services.network.coordinator import Coordinator
from coder.coderd.services.network.derp_map import RelayMap
from coder.coderd.services.network.relay import Relay
from coder.coderd.services.network.replicas import Replicas
from coder.coderd.services.notifications.push_services import PushServices
from coder.coderd.services.provisioning.daemon_health import OwnHost
from coder.coderd.services.provisioning.job_handlers import JobHandler, JobHandlers
from coder.coderd.services.provisioning.job_logs import JobChanges
from coder.coderd.services.provisioning.job_queue import JobQueue
from coder.coderd.services.proxies.proxy_health import ProxyHealth
from coder.coderd.services.site.binaries import Binaries
from coder.coderd.services.site.health import HealthReports
from coder.coderd.services.site.profiling import Profiling
from coder.coderd.services.site.release_check import ReleaseCheck
from coder.coderd.services.telemetry.metrics import Metrics
from coder.coderd.services.telemetry.tracing import Tracing, is_enabled
from coder.coderd.services.templates.imports.module_files import ModuleFiles
from coder.coderd.services.templates.imports.version_jobs import DryRunJobs, ImportJobs
from coder.coderd.services.templates.insights import StatsCache
from coder.coderd.services.templates.template_figures import TemplateFigures
from coder.coderd.services.workspaces.builds.build_jobs import BuildJobs
from coder.coderd.services.workspaces.builds.build_updates import BuildUpdates
from coder.coderd.services.workspaces.change_feed import WorkspaceChangeFeed
from coder.coderd.services.workspaces.previews.preview_jobs import PreviewJobs
from coder.coderd.services.workspaces.workspace_streams import Snapshots

if TYPE_CHECKING:
    import trio

    from coder.coderd.services.foundation.context import Context
    from coder.coderd.services.wireguard.wireguard_service import WireguardService
    from coder.domain.provisioning.jobs import JobType


@dataclass(slots=True, kw_only=True)
class RelayServices:
    """The role relay: DERP, and the coordination of peers and replicas."""

    derp: Relay
    coordinator: Coordinator
    replicas: Replicas
    carried_streams: CarriedStreams
    absent_clients: AbsentClients


@dataclass(slots=True, kw_only=True)
class EdgeServices:
    """The role edge: applications, terminals and the WireGuard gateway."""

    app_pool: AppPool
    app_usage: AppUsage
    app_admissions: AdmissionCache
    open_streams: OpenStreams
    wireguard: WireguardService | None = None
    "The running gateway; None until it is open, or without one."


@dataclass(slots=True, kw_only=True)
class ApiServices:
    """The role api: the HTTP API, agents' calls and provisioner daemons. The loops use them, too."""

    body_budget: BodyBudget
    description: ApiDescription
    sandbox: Sandbox
    # Logins
    oidc: OidcProvider
    link_waits: LinkWaits
    # Provisioning
    job_queue: JobQueue
    job_handlers: JobHandlers
    job_changes: JobChanges
    own_host: OwnHost
    # Templates
    module_files: ModuleFiles
    template_figures: TemplateFigures
    deployment_stats: StatsCache
    # Workspaces and agents
    workspace_changes: WorkspaceChangeFeed
    workspace_snapshots: Snapshots
    build_updates: BuildUpdates
    agent_connections: AgentConnections
    agent_admission: AgentAdmission
    report_batches: ReportBatches
    report_budgets: ReportBudgets
    clouds: Clouds
    speed_tests: SpeedTests
    # The site
    proxy_health: ProxyHealth
    push_services: PushServices
    health_reports: HealthReports
    profiling: Profiling
    binaries: Binaries
    release_check: ReleaseCheck


@dataclass(slots=True, kw_only=True)
class Services:
    """The objects of every role as fields, those of one role in a field for the role."""

    sealer: Sealer
    signing_keys: SigningKeys
    this_replica: ThisReplica
    deferred_work: DeferredWork
    metrics: Metrics
    tracing: Tracing | None
    "None when tracing is off."
    rate_limits: RateLimits
    auth_cache: AuthCache
    rights_changes: RightsChanges
    sessions: SessionRegistry
    last_use: LastUse
    relay_map: RelayMap
    relay: RelayServices
    edge: EdgeServices
    api: ApiServices
    metrics_port: int | None = None
    "Port of the listener for Prometheus; None until it is open, or without one."
    profiles_port: int | None = None
    "Port of the listener for profiles; None until it is open, or without one."


def build_services(ctx: Context) -> Services:
    """Build the services of all roles; needs the configuration and the clock alone. Raises CoderError for an unusable
    encryption key."""
    this_replica = ThisReplica(ctx)
    return Services(
        sealer=Sealer(ctx),
        signing_keys=SigningKeys(ctx),
        this_replica=this_replica,
        deferred_work=DeferredWork(ctx),
        metrics=Metrics(ctx),
        tracing=Tracing(ctx) if is_enabled(ctx.config) else None,
        rate_limits=RateLimits(ctx),
        auth_cache=AuthCache(ctx),
        rights_changes=RightsChanges(ctx),
        sessions=SessionRegistry(ctx),
        last_use=LastUse(ctx),
        relay_map=RelayMap(ctx),
        relay=_relay_services(ctx, this_replica),
        edge=_edge_services(ctx),
        api=_api_services(ctx),
    )


def _edge_services(ctx: Context) -> EdgeServices:
    return EdgeServices(
        app_pool=AppPool(ctx),
        app_usage=AppUsage(ctx),
        app_admissions=AdmissionCache(ctx),
        open_streams=OpenStreams(ctx),
    )


def _relay_services(ctx: Context, this_replica: ThisReplica) -> RelayServices:
    return RelayServices(
        derp=Relay(),
        coordinator=Coordinator(ctx, this_replica),
        replicas=Replicas(ctx, this_replica),
        carried_streams=CarriedStreams(ctx),
        absent_clients=AbsentClients(ctx),
    )


def _api_services(ctx: Context) -> ApiServices:
    module_files = ModuleFiles(ctx)
    workspace_changes = WorkspaceChangeFeed(ctx)
    return ApiServices(
        body_budget=BodyBudget(),
        description=ApiDescription(),
        sandbox=Sandbox(ctx),
        oidc=OidcProvider(ctx),
        link_waits=LinkWaits(ctx),
        job_queue=JobQueue(ctx),
        job_handlers=build_job_handlers(ctx, module_files),
        job_changes=JobChanges(ctx),
        own_host=OwnHost(ctx),
        module_files=module_files,
        template_figures=TemplateFigures(ctx),
        deployment_stats=StatsCache(ctx),
        workspace_changes=workspace_changes,
        workspace_snapshots=Snapshots(ctx, workspace_changes),
        build_updates=BuildUpdates(ctx),
        agent_connections=AgentConnections(ctx),
        agent_admission=AgentAdmission(ctx.clock.monotonic, ctx.process.overload),
        report_batches=ReportBatches(ctx),
        report_budgets=ReportBudgets(ctx),
        clouds=Clouds(ctx),
        speed_tests=SpeedTests(),
        proxy_health=ProxyHealth(ctx),
        push_services=PushServices(ctx),
        health_reports=HealthReports(ctx),
        profiling=Profiling(ctx),
        binaries=Binaries(ctx),
        release_check=ReleaseCheck(ctx),
    )


def build_job_handlers(ctx: Context, module_files: ModuleFiles) -> JobHandlers:
    """Return the handler for each type of job; the queue itself knows daemons alone."""
    imports: JobType = "template_version_import"
    dry_runs: JobType = "template_version_dry_run"
    builds: JobType = "workspace_build"
    by_type: dict[str, JobHandler] = {
        imports: ImportJobs(ctx, module_files),
        dry_runs: DryRunJobs(ctx),
        builds: BuildJobs(ctx),
    }
    return JobHandlers(by_type, PreviewJobs(ctx))


def start_services(services: Services, nursery: trio.Nursery) -> None:
    """Start the tasks of the services in `nursery`; they run until it is cancelled."""
    services.deferred_work.start(nursery)  # here, so that it belongs to no request
    services.auth_cache.start(nursery)
    services.rights_changes.start(nursery)
    services.sessions.start(nursery)
    services.edge.app_admissions.start(nursery)
    services.edge.open_streams.start(nursery)
    services.api.sandbox.start(nursery)
    services.api.link_waits.start(nursery)
    services.api.job_queue.start(nursery)
    services.api.job_changes.start(nursery)
    services.api.workspace_changes.start(nursery)
    services.api.build_updates.start(nursery)
