"""Names in one module of a template: variables, locals, data sources, resources, modules.

Values are evaluated on first use and cached; a value that depends on itself is unknown.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from coder.domain.hcl import tree
from coder.domain.hcl import values as v
from coder.domain.hcl.evaluate import evaluate, pairs
from coder.domain.hcl.functions import function_table
from coder.domain.hcl.scope import EvaluationBudget, EvaluationScope
from coder.domain.hcl.types import convert
from coder.domain.hcl.values import UNKNOWN, UNTYPED, EvaluationError, Namespace, Value, to_json
from coder.domain.rendering.sources import Files, Located, TemplateSource, module_folder, read_source, variable_files


@dataclass(frozen=True, slots=True)
class RenderRequest:
    """Inputs of a rendering besides the files."""

    inputs: Mapping[str, str] = field(default_factory=dict)
    """Submitted parameter values, by parameter name."""
    owner: Mapping[str, Value] = field(default_factory=dict)
    variables: Mapping[str, str] = field(default_factory=dict)
    "Values stored with the template version."
    new_id: Callable[[], str] = lambda: "00000000-0000-4000-8000-000000000000"


@dataclass(frozen=True, slots=True)
class Instance:
    """Expansion of a block."""

    world: ModuleScope
    located: Located
    scope: EvaluationScope
    key: Value = None
    """None, a number (count) or a string (for_each)."""

    @property
    def label(self) -> str:
        return self.located.block.labels[1]

    @property
    def reference(self) -> str:
        """Return the name in messages, e.g. `data.coder_parameter.port.[web]`, with the module's address."""
        return f"{self.world.address}{self.local_reference}"

    @property
    def local_reference(self) -> str:
        """Return the name inside its module, as unknown values are shown."""
        index = "" if self.key is None else f".[{self.key}]"
        return f"data.{'.'.join(self.located.block.labels)}{index}"

    def attribute(self, name: str) -> tree.Expression | None:
        return self.located.block.body.attributes.get(name)


class _Namespace(Namespace):
    """Namespace whose members a function computes."""

    def __init__(self, compute: Callable[[str], Value]) -> None:
        self._compute = compute

    def member(self, name: str) -> Value:
        return self._compute(name)


