"""Descriptions without markup."""

import pytest

from coder.domain.foundation.markdown import plain_text


@pytest.mark.parametrize(
    ("markdown", "text"),
    [
        ("Where *it* runs", "Where it runs"),
        ("**Bold**, _slanted_ and `code`", "Bold, slanted and code"),
        ("see [the docs](https://example.com/a_b) ![icon](x.svg)", "see the docs (https://example.com/a_b) icon"),
        ('[a](<b> "title") and [d](e "f")', "a (b) and d (e)"),
        ("![a](b(c)d) [e](f(g) (h)) [i](", "a e (f(g)) [i]("),
        ("**a **b** ~~c ~~d~~", "**a b ~~c d"),
        ("# Title\n\nText", "Title\n\nText"),
        ("snake_case_name * 2 * 3", "snake_case_name * 2 * 3"),
        ("a <b>tag</b> and 1 < 2", "a tag and 1 < 2"),
        ("https://example.com/a_b?c=d.", "(https://example.com/a_b?c=d)."),
        (
            "see <https://example.com> or http://x.test/, and `https://y.test`",
            "see (https://example.com) or (http://x.test/), and https://y.test",
        ),
        ("", ""),
    ],
)
def test_markup_is_removed(markdown: str, text: str) -> None:
    assert plain_text(markdown) == text
