"""Valid tokens during a rotation, over every state of two rotations."""

from itertools import product

from coder.domain.agents.token_generations import Generation, good, newest


def test_first_use_invalidates_older_tokens() -> None:
    waiting, used = False, True
    assert good([]) == (0,)
    assert good([Generation(1, waiting)]) == (0, 1)
    assert good([Generation(1, used)]) == (1,)
    assert good([Generation(1, used), Generation(2, waiting)]) == (1, 2)
    assert good([Generation(1, used), Generation(2, used)]) == (2,)
    assert good([Generation(1, waiting), Generation(2, used)]) == (2,), "one that was never used is no way back"


def test_newest_token_is_always_valid() -> None:
    for count in range(4):
        for states in product((False, True), repeat=count):
            rotated = [Generation(number + 1, used=state) for number, state in enumerate(states)]
            assert newest(rotated) == count and newest(rotated) in good(rotated)
