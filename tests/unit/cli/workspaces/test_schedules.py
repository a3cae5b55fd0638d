"""Times of day and time spans of users."""

from __future__ import annotations

from datetime import timedelta

import pytest

from coder.base.errors import CoderError
from coder.cli.workspaces.schedules import parse_schedule, parse_time_span


@pytest.mark.parametrize(
    ("clock", "cron"),
    [
        ("9AM", "0 9"),
        ("9am", "0 9"),
        ("12AM", "0 0"),
        ("12pm", "0 12"),
        ("9:30PM", "30 21"),
        ("09:30", "30 9"),
        ("0:05", "5 0"),
        ("23:59", "59 23"),
    ],
)
def test_clock_times(clock: str, cron: str) -> None:
    assert parse_schedule([clock, "Mon-Fri", "Europe/Berlin"]) == f"CRON_TZ=Europe/Berlin {cron} * * Mon-Fri"


@pytest.mark.parametrize("clock", ["noon", "9", "24:00", "13PM", "0AM", "9:60", "13:00PM", ""])
def test_invalid_texts_show_form(clock: str) -> None:
    with pytest.raises(CoderError, match=r"Start time must be in the format hh:mm\[am\|pm\] or HH:MM"):
        parse_schedule([clock])


@pytest.mark.parametrize(
    ("text", "minutes"), [("8", 8), ("90", 90), ("0", 0), ("8m", 8), ("8h", 480), ("1h30m", 90), ("1d", 1440)]
)
def test_span_without_unit_is_minutes(text: str, minutes: int) -> None:
    assert parse_time_span(text) == timedelta(minutes=minutes)


@pytest.mark.parametrize("text", ["", "8 m", "m", "٣", "8.5", "soon"])
def test_invalid_span_is_refused(text: str) -> None:
    with pytest.raises(CoderError, match="is not a duration"):
        parse_time_span(text)
