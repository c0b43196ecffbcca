"""Addresses in messages."""

from __future__ import annotations

import pytest

from hyperpod_jlab.core.errors import mask_credentials


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ('no way to "http://user:pw@proxy:3128/x"', 'no way to "http://***@proxy:3128/x"'),
        ("socks9://u:p@ss@h:1 is none", "socks9://***@h:1 is none"),
        ("http://token@h", "http://***@h"),
        ("https://h/a@b and me@example.org", "https://h/a@b and me@example.org"),
        ("https://h and u@i", "https://h and u@i"),
    ],
)
def test_names_and_passwords_are_left_out(text: str, shown: str):
    assert mask_credentials(ValueError(text)) == shown
