"""What a worker process that imports the notebook again gets of it: definitions, never the work.

Of each top-level statement that ran so far in the main process a worker runs again
- imports, functions and classes,
- assignments of plain names (or of attributes of functions and classes above) whose right side is a literal, or is made of literals,
  names, attributes, operators, comprehensions, lambdas, and calls of `QUICK` functions: no other call,
- ``try`` with what of this is in it, and ``if`` whose condition is such a right side.
Everything else is passed over: expressions, loops, ``with``, calls. Names that such a statement set get the value that they have in the
main process, when a function or class of the notebook mentions them and the value can be pickled (see `values`); otherwise they are bound
to something that says so as soon as it is used.
"""

from __future__ import annotations
import __future__

import ast
import sys
from typing import Any, Iterator

QUICK = frozenset(
    # Builtins that only make values.
    "abs bool bytes complex dict divmod enumerate float frozenset int len list max min object pow property range repr reversed round "
    "set slice sorted str sum tuple type zip "
    # Makers of types and of other things that are found by their name in the module.
    "Enum Flag IntEnum IntFlag NamedTuple NewType ParamSpec Path PurePath StrEnum TypeVar TypeVarTuple TypedDict cmp_to_key dataclass "
    "device getLogger itemgetter make_dataclass namedtuple partial".split()
)
"""Functions, by the last part of their name, that are called again in a worker."""

_PARTS = (
    ast.Attribute,
    ast.BinOp,
    ast.BoolOp,
    ast.Compare,
    ast.Constant,
    ast.Dict,
    ast.DictComp,
    ast.FormattedValue,
    ast.GeneratorExp,
    ast.IfExp,
    ast.JoinedStr,
    ast.List,
    ast.ListComp,
    ast.Name,
    ast.Set,
    ast.SetComp,
    ast.Slice,
    ast.Starred,
    ast.Subscript,
    ast.Tuple,
    ast.UnaryOp,
    ast.comprehension,
    ast.expr_context,
    ast.keyword,
    ast.operator,
    ast.unaryop,
    ast.boolop,
    ast.cmpop,
)
_DEFINITIONS = (
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.FunctionDef,
    ast.Import,
    ast.ImportFrom,
    *([ast.TypeAlias] if hasattr(ast, "TypeAlias") else []),
)
_SCOPES = (ast.AsyncFunctionDef, ast.ClassDef, ast.FunctionDef, ast.Lambda)
_OLD_PARTS = ("Index", "ExtSlice")  # Python 3.8


class MissingValue:
    """Stands for a name that has no value in this worker, and says so when it is used."""

    __slots__ = ("_reason",)

    def __init__(self, reason: str) -> None:
        object.__setattr__(self, "_reason", reason)

    def _fail(self, *_: Any, **__: Any) -> Any:
        raise NameError(self._reason)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        self._fail()

    def __repr__(self) -> str:
        return f"<{self._reason}>"

    __hash__ = object.__hash__


_OPERATIONS = (
    "add aenter aexit aiter and anext await bool call contains delitem enter eq exit float "
    "floordiv ge getitem gt index int invert iter le len lt matmul mod mul ne neg next or pow "
    "radd rand rmul ror rsub rtruediv setattr setitem sub truediv xor"
)
for _name in _OPERATIONS.split():
    setattr(MissingValue, f"__{_name}__", MissingValue._fail)  # noqa: SLF001 - our own


_FEATURES = [getattr(__future__, name).compiler_flag for name in __future__.all_feature_names]


class Replay:
    """Runs the definitions of cells in a namespace."""

    def __init__(self, names: dict[str, Any]) -> None:
        self._names = names
        self._flags = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT

    def cell(self, number: int, path: str, text: str, values: Any) -> None:
        """Run a cell's definitions; `values` gives the value of a name whose statement is passed over."""
        for statement in _parse(text).body:
            kept_statement, skipped_names = reduce(statement)
            problem = None
            if kept_statement is not None:
                problem = self._run(number, path, kept_statement)
                skipped_names += bound_names(kept_statement) if problem is not None else ()
            for name in set(skipped_names):
                self._names[name] = values(name, number, problem)

    def _run(self, number: int, path: str, statement: ast.stmt) -> str | None:
        """Run a statement; its ``from __future__`` lines hold for all later ones."""
        tree = ast.Module(body=[statement], type_ignores=[])
        try:
            code = compile(tree, path, "exec", self._flags, dont_inherit=True)
            for feature in _FEATURES:
                self._flags |= code.co_flags & feature
            exec(code, self._names)  # noqa: S102 - the user's own code
        except Exception as error:  # noqa: BLE001 - the other definitions may be all that this worker needs
            problem = f"{type(error).__name__}: {error}"
            place = f"cell {number}, line {statement.lineno}"
            print(f"hyperpod: in a worker process, {place}: {problem}", file=sys.stderr)
            return problem
        return None


