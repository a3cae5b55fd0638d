"""Provider instance: plugin protocol 5 requests in, responses out.

Terraform opens one connection per provider block, so one instance serves one connection and keeps its configuration. No
I/O here; `serving.py` carries the messages, `catalog.py` has the types.
"""

from __future__ import annotations

import json
import platform
import sys
import uuid
from collections.abc import Callable, Iterable, Mapping
from functools import cache
from typing import Never, cast

from google.protobuf.message import Message

from coder.domain.foundation.go_url import url_problem
from coder.provisionerd.terraform.provider import behaviour, catalog
from coder.provisionerd.terraform.provider.diagnostics import Diagnostic, Path, error, has_errors
from coder.provisionerd.terraform.provider.kinds import ProviderContext
from coder.provisionerd.terraform.provider.proto import tfplugin5_pb2 as wire
from coder.provisionerd.terraform.provider.readers import checked_object, checked_text
from coder.provisionerd.terraform.provider.schema import Body, to_wire
from coder.provisionerd.terraform.provider.values import UNKNOWN, Value, ValueObject, decode, encode

_DEFAULT_URL = "https://mydeployment.coder.com"

Handler = Callable[[Never], Message]


class TerraformProvider:
    """Provider with the environment of one job and the configuration of one provider block."""

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        new_id: Callable[[], str] = lambda: str(uuid.uuid4()),
        on_planned: Callable[[str, ValueObject], None] = lambda _type, _planned: None,
    ) -> None:
        """`on_planned` receives (type, planned state) of every resource that a plan keeps or creates."""
        self._on_planned = on_planned
        self._environment = environment
        self._new_id = new_id
        self._url = ""
        self.methods: dict[str, tuple[type[Message], Handler]] = {
            "GetMetadata": (wire.GetMetadata.Request, self._get_metadata),
            "GetSchema": (wire.GetProviderSchema.Request, lambda _request: _schema_response()),
            "GetFunctions": (wire.GetFunctions.Request, lambda _request: wire.GetFunctions.Response()),
            "PrepareProviderConfig": (wire.PrepareProviderConfig.Request, self._prepare),
            "Configure": (wire.Configure.Request, self._configure),
            "ValidateResourceTypeConfig": (wire.ValidateConfig.Request, self._validate_resource),
            "ValidateDataSourceConfig": (wire.ValidateConfig.Request, self._validate_data),
            "UpgradeResourceState": (wire.UpgradeResourceState.Request, self._upgrade),
            "ReadResource": (wire.ReadResource.Request, self._read_resource),
            "PlanResourceChange": (wire.PlanResourceChange.Request, self._plan),
            "ApplyResourceChange": (wire.ApplyResourceChange.Request, self._apply),
            "ImportResourceState": (wire.ImportResourceState.Request, self._import),
            "ReadDataSource": (wire.ReadDataSource.Request, self._read_data),
            "Stop": (wire.Stop.Request, lambda _request: wire.Stop.Response()),
        }
        """Short method name of service tfplugin5.Provider -> (request type, handler)."""

    def call(self, method: str, body: bytes) -> bytes:
        """Answer one request. Raises KeyError for a method this protocol does not have."""
        request_type, handler = self.methods[method]
        request = request_type()
        request.ParseFromString(body)
        answer = cast("Callable[[Message], Message]", handler)  # it takes the type that it is listed with
        return answer(request).SerializeToString()

    # --- the provider itself
    def _get_metadata(self, _request: wire.GetMetadata.Request) -> Message:
        type_entry = wire.GetMetadata.TypeName
        return wire.GetMetadata.Response(
            server_capabilities=_CAPABILITIES,
            data_sources=[type_entry(type_name=name) for name in catalog.DATA_SOURCES],
            resources=[type_entry(type_name=name) for name in catalog.RESOURCES],
        )

    def _chosen_url(self, config: Value) -> Value:
        url_given = checked_object(config or {}).get("url")
        return url_given if url_given is not None else self._environment.get("CODER_AGENT_URL") or _DEFAULT_URL

    def _prepare(self, request: wire.PrepareProviderConfig.Request) -> Message:
        url = self._chosen_url(_value(request.config))
        problem = "" if url is UNKNOWN else url_problem(checked_text(url))
        problems = [error(problem, "", ("url",))] if problem else []
        return wire.PrepareProviderConfig.Response(prepared_config=request.config, diagnostics=_diagnostics(problems))

    def _configure(self, request: wire.Configure.Request) -> Message:
        url = self._chosen_url(_value(request.config))
        self._url = "" if url is UNKNOWN else checked_text(url)
        problems = [] if self._url else [error('CODER_AGENT_URL must not be empty; got ""')]
        return wire.Configure.Response(diagnostics=_diagnostics(problems))

    def _context(self) -> ProviderContext:
        return ProviderContext(self._environment, self._url, self._new_id, _os_name(), _arch_name())

    # --- validate, upgrade
    def _validate_resource(self, request: wire.ValidateConfig.Request) -> Message:
        return _validated(catalog.RESOURCES[request.type_name].schema.body, request)

    def _validate_data(self, request: wire.ValidateConfig.Request) -> Message:
        return _validated(catalog.DATA_SOURCES[request.type_name].schema.body, request)

    def _upgrade(self, request: wire.UpgradeResourceState.Request) -> Message:
        body = catalog.RESOURCES[request.type_name].schema.body
        stored = json.loads(request.raw_state.json) if request.raw_state.json else dict(request.raw_state.flatmap)
        return wire.UpgradeResourceState.Response(
            upgraded_state=_packed(behaviour.upgraded(body, checked_object(stored)))
        )

    # --- resources
    def _read_resource(self, request: wire.ReadResource.Request) -> Message:
        state = _value(request.current_state)
        refresh = catalog.RESOURCES[request.type_name].refresh
        if state is not None and refresh is not None:
            refresh(self._context(), checked_object(state))
        return wire.ReadResource.Response(new_state=_packed(state), private=request.private)

    def _plan(self, request: wire.PlanResourceChange.Request) -> Message:
        kind = catalog.RESOURCES[request.type_name]
        proposed = _value(request.proposed_new_state)
        if proposed is None:
            return wire.PlanResourceChange.Response(planned_state=_packed(None), legacy_type_system=True)
        prior = _value(request.prior_state)
        prior_object = None if prior is None else checked_object(prior)
        planned, replaced = behaviour.plan(kind.schema.body, prior_object, checked_object(proposed))
        problems = list(kind.plan(self._context(), _configured(request.config), planned)) if kind.plan else []
        if not replaced:  # a replacement is planned once more, as a creation
            self._on_planned(request.type_name, planned)
        return wire.PlanResourceChange.Response(
            planned_state=_packed(planned),
            requires_replace=[_path(path) for path in replaced],
            planned_private=request.prior_private,
            diagnostics=_diagnostics(problems),
            # Core would reject results of the older SDK's behaviour, such as an unknown set of blocks.
            legacy_type_system=True,
        )

    def _apply(self, request: wire.ApplyResourceChange.Request) -> Message:
        kind = catalog.RESOURCES[request.type_name]
        planned = _value(request.planned_state)
        if planned is None:
            return wire.ApplyResourceChange.Response(new_state=_packed(None), legacy_type_system=True)
        state = behaviour.applied(kind.schema.body, checked_object(planned))
        problems: list[Diagnostic] = []
        if _value(request.prior_state) is None:
            state["id"] = state["id"] or self._new_id()
            if kind.create:
                problems = list(kind.create(self._context(), _configured(request.config), state))
        return wire.ApplyResourceChange.Response(
            # A failed creation still leaves its state: Terraform marks it tainted and replaces it next time.
            new_state=_packed(state),
            private=request.planned_private,
            diagnostics=_diagnostics(problems),
            legacy_type_system=True,
        )

    def _import(self, request: wire.ImportResourceState.Request) -> Message:
        problems = [error("resource does not support import", f"{request.type_name} cannot be imported.")]
        return wire.ImportResourceState.Response(diagnostics=_diagnostics(problems))

    # --- data sources
    def _read_data(self, request: wire.ReadDataSource.Request) -> Message:
        kind = catalog.DATA_SOURCES[request.type_name]
        config = checked_object(_value(request.config))
        state = behaviour.data_state(kind.schema, config)
        problems = list(kind.read(self._context(), config, state))
        return wire.ReadDataSource.Response(
            state=_packed(None if has_errors(problems) else state), diagnostics=_diagnostics(problems)
        )


