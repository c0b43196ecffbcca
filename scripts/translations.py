"""The front end's words in other languages: find them, bring the catalogs in step, compile what JupyterLab reads.

    python scripts/translations.py           # update every .po and write the .json beside it
    python scripts/translations.py --check   # say what is missing, stale or not compiled; exit code 1 if anything is

A catalog is `hyperpod_jlab/locale/LANGUAGE/LC_MESSAGES/hyperpod_jlab.po`. JupyterLab finds its .json by the package's entry point
`jupyterlab.locale`, and offers a language when the language pack of JupyterLab itself is installed.
"""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

from babel.messages.catalog import Catalog, Message
from babel.messages.pofile import read_po, write_po

ROOT = Path(__file__).resolve().parent.parent
DOMAIN = "hyperpod_jlab"
LOCALES = ROOT / "hyperpod_jlab" / "locale"

#: `trans.__('...')` and its relatives; eslint sees to it that the arguments are plain strings.
CALL = re.compile(r"\.(__|_n|_p|_np)\(")
STRING = re.compile(
    r"""\s*(?:'((?:[^'\\\n]|\\.)*)'|"((?:[^"\\\n]|\\.)*)"|`((?:[^`\\$]|\\.)*)`)\s*,?"""
)
ESCAPE = re.compile(r"\\(u[0-9a-fA-F]{4}|x[0-9a-fA-F]{2}|\n|.)", re.DOTALL)
PLAIN = {"n": "\n", "t": "\t", "r": "\r", "\n": ""}

#: How many strings each call takes, and which of them is the context.
SHAPES = {"__": (1, False), "_n": (2, False), "_p": (2, True), "_np": (3, True)}

#: Which strings of a settings schema are shown, with the context that JupyterLab gives them.
SCHEMA_STRINGS = (
    (re.compile(r"^/properties/.*/(title|description)$"), "settings"),
    (re.compile(r"^/definitions/.*/properties/.*/(title|description)$"), "settings"),
    (re.compile(r"^/jupyter\.lab\.setting-icon-label$"), "settings"),
    (re.compile(r"^/(title|description)$"), "schema"),
    (re.compile(r"^/jupyter\.lab\.menus/.*/label$"), "menu"),
    (re.compile(r"^/jupyter\.lab\.toolbars/.*/label$"), "toolbar"),
)

#: The place of a string: its context and its text (with its plural where it has one).
Key = tuple[str | None, str | tuple[str, str]]


def unescape(text: str) -> str:
    """A JavaScript string's value."""

    def one(match: re.Match[str]) -> str:
        what = match[1]
        if len(what) > 1:
            return chr(int(what[1:], 16))
        return PLAIN.get(what, what)

    return ESCAPE.sub(one, text)


def source_strings(text: str) -> Iterator[Key]:
    """The strings of a TypeScript file."""
    for call in CALL.finditer(text):
        count, has_context = SHAPES[call[1]]
        at, values = call.end(), []
        while len(values) < count and (match := STRING.match(text, at)):
            values.append(unescape(next(group for group in match.groups() if group is not None)))
            at = match.end()
        if len(values) < count:
            raise ValueError(f"not a plain string: {text[call.start() : call.start() + 60]!r}")
        context = values.pop(0) if has_context else None
        yield context, (values[0], values[1]) if len(values) > 1 else values[0]


def schema_strings(value: object, path: str = "") -> Iterator[Key]:
    """The strings of a settings schema that are shown."""
    if isinstance(value, dict):
        for name, part in value.items():
            yield from schema_strings(part, f"{path}/{name}")
    elif isinstance(value, list):
        for number, part in enumerate(value):
            yield from schema_strings(part, f"{path}/{number}")
    elif isinstance(value, str) and value:
        context = next((word for shape, word in SCHEMA_STRINGS if shape.match(path)), None)
        if context is not None:
            yield context, value


def all_strings() -> dict[Key, list[str]]:
    """Every string with the files that have it."""
    found: dict[Key, list[str]] = {}
    sources = [
        path for path in sorted((ROOT / "src").rglob("*.ts*")) if "__tests__" not in path.parts
    ]
    for path in sources:
        for key in source_strings(path.read_text()):
            found.setdefault(key, []).append(path.relative_to(ROOT).as_posix())
    for path in sorted((ROOT / "schema").glob("*.json")):
        for key in schema_strings(json.loads(path.read_text())):
            found.setdefault(key, []).append(path.relative_to(ROOT).as_posix())
    return found


