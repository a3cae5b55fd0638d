"""Work for people nobody knows, and for members, is bounded: every route with a body, a query or neither, times what is
large, deep, many, slow and compressed.

What is asserted is the server's computing time in one step of its event loop (docs/decisions/bounded-work.md), the
growth of its memory, and that everything is given back. Waiting times are asked in the long form, of a server of its
own: tests/system/test_server_under_load.py.
"""

from __future__ import annotations

import contextlib
import gzip
import gc
import json
import resource
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import msgspec
import pytest
import trio

from coder.coderd.http.server import hypercorn_fixes
from coder.coderd.http.server import json as bodies
from coder.coderd.http.server.body_bounds import STRANGERS_BYTES, BodyBudget
from coder.coderd.http.server.declarations import PUBLIC_LIMIT, Route, Search, route_of
from tests.kit.coderd import World, running_coderd
from tests.kit.openapi import application
from tests.kit.strange_requests import fill_rule

MOST_STEP = 0.1
"Seconds of computing in one step of the event loop."
MOST_GROWTH = 64 << 20
