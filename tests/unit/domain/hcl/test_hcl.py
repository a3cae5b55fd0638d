"""HCL read without Terraform."""

from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.hcl import tree
from coder.domain.hcl.evaluate import evaluate
from coder.domain.hcl.functions import function_table
from coder.domain.hcl.json_syntax import native_syntax_untrusted, native_values_untrusted
from coder.domain.hcl.lexer import HclError
from coder.domain.hcl.parser import parse_expression_untrusted, parse_file_untrusted
from coder.domain.hcl.scope import EvaluationScope


def test_blocks_attributes_and_sources() -> None:
    text = 'a "b" c {\n  x = 1 # one\n  d {}\n}\n/* no */ y = [\n  2,\n]\n'
    file = parse_file_untrusted(text, "f.tf")
    [block] = file.body.blocks
    assert (block.type, block.labels, block.span.line) == ("a", ("b", "c"), 1)
    assert [inner.type for inner in block.body.blocks] == ["d"]
    assert file.source(file.body.attributes["y"].span) == "[\n  2,\n]"


def _simplified(expression: tree.Expression) -> object:
    match expression:
        case tree.Literal(value=value):
            return value
        case tree.Variable(name=name):
            return name
        case tree.BinaryOperation(operator=operator, left=left, right=right):
            return (_simplified(left), operator, _simplified(right))
        case tree.UnaryOperation(operator=operator, operand=operand):
            return (operator, _simplified(operand))
        case tree.Parentheses(inner=inner):
            return _simplified(inner)
        case tree.Conditional(condition=condition, if_true=if_true, if_false=if_false):
            return (_simplified(condition), "?", _simplified(if_true), _simplified(if_false))
        case tree.HclAttribute(of=of, name=name):
            return f"{_simplified(of)}.{name}"
        case tree.Index(of=of, key=key):
            return f"{_simplified(of)}[{_simplified(key)}]"
        case tree.FunctionCall(name=name, arguments=arguments):
            return (name, *map(_simplified, arguments))
        case tree.TemplateExpression(parts=parts):
            return [part if isinstance(part, str) else _simplified(part) for part in parts]
        case tree.Splat(of=of, each=each):
            return ("splat", _simplified(of), _simplified(each))
        case tree.SplatItem():
            return "it"
    return type(expression).__name__


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1 + 2 * 3 == 7 && !x", (((1, "+", (2, "*", 3)), "==", 7), "&&", ("!", "x"))),
        ("a ? b : c ? d : e", ("a", "?", "b", ("c", "?", "d", "e"))),
        ("(1\n + 2)", (1, "+", 2)),
        ("a.b[0].c.1", "a.b[0].c[1]"),
        ("a[*].b.c", ("splat", "a", "it.b.c")),
        ("f(a, [1]...)", ("f", "a", "Tuple")),
        ("core::f()", ("core::f",)),
        ('"a${b.c}d$${e}\\n"', ["a", "b.c", "d${e}\n"]),
        ('"${"${x}"}"', [["x"]]),
        ("<<-E\n    x\n      y\n    E", ["x\n  y\n"]),
        ("<<E\n  ${x}!\nE", ["  ", "x", "!\n"]),
        ("-1.5e2", ("-", 150.0)),
        ('{ a = 1, "b" : 2\n c = 3 }', "Object"),
        ("[for k, v in m : k if v]", "ForExpression"),
        ("{ for v in m : v => v... }", "ForExpression"),
    ],
)
def test_expressions(text: str, shown: object) -> None:
    assert _simplified(parse_expression_untrusted(text)) == shown


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('x = "a\n', "f:1,5: Unterminated template string"),
        ("x = <<E\nfoo\n", "f:1,5: Unterminated heredoc E"),
        ("x = 1\nx = 2\n", "f:2,1: The argument 'x' was already set"),
        ("x = (1\n", "Unbalanced parentheses"),
        ("x = 1 y = 2\n", "f:1,7: Missing newline after argument or block"),
        ("a {\n", "Argument or block definition required"),
        ("x = ~\n", "f:1,5: Invalid character '~'"),
        ("x = " + "[" * 1000, "Nested too deeply"),
        ("x = " + "-" * 1000 + "1", "Nested too deeply"),
        ("x = " + '"${' * 1000, "Nested too deeply"),
    ],
)
def test_complaints(text: str, message: str) -> None:
    with pytest.raises(HclError) as caught:
        parse_file_untrusted(text, "f")
    assert message in caught.value.message


@given(st.text(alphabet='ab1 .,:=?{}[]()"$%\\\n<E-+*!&|#/', max_size=80))
def test_only_one_error_type(text: str) -> None:
    try:
        parse_file_untrusted(text)
    except HclError:
        pass


