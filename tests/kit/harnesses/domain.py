"""Harnesses of the domain: HCL, YAML, rendering, pushes."""

from __future__ import annotations

from coder.base.errors import CoderError
from tests.kit.harnesses.parts import Call, Harness, _text


def _json_syntax(name: str) -> Call:
    def call(text: str) -> object:
        from coder.domain.hcl import json_syntax

        return getattr(json_syntax, name)(text)

    return _text(call)


def _yaml(text: str) -> object:
    from coder.domain.hcl import yaml_text

    return yaml_text.read_yaml_untrusted(text)


def _template_file(data: bytes) -> object:
    from coder.domain.rendering import sources

    return sources._parse_untrusted(data, "main.tf.json")


def _push_key(text: str) -> object:
    from coder.domain.notifications import web_push

    return web_push.decode_key_untrusted(text, 16)


def _push_point(data: bytes) -> None:
    from coder.domain.notifications import web_push

    web_push.check_point_untrusted(data)


def _hcl(name: str) -> Call:
    def call(text: str) -> object:
        from coder.domain.hcl import parser

        return getattr(parser, name)(text)

    return lambda data: call(data.decode("utf-8", "replace"))


JSON_HCL = b'{"resource": {"coder_agent": {"main": [{"os": "linux", "//": "x"}]}}, "locals": {"a": "${1 + 2}"}}'


HCL = (
    b'resource "a" "b" {\n  x = "${y[0].z}-%{ if a }b%{ endif }"\n  y = { for k, v in m : k => v... if v != null }\n}\n'
)


def _web_address(text: str) -> object:
    from coder.domain.foundation import web_addresses

    return web_addresses.split_untrusted(text)


DOMAIN = {
    "domain/foundation/web_addresses.py:split_untrusted": Harness(
        _text(_web_address), (), [b"https://user@host.test:8443/path?q=1#part", b"http://[::1%25lo]:80/"]
    ),
    "domain/hcl/json_syntax.py:native_syntax_untrusted": Harness(
        _json_syntax("native_syntax_untrusted"), (CoderError,), [JSON_HCL]
    ),
    "domain/hcl/json_syntax.py:native_values_untrusted": Harness(
        _json_syntax("native_values_untrusted"), (CoderError,), [b'{"a": ["${b}", {"c": null}], "d": 1e9}']
    ),
    "domain/hcl/yaml_text.py:read_yaml_untrusted": Harness(
        _text(_yaml), (CoderError,), [b"a: &x [1, yes, 0x1f, 2020-01-01]\nb: {<<: {c: *x}, d: !!str 5}\n"]
    ),
    "domain/rendering/sources.py:_parse_untrusted": Harness(_template_file, (CoderError,), [JSON_HCL]),
    "domain/notifications/web_push.py:decode_key_untrusted": Harness(
        _text(_push_key), (ValueError,), [b"AAECAwQFBgcICQoLDA0ODw"]
    ),
    "domain/notifications/web_push.py:check_point_untrusted": Harness(
        _push_point, (ValueError,), [b"\x04" + bytes(64)]
    ),
    "domain/hcl/parser.py:parse_file_untrusted": Harness(_hcl("parse_file_untrusted"), (CoderError,), [HCL]),
    "domain/hcl/parser.py:parse_expression_untrusted": Harness(
        _hcl("parse_expression_untrusted"), (CoderError,), [b'[for x in y : upper("${x}")]', b"a ? b : c[*].d"]
    ),
}
