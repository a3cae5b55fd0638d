"""Share levels, every pair of them."""

from __future__ import annotations

import pytest

from coder.domain.foundation.share_levels import SHARE_LEVELS, is_shared_too_widely, shared_at_most


@pytest.mark.parametrize("limit", SHARE_LEVELS)
@pytest.mark.parametrize("level", SHARE_LEVELS)
def test_template_limit_caps_share_level(level: str, limit: str) -> None:
    wide, narrow = SHARE_LEVELS.index(level), SHARE_LEVELS.index(limit)
    assert is_shared_too_widely(level, limit) == (wide > narrow)
    assert shared_at_most(level, limit) == SHARE_LEVELS[min(wide, narrow)]
