"""YAML documents of users, read without guessed types: a scalar keeps its text.

YAML's types depend on the version of its rules: `1.10`, `no`, `010`, `12:30:45` and `2024-01-01` are a number, a bool,
an octal number, a number to base 60 and a date to one library and texts to another. A reader of this module gets the
text that the user wrote and parses it by the type that the setting, variable or parameter declares.

| document | result |
| --- | --- |
| a scalar, plain or quoted | str |
| a plain `~`, `null`, or nothing | None |
| a sequence | list |
| a mapping | dict with the keys' texts, merged (`<<`) |

The readers: values of template variables and of parameters (files of the command line), the server's `--config` and
structured options, imported secrets. Terraform's `yamldecode` has its own types (`domain/hcl/yaml_text.py`).
"""

from __future__ import annotations

import yaml

from coder.base.json_types import Json, JsonObject

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_MERGE = "tag:yaml.org,2002:merge"
_PLAIN = "tag:coder.com,2026:plain"
_TEXT = "tag:yaml.org,2002:str"
_NULL_TAG = "tag:yaml.org,2002:null"
MAX_NODES = 100_000
"""Ours: bounds aliases of aliases, which grow exponentially."""
MAX_DEPTH = 500
"""Ours: for each bracket the scanner visits all open ones; real documents are nested about ten deep."""


class YamlError(ValueError):
    """The text is not a YAML document that can be read."""


class _Loader(yaml.SafeLoader):
    def fetch_flow_collection_start(self, TokenClass: type[yaml.Token]) -> None:  # noqa: N803 - the library's name
        if self.flow_level >= MAX_DEPTH:
            raise YamlError(f"the document is nested deeper than {MAX_DEPTH}")
        super().fetch_flow_collection_start(TokenClass)

    def resolve(self, kind: type[yaml.Node], value: str, implicit: tuple[bool, bool]) -> str:
        """Return the tag of a node that has none. Only scalars without quotes are plain."""
        if kind is yaml.ScalarNode and implicit[0]:
            return _MERGE if value == "<<" else _NULL_TAG if value in _NULL else _PLAIN
        tag: str = super().resolve(kind, value, implicit)  # type: ignore[no-untyped-call]
        return tag


def read_document(text: str) -> Json:
    """Return the first document's content; None for an empty one. Raise YamlError for a text that is not YAML, has a
    key twice in one mapping, or refers to itself."""
    return DocumentReader().read(text)


class DocumentReader:
    """Reader of one document; a subclass can give scalars types."""

    is_key_unique = True
    """Whether a key that occurs twice in a mapping is an error; otherwise the last one wins."""

    def __init__(self) -> None:
        self._left = MAX_NODES
        self._open: set[int] = set()

    def read(self, text: str) -> Json:
        """Return the content. Raise YamlError."""
        try:
            node = yaml.compose(text, Loader=_Loader)
            return self.missing() if node is None else self._value(node)
        except yaml.YAMLError as problem:
            mark = getattr(problem, "problem_mark", None)
            where = f" (line {mark.line + 1})" if mark is not None else ""
            reason = getattr(problem, "problem", None)
            raise YamlError(f"the text is not YAML{where}" + (f": {reason}" if reason else "")) from problem
        except RecursionError as problem:
            raise YamlError("the text is not YAML") from problem

    def missing(self) -> Json:
        """Return the content of a text without a document."""
        return None

    def plain(self, text: str) -> Json:
        """Return the value of a scalar without quotes that is not null."""
        return text

    def quoted(self, text: str) -> Json:
        """Return the value of a scalar in quotes, or with the tag `!!str`."""
        return text

    def key(self, text: str) -> str:
        """Return the name for a key without quotes."""
        return text

    def _value(self, node: yaml.Node) -> Json:
        self._left -= 1
        if self._left < 0 or id(node) in self._open:
            raise YamlError("the document refers to itself, or is too large")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self._value(item) for item in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _scalar(self, node: yaml.ScalarNode) -> Json:
        if node.tag == _NULL_TAG:
            return None
        return self.plain(node.value) if node.style is None and node.tag != _TEXT else self.quoted(node.value)

    def _mapping(self, node: yaml.Node) -> JsonObject:
        merged: JsonObject = {}
        own: JsonObject = {}
        for key, value in node.value:
            if key.tag == _MERGE:
                for item in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    result = self._value(item)
                    if not isinstance(result, dict):
                        raise YamlError("only mappings can be merged")
                    merged = {**result, **merged}
            elif isinstance(key, yaml.ScalarNode):
                name = self.key(key.value) if key.tag == _PLAIN else key.value
                if name in own and self.is_key_unique:
                    raise YamlError(f"the key {name} occurs twice (line {key.start_mark.line + 1})")
                own[name] = self._value(value)
            else:
                raise YamlError("only texts can be keys")
        return {**merged, **own}
