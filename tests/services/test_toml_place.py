"""Line and column of values in TOML files."""

from __future__ import annotations

import tomllib

import pytest

from hyperpod_jlab.clusters.configuration import load_settings
from hyperpod_jlab.clusters.toml_place import place_of, steps_to, written
from hyperpod_jlab.core.errors import InvalidInputError

TEXT = '''\
# Comments = do not count
default_cluster = "ml"  # mark

[cost]
currency = "USD"
[cost.prices]
  "ml.p5.48xlarge" = -98
'ml.c5.large'=  2
"ml.x.large" = [
    { price = 1 },  # price = 7
    { since = 2026-01-01, price = 3 },
]
[[list]]
a = 1
[[list]]
a = 2
text = """
b = 1
[no.table]
"""
b = 3
[clusters."a.b"]
inline = { one = { price = 4 }, two = { price = 5 } }
nodes = ["x", "y"]
"ä" = "ö"
'''


@pytest.mark.parametrize(
    ("field", "place", "shown"),
    [
        ("default_cluster", (2, 19), "default_cluster"),
        ("cost", (4, 1), "cost"),
        ("cost.currency", (5, 12), "cost.currency"),
        ("cost.prices.ml.p5.48xlarge", (7, 22), 'cost.prices."ml.p5.48xlarge"'),
        ("cost.prices.ml.p5.48xlarge.0.price", (7, 22), 'cost.prices."ml.p5.48xlarge"'),
        ("cost.prices.ml.c5.large.0.price", (8, 17), 'cost.prices."ml.c5.large"'),
        ("cost.prices.ml.x.large.0.price", (10, 15), 'cost.prices."ml.x.large".0.price'),
        ("list.1.a", (16, 5), "list.1.a"),
        ("list.1.b", (21, 5), "list.1.b"),
        ("clusters.a.b", (22, 1), 'clusters."a.b"'),
        ("clusters.a.b.inline.two.price", (23, 49), 'clusters."a.b".inline.two.price'),
        ("clusters.a.b.nodes.1", (24, 9), 'clusters."a.b".nodes.1'),
        ("clusters.a.b.ä", (25, 7), 'clusters."a.b"."ä"'),
    ],
)
def test_places(field, place, shown):
    steps, rest = steps_to(tomllib.loads(TEXT), field)
    assert (written(steps), rest) == (shown, "")
    assert place_of(TEXT, steps) == place


def test_what_is_missing_is_in_its_table():
    steps, rest = steps_to(tomllib.loads(TEXT), "clusters.a.b.orchestrator")
    assert (steps, rest) == (["clusters", "a.b"], "orchestrator")
    assert steps_to({}, "a.b") == ([], "a.b")
    assert steps_to({"a": [1]}, "a.x") == (["a"], "x")


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_dotted_keys_and_ends_of_lines(end):
    text = f'a = 1{end}{end}cost.prices."x.y" = -1{end}b = 2'
    assert place_of(text, ["cost", "prices", "x.y"]) == (3, 21)
    assert place_of(text, ["b"]) == (4, 5)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '[cost.prices]\n"ml.p5.48xlarge" = -98.32\n',
            '2:20: cost.prices."ml.p5.48xlarge": must be at least 0.0, not -98.32',
        ),
        ("[cost]\nprices = 5\n", "2:10: cost.prices: must be names with values, not 5"),
        ('[cost.prices]\n"ml.p5.48xlarge" = true\n', '2:20: cost.prices."ml.p5.48xlarge": '),
        ('[cost]\n\ncurrency = "usd"\n', "3:12: cost.currency: must be three capital letters"),
        ("[clusters.local]\nslotz = 2\n", "2:9: clusters.local.slotz: unknown field 'slotz'"),
        ("[clusters.ml]\nuser = 'x'\n", "1:1: clusters.ml.orchestrator: is missing"),
        ('default_cluster = "no"\n', "1:19: default_cluster: cluster 'no' not found"),
        (
            '[[cost.prices."ml.a.large"]]\nprice = 1\n[[cost.prices."ml.a.large"]]\nprice = -1\n',
            '4:9: cost.prices."ml.a.large".1.price: must be at least 0.0',
        ),
    ],
)
def test_wrong_values_of_the_configuration(tmp_path, text, message):
    first, second = tmp_path / "first.toml", tmp_path / "second.toml"
    first.write_text("[storage]\nshared = false\n")
    second.write_text(text)
    with pytest.raises(InvalidInputError) as caught:
        load_settings([first, second])
    assert f"{second}:{message}" in caught.value.message
    line, column = message.split(":")[:2]
    assert (caught.value.detail["line"], caught.value.detail["column"]) == (int(line), int(column))
    assert caught.value.detail["path"] == str(second)