_FLUSH = """<<-E
    hello
    %{ for x in ["p", "q"] ~}
      s ${x}
    %{ endfor ~}
    %{~ if true }
    yes
    %{ else }
    no
    %{ endif }
  E"""


@pytest.mark.parametrize(
    ("text", "value"),
    [
        # All as `terraform console` prints them.
        (
            '<<E\n%{ for x in ["p", "q"] ~}\n  s ${x}\n%{ endfor ~}\nend ${"z" ~}   w ${~ "v"}\nE',
            "  s p\n  s q\nend zwv\n",
        ),
        (_FLUSH, "hello\n      s p\n      s q\n\nyes\n\n"),
        ('"x %{~ if true ~} y %{~ else ~} n %{~ endif ~} z"', "xyz"),
        ('"${0.1 + 0.2} ${100 * 1.1} ${1 / 8} ${0.000001} ${1e21}"', "0.3 110 0.125 0.000001 1000000000000000000000"),
        ('upper("straße") == "STRAßE"', True),
        ('title("ab\'c d_e")', "Ab'C D_e"),
        ('abspath("/a/../b")', "/b"),
        (
            'yamlencode({a=[1,"true",""],b={c=true,d=null},e=[],g="a: b\\nc",h=1.5})',
            '"a":\n- 1\n- "true"\n- ""\n"b":\n  "c": true\n  "d": null\n"e": []\n"g": |-\n  a: b\n  c\n"h": 1.5\n',
        ),
        ('yamlencode("x")', '"x"\n'),
        ('ephemeralasnull(["x", null])', ["x", None]),
        ('urldecode("a%20b+c%2Fd")', "a b c/d"),
        ('can(urldecode("%zz")) || can(map("a", "b")) || can(list("a")) || can(rsadecrypt("YQ==", "x"))', False),
    ],
)
def test_values(text: str, value: object) -> None:
    scope = EvaluationScope({}, function_table({}))
    assert evaluate(parse_expression_untrusted(text), scope) == value


def _nested(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4)


def test_rsadecrypt() -> None:
    from cryptography.hazmat.primitives.asymmetric import padding, rsa
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = rsa.generate_private_key(65537, 2048)
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.TraditionalOpenSSL, NoEncryption())
    secret = base64.b64encode(key.public_key().encrypt(b"hello", padding.PKCS1v15()))
    scope = EvaluationScope({}, function_table({"k.pem": pem, "secret": secret}))
    expression = parse_expression_untrusted('rsadecrypt(file("secret"), file("k.pem"))')
    assert evaluate(expression, scope) == "hello"


def test_json_is_written_out_natively() -> None:
    text = """{"//": "a remark",
      "variable": {"v": {"type": "list(string)", "default": ["${literal}"], "//": "none"}},
      "locals": {"x": "us", "whole": "${[1, 2]}", "mixed": "a-${upper("q}")}-\\"b\\"", "m": {"k${1}": null}},
      "data": {"coder_parameter": {"p": [{"name": "p", "option": [{"name": "n", "value": "v"}, {"name": "m"}]}]}},
      "resource": {"null_resource": {"r": {"provisioner": [{"local-exec": {"command": "true"}}]}}},
      "terraform": {"required_providers": {"coder": {"source": "coder/coder"}}}}""".replace('"q}"', '\\"q}\\"')
    blocks = {block.type: block for block in parse_file_untrusted(native_syntax_untrusted(text)).body.blocks}
    scope = EvaluationScope({}, function_table({}))
    values = {name: evaluate(item, scope) for name, item in blocks["locals"].body.attributes.items()}
    assert values == {"x": "us", "whole": [1, 2], "mixed": 'a-Q}-"b"', "m": {"k1": None}}
    assert evaluate(blocks["variable"].body.attributes["default"], scope) == ["${literal}"]
    assert blocks["data"].labels == ("coder_parameter", "p")
    assert [block.type for block in blocks["data"].body.blocks] == ["option", "option"]
    assert blocks["resource"].body.blocks[0].labels == ("local-exec",)
    assert blocks["terraform"].body.blocks[0].type == "required_providers"
    assert native_values_untrusted('{"a": "${b}"}') == 'a = "$${b}"\n'


@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(), _nested, max_leaves=20))
def test_json_raises_one_error_type(value: object) -> None:
    for text in (json.dumps({"data": value}), json.dumps({"locals": {"x": value}}), str(value)):
        try:
            parse_file_untrusted(native_syntax_untrusted(text))
        except HclError:
            pass
