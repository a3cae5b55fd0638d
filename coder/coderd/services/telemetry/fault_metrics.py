"""Metrics of faults for alerts: the database's silence and shortages, clocks that differ, certificates that expire.

Coder has no families for them. They need no answer of the database, so a scrape shows them during an outage, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from coder.appproxy.http.served_certificates import read_expiries
from coder.appproxy.metrics.metric_families import Declaration, Family
from coder.coderd.services.foundation.database_clock import skew_of

if TYPE_CHECKING:
    from coder.coderd.services.foundation.context import Context

FAULTS: tuple[Declaration, ...] = (
    ("coder_database_away_seconds", "gauge", "", "Seconds since which the database does not answer; 0 while it does."),
    ("coder_database_shortage", "gauge", "", "Whether the database lacked a resource in the last minute."),
    ("coder_clock_skew_seconds", "gauge", "", "Seconds by which the machine's clock is ahead of the database's."),
    ("coder_tls_certificate_not_after_seconds", "gauge", "file", "Expiry of a TLS certificate, in Unix seconds."),
)


def set_faults(ctx: Context, families: Mapping[str, Family]) -> None:
    """Set what this process knows of faults."""
    availability = ctx.db.availability
    families["coder_database_away_seconds"].set(availability.away_for())
    families["coder_database_shortage"].set(bool(availability.shortage()))
    families["coder_clock_skew_seconds"].set(skew_of(ctx.clock))
    expiries = read_expiries(ctx.config.tls_cert_file if ctx.config.tls_enable else ())
    families["coder_tls_certificate_not_after_seconds"].replace(
        ((file,), at.timestamp()) for file, at in expiries.items()
    )
