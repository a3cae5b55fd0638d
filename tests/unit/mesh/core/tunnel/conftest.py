"""Every test of the tunnel runs twice: packet by packet with `cryptography`, and with the compiled batch cipher."""

from __future__ import annotations

import pytest

from coder.mesh.core.crypto import batches
from tests.kit.programs import batch_cipher


@pytest.fixture(autouse=True, params=batch_cipher.WAYS)
def cipher_way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "packets":
        monkeypatch.setattr(batches, "BATCH_CIPHER", None)
    elif batch_cipher.MISSING:
        pytest.skip(batch_cipher.MISSING)
    else:
        monkeypatch.setattr(batches, "BATCH_CIPHER", batch_cipher.load().BatchCipher)
    return str(request.param)
