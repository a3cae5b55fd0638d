"""Terraform's functions on numbers and on ranges of addresses, and the conversions of single values."""

from __future__ import annotations

import ipaddress
import math
from decimal import Decimal

from coder.domain.hcl import values as v
from coder.domain.hcl.values import EvaluationError, TableFunction, Value, to_number, to_text


def _range(*limits: Value) -> list[int | float]:
    numbers = [to_number(limit) for limit in limits]
    start, end = (0, numbers[0]) if len(numbers) == 1 else (numbers[0], numbers[1])
    step = numbers[2] if len(numbers) == 3 else (1 if end >= start else -1)
    results: list[int | float] = []
    while (step > 0 and start < end) or (step < 0 and start > end):
        results.append(start)
        start += step
        if len(results) > 1024:
            raise EvaluationError("more than 1024 values were generated")
    return results


def _log(value: Value, base: Value) -> Value:
    return v.number(math.log(to_number(value)) / math.log(to_number(base)))


_DIGITS = "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _parseint(text: str, base: int) -> int:
    """Parse digits of a base; above base 36 capitals are digits distinct from small letters."""
    if not 2 <= base <= 62:
        raise EvaluationError("base must be a whole number between 2 and 62 inclusive")
    digits = text.removeprefix("-") if text.startswith("-") else text.removeprefix("+")
    values = [_DIGITS.find(char if base > 36 else char.lower()) for char in digits]
    if not values or len(values) > _MAX_DIGITS or not all(0 <= item < base for item in values):
        raise EvaluationError(f"cannot parse {text!r} as a base {base} integer")
    total = 0
    for entry in values:
        total = total * base + entry
    return -total if text.startswith("-") else total


_MAX_DIGITS = 4000


def _sum(numbers: list[int | float]) -> int | float:
    if not numbers:
        raise EvaluationError("cannot sum an empty list")
    if all(isinstance(number, int) for number in numbers):
        return sum(numbers)
    return v.number(float(sum(Decimal(repr(number)) for number in numbers)))


def _numbers(arguments: tuple[Value, ...]) -> list[int | float]:
    return [to_number(argument) for argument in arguments]


NUMBER_FUNCTIONS: dict[str, TableFunction] = {
    "abs": lambda n: abs(to_number(n)),
    "ceil": lambda n: math.ceil(to_number(n)),
    "floor": lambda n: math.floor(to_number(n)),
    "log": _log,
    "max": lambda *n: max(_numbers(n)),
    "min": lambda *n: min(_numbers(n)),
    "parseint": lambda s, base: _parseint(to_text(s), int(base)),
    "pow": lambda n, power: v.number(float(to_number(n)) ** to_number(power)),  # floats: no number can fill the memory
    "range": _range,
    "signum": lambda n: (to_number(n) > 0) - (to_number(n) < 0),
    "sum": lambda items: _sum([to_number(item) for item in items]),
    "tonumber": lambda x: None if x is None else to_number(x),
    "tobool": lambda x: None if x is None else v.to_bool(x),
    "tostring": lambda x: None if x is None else to_text(x),
    "cidrhost": lambda prefix, n: _cidrhost(to_text(prefix), int(n)),
    "cidrnetmask": lambda prefix: str(ipaddress.IPv4Network(to_text(prefix), strict=False).netmask),
    "cidrsubnet": lambda prefix, bits, n: _cidrsubnet(to_text(prefix), int(bits), int(n)),
    "cidrsubnets": lambda prefix, *bits: _cidrsubnets(to_text(prefix), [int(bit) for bit in bits]),
}


def _cidrhost(prefix: str, position: int) -> str:
    network = ipaddress.ip_network(prefix, strict=False)
    offset = position if position >= 0 else network.num_addresses + position
    if not 0 <= offset < network.num_addresses:
        raise EvaluationError(f"prefix of {network.prefixlen} does not accommodate a host numbered {position}")
    return str(network.network_address + offset)


def _cidrsubnet(prefix: str, bits: int, position: int) -> str:
    network = ipaddress.ip_network(prefix, strict=False)
    length = network.prefixlen + bits
    if length > network.max_prefixlen or position >= 1 << bits:
        raise EvaluationError("insufficient address space")
    start = int(network.network_address) + (position << (network.max_prefixlen - length))
    return f"{ipaddress.ip_address(start) if network.version == 4 else ipaddress.IPv6Address(start)}/{length}"


def _cidrsubnets(prefix: str, bits: list[int]) -> list[str]:
    network = ipaddress.ip_network(prefix, strict=False)
    at, result = int(network.network_address), []
    for bit in bits:
        size = 1 << (network.max_prefixlen - network.prefixlen - bit)
        at = (at + size - 1) // size * size
        address = ipaddress.IPv4Address(at) if network.version == 4 else ipaddress.IPv6Address(at)
        result.append(f"{address}/{network.prefixlen + bit}")
        at += size
    return result