class ModuleScope:
    """Module of a template. The root has no parent; parameters of all modules share the request."""

    def __init__(
        self,
        files: Files,
        source: TemplateSource,
        request: RenderRequest,
        address: str = "",
        arguments: Mapping[str, Value] | None = None,
        budget: EvaluationBudget | None = None,
        path: tuple[str, ...] = (),
    ) -> None:
        self.address = address
        self._path = path
        self.source = source
        self.request = request
        self._files = files
        self._arguments = arguments
        self._memory: dict[tuple[str, ...], Value] = {}
        self._running: set[tuple[str, ...]] = set()
        self._expanding = 0
        self._children: dict[str, dict[Value, ModuleScope] | None] = {}
        self.scope = EvaluationScope(self._names(), function_table(_by_path(files)), budget or EvaluationBudget())

    # --- names
    def _names(self) -> dict[str, Value]:
        folder = self.source.folder or "."
        names: dict[str, Value] = {
            "var": _Namespace(lambda name: self._cached(("var", name), lambda: self._variable(name))),
            "local": _Namespace(self._local),
            "data": _Namespace(lambda kind: _Namespace(lambda name: self._data(kind, name))),
            "module": _Namespace(self._module),
            "path": {"module": folder, "root": ".", "cwd": "."},
            "terraform": {"workspace": "default"},
        }
        for located in self.source.of("resource"):
            if len(located.block.labels) == 2:
                kind = located.block.labels[0]
                names[kind] = _Namespace(lambda name, kind=kind: self._resource(kind, name))  # type: ignore[misc]
        return names

    def _cached(self, key: tuple[str, ...], compute: Callable[[], Value]) -> Value:
        if key in self._memory:
            return self._memory[key]
        if key in self._running:
            return UNTYPED  # depends on itself
        self._running.add(key)
        try:
            value = compute()
        finally:
            self._running.discard(key)
        if not self._expanding:
            self._memory[key] = value
        return value

    def evaluate(self, expression: tree.Expression | None, scope: EvaluationScope | None = None) -> Value:
        """Return the value; UNTYPED for an expression without one, None for no expression."""
        if expression is None:
            return None
        try:
            return evaluate(expression, scope or self.scope)
        except (EvaluationError, RecursionError):
            return UNTYPED

    # --- variables and locals
    def _variable(self, name: str) -> Value:
        located = next(self.source.of("variable", name), None)
        if located is None:
            raise EvaluationError(f'no variable "{name}"')
        body = located.block.body.attributes
        kind = body.get("type")
        default: Value = self.evaluate(body["default"]) if "default" in body else UNKNOWN
        value = self._given(name, kind, default)
        if value is None and self.evaluate(body.get("nullable")) is False:
            value = default
        try:
            return convert(value, kind, self.evaluate)
        except EvaluationError:
            return UNTYPED

    def _given(self, name: str, kind: tree.Expression | None, default: Value) -> Value:
        """Return the value from the caller, the request or the template's variable files, in this order."""
        if self._arguments is not None:
            return self._arguments.get(name, default)
        if name in self.request.variables:
            return self._parsed(self.request.variables[name], kind)
        value = default
        for attributes in variable_files(self._files):
            if name in attributes:
                value = self.evaluate(attributes[name])
        return value

    def _parsed(self, text: str, kind: tree.Expression | None) -> Value:
        """Parse a text value: as an expression for a structural type, unchanged for any other."""
        if not isinstance(kind, tree.FunctionCall):
            return text
        from coder.domain.hcl.lexer import HclError
        from coder.domain.hcl.parser import parse_expression_untrusted

        try:
            return self.evaluate(parse_expression_untrusted(text))
        except HclError:
            return UNTYPED

    def _local(self, name: str) -> Value:
        expression = self.source.locals().get(name)
        if expression is None:
            raise EvaluationError(f'no local value "{name}"')
        # A for_each is expanded before local values that depend on parameters are known.
        if self._expanding and self._depends_on_parameters(expression, frozenset()):
            return UNTYPED
        return self._cached(("local", name), lambda: evaluate(expression, self.scope))

    def _depends_on_parameters(self, expression: object, seen: frozenset[str]) -> bool:
        if isinstance(expression, tree.HclAttribute):
            match expression.of:
                case tree.Variable(name="data") if expression.name == "coder_parameter":
                    return True
                case tree.Variable(name="local") if expression.name not in seen:
                    inner = self.source.locals().get(expression.name)
                    return self._depends_on_parameters(inner, seen | {expression.name})
        return any(self._depends_on_parameters(child, seen) for child in _children(expression))

    # --- modules
    def _module(self, name: str) -> Value:
        located = next(self.source.of("module", name), None)
        if located is None:
            raise EvaluationError(f'no module "{name}"')
        children = self.children(name)
        if children is None:
            return UNTYPED
        results = {key: _Namespace(child.output) for key, child in children.items()}
        attributes = located.block.body.attributes
        if "for_each" in attributes:
            return {str(key): value for key, value in results.items()}
        return list(results.values()) if "count" in attributes else results.get(None, UNTYPED)

    def children(self, name: str) -> dict[Value, ModuleScope] | None:
        """Return the instances of the module called `name` by their keys, None when its files are missing."""
        if name not in self._children:
            self._children[name] = {}  # a module that depends on itself has none
            self._children[name] = self._load_children(name)
        return self._children[name]

    def _load_children(self, name: str) -> dict[Value, ModuleScope] | None:
        located = next(self.source.of("module", name), None)
        if located is None or len(self._path) > _MAX_DEPTH:
            return None
        attributes = located.block.body.attributes
        module_source = self.evaluate(attributes.get("source"))
        path = (*self._path, name)
        key = ".".join(path)
        folder = (
            module_folder(self._files, self.source.folder, module_source, key)
            if isinstance(module_source, str)
            else None
        )
        if folder is None:
            return None
        source = read_source(self._files, folder)
        results: dict[Value, ModuleScope] = {}
        for instance in self.expand(located):
            try:
                self.scope.budget.spend(_COST_OF_MODULE)
            except EvaluationError:
                break
            index = "" if instance.key is None else f"[{to_json(instance.key)}]"
            arguments = _LazyArguments(self, attributes, instance.scope)
            address = f"{self.address}module.{name}{index}."
            results[instance.key] = ModuleScope(
                self._files, source, self.request, address, arguments, self.scope.budget, path
            )
        return results

    def output(self, name: str) -> Value:
        located = next(self.source.of("output", name), None)
        if located is None:
            raise EvaluationError(f'no output "{name}"')
        expression = located.block.body.attributes.get("value")
        return self._cached(("output", name), lambda: None if expression is None else evaluate(expression, self.scope))

    # --- data and resources
    def _data(self, kind: str, name: str) -> Value:
        located = next(self.source.of("data", kind, name), None)
        if located is None:
            raise EvaluationError(f'no data source "{kind}.{name}"')
        if kind == "coder_parameter":
            return self._collected(located, self._parameter_object)
        if kind == "coder_workspace_owner":
            return _Namespace(self._owner)
        return _Namespace(lambda _attribute: UNTYPED)

    def _owner(self, name: str) -> Value:
        value = self.request.owner.get(name, UNKNOWN)
        if name in {"groups", "rbac_roles"}:
            return value or []
        return UNKNOWN if value is None or name.endswith("token") else value

    def _resource(self, kind: str, name: str) -> Value:
        located = next(self.source.of("resource", kind, name), None)
        if located is None:
            raise EvaluationError(f'no resource "{kind}.{name}"')
        new_id = self._cached(("resource", kind, name), self.request.new_id)
        return _Namespace(lambda attribute: new_id if attribute == "id" else UNTYPED)

    def _collected(self, located: Located, compute: Callable[[Instance], Value]) -> Value:
        attributes = located.block.body.attributes
        instances = self.expand(located)
        if "for_each" in attributes:
            return {str(instance.key): compute(instance) for instance in instances}
        if "count" in attributes:
            return [compute(instance) for instance in instances]
        return compute(instances[0])

    def _parameter_object(self, instance: Instance) -> Value:

        def member(name: str) -> Value:
            if name == "value":
                key = ("parameter", instance.reference)
                return self._cached(key, lambda: parameter_value(instance))
            if name == "id":
                return self._cached(("id", instance.reference), self.request.new_id)
            expression = instance.attribute(name)
            return None if expression is None else evaluate(expression, instance.scope)

        return _Namespace(member)

    def expand(self, located: Located) -> list[Instance]:
        """Return the instances of a block, as count and for_each define."""
        attributes = located.block.body.attributes
        if "count" in attributes:
            count = self.evaluate(attributes["count"])
            if v.is_unknown(count):
                count = 1  # usually start_count
            if not isinstance(count, int | float | bool | str):
                return []
            try:
                total = min(int(v.to_number(count)), _MAX_INSTANCES)
            except EvaluationError:
                return []
            return [Instance(self, located, self.scope.with_names(count={"index": i}), i) for i in range(total)]
        if "for_each" in attributes:
            self._expanding += 1
            try:
                collection = self.evaluate(attributes["for_each"])
            finally:
                self._expanding -= 1
            if v.is_unknown(collection) or not isinstance(collection, dict | list):
                return []
            return [
                Instance(self, located, self.scope.with_names(each={"key": key, "value": value}), key)
                for key, value in pairs(collection)[:_MAX_INSTANCES]
            ]
        return [Instance(self, located, self.scope)]

    def walk(self) -> list[ModuleScope]:
        """Return this module and all modules below it."""
        names = [item.block.labels[0] for item in self.source.of("module") if item.block.labels]
        children = [child for name in names for child in (self.children(name) or {}).values()]
        return [self, *(inner for child in children for inner in child.walk())]


