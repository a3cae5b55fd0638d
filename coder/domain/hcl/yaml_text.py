"""YAML as Terraform reads it: YAML 1.1 words, but no 1.1 numbers; keys are text, times are RFC 3339."""

from __future__ import annotations

import re
from typing import Any

import yaml

from coder.domain.hcl.values import EvaluationError, Value, read_number, to_text, well_formed

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_INTEGER = re.compile(r"0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\d+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?", re.ASCII)
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?", re.ASCII)
_MAX_NODES = 100_000
"""Ours: bounds aliases of aliases, which grow exponentially."""
_MAX_DEPTH = 500
"""Ours: for each bracket the scanner visits all open ones; real documents are nested about ten deep."""


class _Loader(yaml.SafeLoader):
    def fetch_flow_collection_start(self, TokenClass: Any) -> None:  # noqa: N803 - the library's name
        if self.flow_level >= _MAX_DEPTH:
            raise EvaluationError(f"the document is nested deeper than {_MAX_DEPTH}")
        super().fetch_flow_collection_start(TokenClass)


def read_yaml_untrusted(text: str) -> Value:
    """Parse one document. Raises EvaluationError."""
    try:
        node = yaml.compose(text, Loader=_Loader)
        if node is None:
            raise EvaluationError("missing start of document")
        return _Reader().value(node)
    except (yaml.YAMLError, RecursionError) as problem:
        raise EvaluationError("the text is not YAML") from problem


class _Reader:
    def __init__(self) -> None:
        self._left = _MAX_NODES
        self._open: set[int] = set()

    def value(self, node: yaml.Node) -> Value:
        self._left -= 1
        if self._left < 0 or id(node) in self._open:
            raise EvaluationError("the document refers to itself, or is too large")
        if isinstance(node, yaml.ScalarNode):
            return _scalar(node)
        self._open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.value(item) for item in node.value]
            return self._mapping(node)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node) -> Value:
        merged: dict[str, Value] = {}
        own: dict[str, Value] = {}
        for key, value in node.value:
            if key.tag == "tag:yaml.org,2002:merge":
                for item in value.value if isinstance(value, yaml.SequenceNode) else [value]:
                    result = self.value(item)
                    if not isinstance(result, dict):
                        raise EvaluationError("only mappings can be merged")
                    merged = {**result, **merged}
            elif isinstance(key, yaml.ScalarNode):
                name = _scalar(key)
                own[key.value if name is None else to_text(name)] = self.value(value)
            else:
                raise EvaluationError("only texts can be keys")
        return {**merged, **own}


def _scalar(node: yaml.ScalarNode) -> Value:
    text = well_formed(node.value)
    if node.style is not None:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in {"0b", "0o", "0x"} else read_number(text)
    if _FLOAT.fullmatch(text):
        return read_number(text)
    if _ENDLESS.fullmatch(text):
        raise EvaluationError("infinity and NaN are not supported")
    return f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text