_CAPABILITIES = wire.ServerCapabilities(get_provider_schema_optional=True)


@cache
def _schema_response() -> wire.GetProviderSchema.Response:
    response = wire.GetProviderSchema.Response(provider=to_wire(catalog.PROVIDER), server_capabilities=_CAPABILITIES)
    for name, kind in catalog.RESOURCES.items():
        response.resource_schemas[name].CopyFrom(to_wire(kind.schema))
    for name, data in catalog.DATA_SOURCES.items():
        response.data_source_schemas[name].CopyFrom(to_wire(data.schema))
    return response


def _validated(body: Body, request: wire.ValidateConfig.Request) -> Message:
    problems = behaviour.validate(body, checked_object(_value(request.config)))
    return wire.ValidateConfig.Response(diagnostics=_diagnostics(problems))


def _value(dynamic: wire.DynamicValue) -> Value:
    return decode(dynamic.msgpack, dynamic.json)


def _configured(dynamic: wire.DynamicValue) -> ValueObject:
    return checked_object(_value(dynamic) or {})


def _packed(value: Value) -> wire.DynamicValue:
    return wire.DynamicValue(msgpack=encode(value))


def _path(path: Path) -> wire.AttributePath:
    step = wire.AttributePath.Step
    steps = [step(attribute_name=part) if isinstance(part, str) else step(element_key_int=part) for part in path]
    return wire.AttributePath(steps=steps)


def _diagnostics(problems: Iterable[Diagnostic]) -> list[wire.Diagnostic]:
    return [
        wire.Diagnostic(
            severity=wire.Diagnostic.ERROR if diagnostic.severity == 1 else wire.Diagnostic.WARNING,
            summary=diagnostic.summary,
            detail=diagnostic.detail,
            attribute=_path(diagnostic.path) if diagnostic.path else None,
        )
        for diagnostic in problems
    ]


def platform_name() -> str:
    """Return this machine's platform in terraform's form, e.g. linux_amd64."""
    return f"{_os_name()}_{_arch_name()}"


def _os_name() -> str:
    """Return the operating system's name in Go."""
    return {"win32": "windows"}.get(sys.platform, sys.platform)


_ARCHITECTURES = {"x86_64": "amd64", "amd64": "amd64", "aarch64": "arm64", "arm64": "arm64", "i686": "386"}


def _arch_name() -> str:
    """Return the architecture's name in Go, except that 32-bit arm is armv7 here."""
    machine = platform.machine().lower()
    return _ARCHITECTURES.get(machine, "armv7" if machine.startswith("arm") else machine)
