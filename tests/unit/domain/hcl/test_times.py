"""formatdate, timeadd and timecmp as Terraform's manual describes them."""

from __future__ import annotations

import pytest

from coder.domain.hcl.times import TIMES
from coder.domain.hcl.values import EvaluationError

MOMENT = "2018-01-02T23:12:01Z"


@pytest.mark.parametrize(
    ("pattern", "moment", "text"),
    [
        ("DD MMM YYYY hh:mm ZZZ", MOMENT, "02 Jan 2018 23:12 UTC"),
        ("EEEE, DD-MMM-YY hh:mm:ss ZZZ", MOMENT, "Tuesday, 02-Jan-18 23:12:01 UTC"),
        ("EEE, DD MMM YYYY hh:mm:ss ZZZ", "2018-01-02T23:12:01-08:00", "Tue, 02 Jan 2018 23:12:01 -0800"),
        ("MMM DD, YYYY", MOMENT, "Jan 02, 2018"),
        ("HH:mmaa", MOMENT, "11:12pm"),
        ("HH AA", "2018-01-02T00:12:01Z", "12 AM"),
        ("h'h'mm", MOMENT, "23h12"),
        ("'it''s' YYYY", MOMENT, "it's 2018"),
        ("ZZZZZ ZZZZ Z", "2018-01-02T23:12:01+05:30", "+05:30 +0530 +05:30"),
        ("Z", MOMENT, "Z"),
    ],
)
def test_dates_are_written(pattern: str, moment: str, text: str) -> None:
    assert TIMES["formatdate"](pattern, moment) == text


@pytest.mark.parametrize("pattern", ["YYYYY", "q", "'open", "MMMMM"])
def test_unknown_letters_are_refused(pattern: str) -> None:
    with pytest.raises(EvaluationError):
        TIMES["formatdate"](pattern, MOMENT)


@pytest.mark.parametrize("text", ["2018-01-02", "2018-01-02 23:12:01Z", "now", "", "2018-01-02T23:12:01"])
def test_moments_have_a_zone(text: str) -> None:
    with pytest.raises(EvaluationError, match="RFC 3339"):
        TIMES["formatdate"]("YYYY", text)


def test_durations_are_added() -> None:
    assert TIMES["timeadd"]("2017-11-22T00:00:00Z", "10m") == "2017-11-22T00:10:00Z"
    assert TIMES["timeadd"]("2017-11-22T00:00:00Z", "-1h30m") == "2017-11-21T22:30:00Z"
    with pytest.raises(EvaluationError, match="duration"):
        TIMES["timeadd"]("2017-11-22T00:00:00Z", "a day")


def test_zones_are_compared_as_moments() -> None:
    assert TIMES["timecmp"]("2017-11-22T00:00:00Z", "2017-11-22T01:00:00+01:00") == 0
    assert TIMES["timecmp"]("2017-11-22T00:00:00Z", "2017-11-22T01:00:00Z") == -1
    assert TIMES["timecmp"]("2017-11-22T01:00:00Z", "2017-11-22T00:00:00-00:30") == 1


def test_timeadd_of_too_much_is_an_error() -> None:
    with pytest.raises(EvaluationError, match="too long"):
        TIMES["timeadd"]("2017-11-22T00:00:00Z", "9" * 30 + "h")