_MAX_DEPTH = 20
_COST_OF_MODULE = 1000
"""Ours, from the budget of a rendering: a thousand module instances are a mistake, or an attack."""
_MAX_INSTANCES = 1000
"Ours: a form with more fields is a mistake, or an attack."


class _LazyArguments(Mapping[str, Value]):
    """Arguments of a module call, evaluated in the caller on first use."""

    def __init__(self, world: ModuleScope, attributes: Mapping[str, tree.Expression], scope: EvaluationScope) -> None:
        self._world = world
        self._attributes = attributes
        self._scope = scope

    def __getitem__(self, name: str) -> Value:
        return self._world.evaluate(self._attributes[name], self._scope)

    def __contains__(self, name: object) -> bool:
        return name in self._attributes

    def __iter__(self) -> Iterator[str]:
        return iter(self._attributes)

    def __len__(self) -> int:
        return len(self._attributes)


def _children(expression: object) -> list[object]:
    if isinstance(expression, tuple | list):
        return list(expression)
    if isinstance(expression, tree.Expression):
        return [getattr(expression, name) for name in expression.__dataclass_fields__ if name != "span"]
    return []


def _by_path(files: Files) -> dict[str, bytes]:
    """Return the files under the names expressions use: relative to the root, where terraform runs."""
    return {posixpath.normpath(name): data for name, data in files.items()}


def parameter_value(instance: Instance) -> Value:
    """Return the value of `data.coder_parameter.x.value`: text, None, or unknown."""
    name = instance.world.evaluate(instance.attribute("name"), instance.scope)
    if isinstance(name, str) and name in instance.world.request.inputs:
        return instance.world.request.inputs[name]
    default = instance.world.evaluate(instance.attribute("default"), instance.scope)
    if default is None:
        # Required and missing: an expression that uses it has no value either.
        return UNTYPED
    return default if v.is_unknown(default) else as_text(default)


def as_text(value: Value) -> Value:
    try:
        return v.to_text(value)
    except EvaluationError:
        return UNTYPED