def key_of(message: Message) -> Key:
    """A message's place."""
    text = message.id
    return message.context, (text[0], text[1]) if isinstance(text, (list, tuple)) else text


def is_translated(message: Message) -> bool:
    """Whether each form has a text."""
    forms = message.string if isinstance(message.string, (list, tuple)) else (message.string,)
    return not message.fuzzy and all(forms)


def catalogs() -> list[Path]:
    """The catalogs, one a language."""
    return sorted(LOCALES.glob(f"*/LC_MESSAGES/{DOMAIN}.po"))


def load(path: Path) -> Catalog:
    """Read a catalog."""
    with path.open("rb") as file:
        return read_po(file, locale=path.parts[-3], domain=DOMAIN)


def updated(path: Path, wanted: dict[Key, list[str]]) -> Catalog:
    """A catalog with what is wanted, and the translations that there are."""
    old = {key_of(message): message for message in load(path) if message.id}
    new = Catalog(
        locale=path.parts[-3], domain=DOMAIN, project=DOMAIN, fuzzy=False, header_comment=HEADER
    )
    for key in sorted(wanted, key=lambda key: (wanted[key][0], str(key[1]))):
        context, text = key
        there = old.get(key)
        places = [(place, None) for place in dict.fromkeys(wanted[key])]
        new.add(text, there.string if there else "", places, context=context)
    return new


HEADER = "# Made by scripts/translations.py, which adds what is new and drops what is gone; the translations are written by hand."


def compiled(catalog: Catalog) -> str:
    """A catalog as JupyterLab reads it."""
    data: dict[str, object] = {
        "": {
            "domain": DOMAIN,
            "language": str(catalog.locale).replace("_", "-"),
            "plural_forms": catalog.plural_forms + ";",
            "version": DOMAIN,
        }
    }
    for message in catalog:
        if message.id and is_translated(message):
            context, text = key_of(message)
            name = text[0] if isinstance(text, tuple) else text
            forms = message.string
            data[name if context is None else f"{context}\x04{name}"] = (
                list(forms) if isinstance(forms, (list, tuple)) else [forms]
            )
    return json.dumps(data, ensure_ascii=False, indent=1, sort_keys=True) + "\n"


def placeholders(text: str) -> list[str]:
    """The numbered places for values."""
    return sorted(set(re.findall(r"%\d+", text)))


def problems_of(path: Path, wanted: dict[Key, list[str]]) -> list[str]:
    """What is wrong with a catalog."""
    catalog = load(path)
    there = {key_of(message): message for message in catalog if message.id}
    problems = [f"stale: {key[1]!r}" for key in there if key not in wanted]
    for key, places in wanted.items():
        message = there.get(key)
        if message is None or not is_translated(message):
            problems.append(f"not translated: {key[1]!r} ({places[0]})")
            continue
        texts = key[1] if isinstance(key[1], tuple) else (key[1],)
        forms = message.string if isinstance(message.string, (list, tuple)) else (message.string,)
        if any(placeholders(form) != placeholders(texts[-1]) for form in forms):
            problems.append(f"other placeholders: {key[1]!r}")
    beside = path.with_suffix(".json")
    if not beside.exists() or beside.read_text() != compiled(catalog):
        problems.append(f"{beside.name} is not what the .po says: run scripts/translations.py")
    return problems


def update(path: Path, wanted: dict[Key, list[str]]) -> int:
    """Bring a catalog in step; returns how many strings have no translation yet."""
    catalog = updated(path, wanted)
    with path.open("wb") as file:
        write_po(file, catalog, width=140, omit_header=False, include_lineno=False)
    # Dates would make each run another file.
    text = re.sub(
        r'^"(POT-Creation-Date|PO-Revision-Date|Generated-By|Last-Translator|Language-Team|Report-Msgid-Bugs-To|Project-Id-Version):.*\n',
        "",
        path.read_text(),
        flags=re.MULTILINE,
    )
    path.write_text(text)
    path.with_suffix(".json").write_text(compiled(load(path)))
    return sum(1 for message in catalog if message.id and not is_translated(message))


def main() -> int:
    wanted = all_strings()
    if sys.argv[1:] == ["--check"]:
        wrong = {path: found for path in catalogs() if (found := problems_of(path, wanted))}
        for path, found in wrong.items():
            print(f"{path.relative_to(ROOT)}:", *found, sep="\n  ")
        return 1 if wrong else 0
    for path in catalogs():
        missing = update(path, wanted)
        print(f"{path.relative_to(ROOT)}: {len(wanted)} strings, {missing} without a translation")
    return 0


if __name__ == "__main__":
    sys.exit(main())
