"""YAML as Terraform reads it: YAML 1.1 words, but no 1.1 numbers; keys are text, times are RFC 3339."""

from __future__ import annotations

import re
from typing import NoReturn

from coder.base.json_types import Json
from coder.base.yaml_documents import DocumentReader, YamlError
from coder.domain.hcl.values import EvaluationError, Value, read_number, to_text, without_surrogates

_TRUE = frozenset({"y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"})
_FALSE = frozenset({"n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"})
_INTEGER = re.compile(r"0b[01]+|0o[0-7]+|0x[0-9a-fA-F]+|[-+]?\d+", re.ASCII)
_FLOAT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)([eE][-+]?\d+)?", re.ASCII)
_ENDLESS = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_DATE = re.compile(r"\d{4}-\d\d?-\d\d?", re.ASCII)


def read_yaml_untrusted(text: str) -> Value:
    """Parse one document. Raises EvaluationError."""
    try:
        return _Reader().read(text)
    except YamlError as problem:
        raise EvaluationError(str(problem).partition(" (line")[0]) from problem


class _Reader(DocumentReader):
    is_key_unique = False

    def missing(self) -> NoReturn:
        raise EvaluationError("missing start of document")

    def plain(self, text: str) -> Json:
        return _scalar(without_surrogates(text))

    def quoted(self, text: str) -> str:
        return without_surrogates(text)

    def key(self, text: str) -> str:
        return to_text(_scalar(without_surrogates(text)))


def _scalar(text: str) -> str | bool | int | float:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text, 0) if text[:2] in {"0b", "0o", "0x"} else read_number(text)
    if _FLOAT.fullmatch(text):
        return read_number(text)
    if _ENDLESS.fullmatch(text):
        raise EvaluationError("infinity and NaN are not supported")
    return f"{text}T00:00:00Z" if _DATE.fullmatch(text) else text