def _parse(text: str) -> ast.Module:
    flags = ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
    tree: ast.Module = compile(text, "<cell>", "exec", flags, dont_inherit=True)
    return tree


def reduce(statement: ast.stmt) -> tuple[ast.stmt | None, list[str]]:
    """What of a statement runs again (or None), and the names that the rest of it would have bound."""
    if isinstance(statement, _DEFINITIONS) or _is_quick_assignment(statement):
        return statement, []
    if isinstance(statement, ast.Try) or type(statement).__name__ == "TryStar":
        return _reduce_blocks(statement, ["body", "orelse", "finalbody"])
    if isinstance(statement, ast.If) and is_quick(statement.test):
        return _reduce_blocks(statement, ["body", "orelse"])
    return None, list(bound_names(statement))


def _reduce_blocks(statement: Any, blocks: list[str]) -> tuple[ast.stmt | None, list[str]]:
    skipped_names: list[str] = []
    has_kept = False
    for owner in [statement, *getattr(statement, "handlers", [])]:
        for block in blocks if owner is statement else ["body"]:
            original_body = getattr(owner, block)
            kept_body: list[ast.stmt] = []
            for inner in original_body:
                kept_statement, lost_names = reduce(inner)
                skipped_names += lost_names
                if kept_statement is not None:
                    kept_body.append(kept_statement)
            has_kept = has_kept or bool(kept_body)
            if original_body and not kept_body and (block in ("body", "finalbody")):
                kept_body = [ast.copy_location(ast.Pass(), original_body[0])]
            setattr(owner, block, kept_body)
    return (statement if has_kept else None), skipped_names


def _is_quick_assignment(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Assign):
        return all(map(_is_target, statement.targets)) and is_quick(statement.value)
    if isinstance(statement, ast.AnnAssign):
        return _is_target(statement.target) and (statement.value is None or is_quick(statement.value))
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Name) and is_quick(statement.value)
    return isinstance(statement, ast.Pass)


def _is_target(target: ast.expr) -> bool:
    if isinstance(target, (ast.Tuple, ast.List)):
        return all(map(_is_target, target.elts))
    if isinstance(target, ast.Attribute):
        return isinstance(target.value, ast.Name)
    return isinstance(target, ast.Name)


def is_quick(node: ast.AST) -> bool:
    """Whether an expression only makes a value, and soon."""
    if isinstance(node, ast.Lambda):
        return all(is_quick(node_child) for node_child in node.args.defaults)
    if isinstance(node, ast.Call):
        if not _is_quick_function(node.func):
            return False
        return all(is_quick(node_child) for node_child in [*node.args, *node.keywords])
    if not isinstance(node, _PARTS) and type(node).__name__ not in _OLD_PARTS:
        return False
    return all(is_quick(child) for child in ast.iter_child_nodes(node))


def _is_quick_function(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in QUICK
    if not isinstance(node, ast.Attribute):
        return False
    if isinstance(node.value, ast.Constant):
        return True  # a method of a literal, such as "a b".split()
    return node.attr in QUICK and isinstance(node.value, (ast.Name, ast.Attribute))


def bound_names(statement: ast.AST) -> Iterator[str]:
    """Names that a statement binds in the module, whatever it is."""
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, (ast.Import, ast.ImportFrom)):
            for alias in node.names:
                yield alias.asname or alias.name.partition(".")[0]
        elif isinstance(node, _SCOPES):
            if not isinstance(node, ast.Lambda):
                yield node.name
            continue
        elif isinstance(node, ast.comprehension):
            pending.append(node.iter)
            continue
        pending.extend(ast.iter_child_nodes(node))


def used_names(tree: ast.AST) -> set[str]:
    """Names that functions and classes in a syntax tree mention."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, _SCOPES):
            names.update(node_child.id for node_child in ast.walk(node) if isinstance(node_child, ast.Name))
    return names
