"""Cron lines and the library's own texts about invalid ones."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coder.domain.foundation import cron


@pytest.mark.parametrize(
    "spec",
    ["0 0 22 * * *", "*/5 * * * *", "@daily", "@every 1h30m", "TZ=Europe/Vienna 0 0 * * * mon-fri", "0 0 ? 1,3 jan *"],
)
def test_accepted(spec: str) -> None:
    cron.parse_script_cron(spec)


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        ("", "empty spec string"),
        ("a b", "expected 5 to 6 fields, found 2: [a b]"),
        ("0 0 0 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("0 0 24 * * *", "end of range (24) above maximum (23): 24"),
        ("0 5-2 * * * *", "beginning of range (5) beyond end of range (2): 5-2"),
        ("0 */0 * * * *", "step of range should be a positive number: */0"),
        ("0 1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("0 1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("0 x * * * *", 'failed to parse int from x: strconv.Atoi: parsing "x": invalid syntax'),
        ("@often", "unrecognized descriptor: @often"),
        ("@every soon", 'failed to parse duration @every soon: time: invalid duration "soon"'),
        ("@every 7d", 'failed to parse duration @every 7d: time: unknown unit "d" in duration "7d"'),
        ("@every 1h1y", 'failed to parse duration @every 1h1y: time: unknown unit "y" in duration "1h1y"'),
        ("@every 2562048h", 'failed to parse duration @every 2562048h: time: invalid duration "2562048h"'),
        ("@every -99999999h", 'failed to parse duration @every -99999999h: time: invalid duration "-99999999h"'),
        ("TZ=Mars/Base * * * * *", "provided bad location Mars/Base: unknown time zone Mars/Base"),
    ],
)
def test_refused(spec: str, sentence: str) -> None:
    with pytest.raises(cron.CronError) as caught:
        cron.parse_script_cron(spec)
    assert caught.value.message == sentence


@given(st.text(alphabet="0123456789*/-,?@ abcTZ=", max_size=40))
def test_only_one_error_type(spec: str) -> None:
    try:
        cron.parse_script_cron(spec)
        cron.parse_standard_cron(spec)
    except cron.CronError:
        pass


def test_zone_is_kept() -> None:
    for line, zone in {
        "TZ=Europe/Vienna @daily": "Europe/Vienna",
        "CRON_TZ=UTC 0 0 * * * *": "UTC",
        "@daily": None,
    }.items():
        result = cron.parse_script_cron(line)
        assert isinstance(result, cron.Schedule) and result.zone == zone


def test_interval_has_whole_positive_seconds() -> None:
    for line, seconds in {"@every 1h30m": 5400, "@every 1500ms": 1, "@every 0s": 1, "@every -1h": 1}.items():
        assert cron.parse_script_cron(line) == cron.Every(timedelta(seconds=seconds))
