"""The scanner finds IPython's syntax where IPython finds it, and nowhere in plain Python."""

from __future__ import annotations

import ast
import sysconfig
import time
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from IPython.core.inputtransformer2 import TransformerManager

from hyperpod_jlab.capture.lexing import dedent, scan, strip_prompts


def specials(text: str) -> list[tuple[str, str]]:
    return [(special.kind, special.text) for special in scan(text).specials]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("%pip install x", [("line", "%pip install x")]),
        ("if x:\n    !ls", [("line", "!ls")]),
        ("x = !ls -l", [("assign", "!ls -l")]),
        ("x.y[3], z = %time f()", [("assign", "%time f()")]),
        ("x: list = !ls", [("assign", "!ls")]),
        ("!echo \"'\nx = '''\n%no\n'''\n!b", [("line", "!echo \"'"), ("line", "!b")]),
        ("!a \\\n  b\nx", [("line", "!a    b")]),
        ("!a \\\r\n  b\r\n!c", [("line", "!a    b"), ("line", "!c")]),
        ("foo?", [("help", "foo?")]),
        ("a.b[0]??", [("help", "a.b[0]??")]),
        ("f(\nfoo?\n", [("help", "f(\nfoo?")]),  # the cell's last line break changes nothing
        ("?foo", [("line", "?foo")]),
        ("/f x", [("line", "/f x")]),
        ("def f():\n\t%time g()\n\treturn 1", [("line", "%time g()")]),
        ('f"{x["a"]}"\n%a', [("line", "%a")]),
        ("f'{x!r:>{w}}'\n%a", [("line", "%a")]),
        ('f"{{"\n%a', [("line", "%a")]),
        ('f"""{\n  x["%b"]\n}\n%c"""\n%a', [("line", "%a")]),
        ('f"\\N{DASH}{x}"\n%a', [("line", "%a")]),
        ("'unclosed\n%a", [("line", "%a")]),
        ("x = 1  # what's this?\n%a", [("line", "%a")]),
    ],
)
def test_found(text, found):
    assert specials(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "x = '''\n%a\n!b\n'''",
        'x = """\n%a \\""" \n!b\n"""',
        "x = [1,\n%b\n]",
        "x = 10 \\\n% 3",
        "x = a \\\n  % b",
        "x = {\n  'a': 1,\n  !b\n}",
        "# %a\n# !b",
        "r'\\'\n",
        "x %= 3",
        "x = y = !ls",
        "x == !ls",
        "f(a=1)",
        "x = 1; !ls",
        'rf"\\{x}"',
        "b'%'",
        "print('a' if x else '?')",
        "@decorator\ndef f(): ...",
        "x = 'a\\\n%b'",
    ],
)
def test_not_found(text):
    assert specials(text) == []


@pytest.mark.parametrize(
    ("text", "quiet"),
    [
        ("x;", True),
        ("x; # why", True),
        ("x;\n\n# end\n", True),
        ("x", False),
        ("x; y", False),
        ("';'", False),
        ("x #;", False),
        ("", False),
    ],
)
def test_a_last_semicolon_is_seen(text, quiet):
    assert scan(text).is_quiet is quiet


def test_the_standard_library_holds_no_magics():
    folder = Path(sysconfig.get_path("stdlib"))
    files = [*sorted(folder.glob("*.py"))[:60], *sorted(folder.glob("test/test_f[os]*.py"))]
    for path in files:
        text = path.read_bytes().decode("utf-8", "replace")
        assert scan(text).specials == (), path


PIECES = st.sampled_from(
    [
        "x = 1",
        "!ls",
        "%time f()",
        "y = !pwd",
        "'''",
        '"""',
        "f(",
        ")",
        "# c",
        "if x:",
        "    !a",
        "    y",
        "z?",
        "'s'",
        "x %b",
        "",
    ]
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=7))
@example(["'''", "!a", "'''", "!b"])
@example(["f(", "z?", ""])
def test_what_is_found_agrees_with_ipython(lines: list[str]):
    """In cells that IPython can make Python of: as many pieces are found as it rewrites."""
    text = dedent("\n".join(lines))
    try:
        rewritten = TransformerManager().transform_cell(text)
        ast.parse(rewritten)
    except (SyntaxError, RuntimeError):
        return
    assert len(specials(text)) == rewritten.count("get_ipython()")


def test_a_cell_with_megabytes_in_a_string_is_scanned_at_once():
    begin = time.process_time()
    assert specials("x = '" + "a b" * 3_000_000 + "'\n!ls") == [("line", "!ls")]
    assert time.process_time() - begin < 2


def test_dedent_keeps_what_is_inside():
    assert dedent("  x = 1\n\n  if x:\n      y\n") == "x = 1\n\nif x:\n    y\n"
    assert dedent("x\n  y") == "x\n  y"
    assert dedent("    # c\nif x:\n    y") == "    # c\nif x:\n    y"
    assert dedent("  x\r\n  y\r\n") == "x\r\ny\r\n"
    assert dedent("x = '''\n   \n'''") == "x = '''\n   \n'''"


def test_prompts_are_stripped_only_from_pasted_sessions():
    assert strip_prompts(">>> x = 1\n>>> for i in y:\n...     i\n") == "x = 1\nfor i in y:\n    i\n"
    assert strip_prompts("x = '''\n>>> y\n'''") == "x = '''\n>>> y\n'''"
