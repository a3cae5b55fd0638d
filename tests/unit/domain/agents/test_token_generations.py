"""Which tokens are good while one is rotated, over every state two rotations can be in."""

from itertools import product

from coder.domain.agents.token_generations import Generation, good, newest


def test_the_first_use_of_a_token_ends_the_older_ones() -> None:
    waiting, used = False, True
    assert good([]) == (0,)
    assert good([Generation(1, waiting)]) == (0, 1)
    assert good([Generation(1, used)]) == (1,)
    assert good([Generation(1, used), Generation(2, waiting)]) == (1, 2)
    assert good([Generation(1, used), Generation(2, used)]) == (2,)
    assert good([Generation(1, waiting), Generation(2, used)]) == (2,), "one that was never used is no way back"


def test_the_one_to_hand_out_is_always_good() -> None:
    for count in range(4):
        for states in product((False, True), repeat=count):
            rotated = [Generation(number + 1, used=state) for number, state in enumerate(states)]
            assert newest(rotated) == count and newest(rotated) in good(rotated)
