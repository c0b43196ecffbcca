"""Prepares a function for a bundle: pickled by value together with the project's own modules, so that later edits have no effect."""

from __future__ import annotations

import functools
import importlib.util
import io
import json
import linecache
import os
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from hyperpod_jlab.capture.captured import (
    MAIN,
    Captured,
    CodeFile,
    CommandItem,
    FunctionCall,
    PreviewPart,
    runtime_files,
)
from hyperpod_jlab.capture.files import run_name
from hyperpod_jlab.capture.project import Project, collect_project
from hyperpod_jlab.capture.results import python_version_finding
from hyperpod_jlab.core.errors import InvalidInputError
from hyperpod_jlab.core.finding import Finding
from hyperpod_jlab.core.spec import FunctionSource, JobSpec

# --------------------------------------------------------------------------------------------------
# Finds out what in a function or its arguments cannot be pickled, and explains it.

_DEPTH = 4
_ITEMS = 200

_ADVICE = {
    "generator": "make the generator inside the function",
    "lock": "make the lock inside the function",
    "RLock": "make the lock inside the function",
    "module": "import the module inside the function",
    "socket": "open the connection inside the function",
    "SSLContext": "open the connection inside the function",
    "TextIOWrapper": "open the file inside the function",
    "BufferedReader": "open the file inside the function",
    "BufferedWriter": "open the file inside the function",
}


def explain(call: FunctionCall, error: Exception) -> InvalidInputError:
    """The error for a call that cannot be pickled."""
    path, unpicklable = _find_unpicklable(call)
    reason = f"{type(error).__name__}: {str(error)[:300]}"
    if isinstance(error, RecursionError):
        reason = "it is nested too deeply"
    subject = f"{path}, a {type(unpicklable).__name__} object," if unpicklable is not None else "the function"
    advice = _ADVICE.get(type(unpicklable).__name__, "make it inside the function, or pass what it is made from")
    return InvalidInputError(
        f"{subject} cannot be pickled: {reason}",
        code="not_picklable",
        hint=advice,
        detail={"field": "source", "what": path},
    )


def _find_unpicklable(call: FunctionCall) -> tuple[str, Any]:
    """The innermost object that fails by itself, with its path."""
    roots: list[tuple[str, Any]] = [(f"argument {position}", value) for position, value in enumerate(call.args, 1)]
    roots += [(f"argument '{name}'", value) for name, value in call.kwargs.items()]
    roots.append(("the function", call.function))
    for path, value in roots:
        if _fails(value):
            return _find_in(path, value, set(), 0)
    return "the function", None


def _find_in(path: str, value: Any, seen_ids: set[int], depth: int) -> tuple[str, Any]:
    seen_ids.add(id(value))
    if depth < _DEPTH:
        for inner_path, inner in _parts(path, value):
            if id(inner) not in seen_ids and _fails(inner):
                return _find_in(inner_path, inner, seen_ids, depth + 1)
    return path, value


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, types.FunctionType):
        yield from _function_parts(path, value)
        return
    if isinstance(value, types.MethodType):
        yield f"the object of {path}", value.__self__
    if isinstance(value, dict):
        for key, inner in list(value.items())[:_ITEMS]:
            yield f"{path}[{key!r:.60}]", inner
    elif isinstance(value, list | tuple | set | frozenset):
        for position, inner in enumerate(list(value)[:_ITEMS]):
            yield f"{path}[{position}]", inner
    attributes = getattr(value, "__dict__", None)
    if isinstance(attributes, dict) and not isinstance(value, type | types.ModuleType):
        for name, inner in list(attributes.items())[:_ITEMS]:
            yield f"{path}.{name}", inner


def _function_parts(path: str, function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    names = function.__code__.co_freevars
    for name, cell in zip(names, function.__closure__ or (), strict=False):
        try:
            yield f"the variable '{name}' of {path}", cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    for name in _global_names(function.__code__):
        if name in function.__globals__:
            yield f"the variable '{name}' that {path} uses", function.__globals__[name]
    for position, inner in enumerate(function.__defaults__ or ()):
        yield f"default {position + 1} of {path}", inner


def _global_names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _global_names(constant)


def _fails(value: Any) -> bool:
    from cloudpickle import dumps

    try:
        dumps(value)
    except Exception:  # noqa: BLE001 - any __reduce__ may fail in any way, and that is what is asked
        return True
    return False


__all__ = ["FunctionCall", "capture_function", "python_version_finding"]

PICKLE = "code/function.pkl"
PLAN = "code/function.json"

LARGE_PICKLE = 100 * 1024 * 1024
"""Size in bytes of a pickle from which on a warning is shown."""

# functools has no public name for the type that `functools.cache` returns.
_Cached = functools._lru_cache_wrapper  # noqa: SLF001
_CacheInfo = functools._CacheInfo  # noqa: SLF001

_registry_lock = threading.Lock()


def capture_function(spec: JobSpec, source: FunctionSource, base: Path, call: FunctionCall | None) -> Captured:
    """Capture a function with its arguments.

    Raises:
        InvalidInputError: The function object is missing, or something in it cannot be pickled.
    """
    if call is None:
        raise InvalidInputError(
            "a function can be submitted only by the process that defines it",
            code="no_function",
            hint="submit it from Python: hyperpod_jlab.submit(function, ...)",
            detail={"field": "source"},
        )
    if not callable(call.function):
        raise InvalidInputError(
            f"{type(call.function).__name__} objects cannot be called", code="not_callable", detail={"field": "source"}
        )
    folder = _folder_of(call, base)
    project = collect_project(spec.files, folder, base)
    own_modules = _own_modules({project.root.resolve(), base.resolve(), folder.resolve()})
    pickled = _pickle(call, own_modules)
    sources = _sources(call, own_modules, pickled)
    plan = {
        "format": 1,
        "module": source.module,
        "qualname": source.qualname,
        "python": list(sys.version_info[:3]),
        "by_value": sorted(module.__name__ for module in own_modules),
        "sources": sources,
    }
    command: tuple[CommandItem, ...] = ({"python": True}, "-u", {"bundle": MAIN}, *spec.args)
    return Captured(
        name=run_name(spec.name, source.qualname.rpartition(".")[2].strip("<>")),
        files=(
            *runtime_files("function"),
            *_cloudpickle_files(),
            CodeFile(PLAN, json.dumps(plan, indent=1, sort_keys=True).encode()),
            CodeFile(PICKLE, pickled),
        ),
        project=project.files,
        command=command,
        findings=(*project.findings, *_size_findings(len(pickled))),
        parts=(_part(call, source, own_modules, project),),
    )


def _folder_of(call: FunctionCall, base: Path) -> Path:
    """The folder from which the function's module is imported; `base` if the module is in it, is installed or has no file."""
    function = _unwrap(call.function)
    code = getattr(function, "__code__", None)
    module = str(getattr(function, "__module__", None) or "__main__")
    if not isinstance(code, types.CodeType) or module == "__main__":
        return base
    path = Path(code.co_filename)
    if not path.is_file() or _is_installed(path) or _is_own(path, {base.resolve()}):
        return base
    # For a.b.c in x/a/b/c.py this is x.
    parents = path.resolve().parents
    return parents[min(module.count("."), len(parents) - 1)]


def _unwrap(function: Any) -> Any:
    """The function under bound methods and partials."""
    while True:
        inner = getattr(function, "__func__", None) or getattr(function, "func", None)
        if inner is None:
            return function
        function = inner


def _own_modules(roots: set[Path]) -> list[types.ModuleType]:
    """The project's own modules: loaded from its folders, and not installed."""
    own_modules = []
    starts = tuple(f"{root}".rstrip("/") + "/" for root in roots)
    folders: dict[str, str] = {}
    modules: list[Any] = list(sys.modules.values())  # it may contain any object
    for module in modules:
        file = getattr(module, "__file__", None)
        if (
            isinstance(module, types.ModuleType)
            and isinstance(file, str)
            and module.__name__ != "__main__"
            and sys.modules.get(module.__name__) is module
            and _real_path(file, folders).startswith(starts)
            and _is_own(Path(file), roots)
        ):
            own_modules.append(module)
    return own_modules


def _real_path(file: str, folders: dict[str, str]) -> str:
    """A file's path without links. Hundreds of modules share a few folders, whose real paths `folders` keeps."""
    folder, name = os.path.split(file)
    if folder not in folders:
        folders[folder] = os.path.realpath(folder)
    path = f"{folders[folder]}/{name}"
    return os.path.realpath(path) if Path(path).is_symlink() else path


def _is_own(path: Path, roots: set[Path]) -> bool:
    resolved = path.resolve()
    return any(resolved.is_relative_to(root) for root in roots) and not _is_installed(resolved)


def _is_installed(path: Path) -> bool:
    """Whether a file belongs to Python, to an installed package or to this one."""
    if {"site-packages", "dist-packages"}.intersection(path.parts):
        return True
    library_folders: set[str | None] = {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib")}
    if sys.prefix != sys.base_prefix:
        library_folders.add(sys.prefix)
    library_folders.add(str(Path(__file__).parents[1]))
    return any(path.is_relative_to(Path(folder).resolve()) for folder in library_folders if folder)


@contextmanager
def _pickled_by_value(modules: list[types.ModuleType]) -> Iterator[None]:
    """Make cloudpickle pickle these modules by value, and restore its registrations afterwards."""
    import cloudpickle

    with _registry_lock:
        registered = cloudpickle.list_registry_pickle_by_value()
        added = [module for module in modules if module.__name__ not in registered]
        for module in added:
            cloudpickle.register_pickle_by_value(module)
        try:
            yield
        finally:
            for module in added:
                cloudpickle.unregister_pickle_by_value(module)


def _pickle(call: FunctionCall, own_modules: list[types.ModuleType]) -> bytes:
    import cloudpickle

    names = {"__main__", *(module.__name__ for module in own_modules)}

    class Pickler(cloudpickle.CloudPickler):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            # Otherwise a cached function is pickled by name, which does not exist on the nodes.
            if isinstance(value, _Cached) and value.__module__ in names:
                return _rebuild_cached(value)
            return super().reducer_override(value)

    with _pickled_by_value(own_modules):
        try:
            # Functions compiled by another minor version of Python cannot be loaded anyway, so the
            # newest protocol is safe.
            buffer = io.BytesIO()
            Pickler(buffer).dump((call.function, call.args, dict(call.kwargs)))
            return buffer.getvalue()
        except Exception as error:
            raise explain(call, error) from error


def _rebuild_cached(value: functools._lru_cache_wrapper[Any]) -> tuple[Any, ...]:
    """How to rebuild a cached function with an empty cache (with functools.lru_cache's own parameters)."""
    parameters = value.cache_parameters()
    arguments = (value.__wrapped__, parameters["maxsize"], parameters["typed"], _CacheInfo)
    return _Cached, arguments, dict(vars(value))


def _size_findings(size: int) -> list[Finding]:
    if size <= LARGE_PICKLE:
        return []
    message = f"the function and its arguments are {size >> 20} MiB pickled, and each rank loads them"
    hint = "put large data on the storage partition and pass its path"
    return [Finding(level="warning", code="large_arguments", message=message, hint=hint, field="source")]


def _cloudpickle_files() -> list[CodeFile]:
    """Cloudpickle itself: the nodes may have none, or an older version that cannot read this one's pickles."""
    spec = importlib.util.find_spec("cloudpickle")
    folders = list(spec.submodule_search_locations or ()) if spec is not None else []
    return [
        CodeFile(f"code/lib/cloudpickle/{path.name}", path.read_bytes())
        for folder in folders
        for path in sorted(Path(folder).glob("*.py"))
    ]


def _sources(call: FunctionCall, own_modules: list[types.ModuleType], pickled: bytes) -> dict[str, str]:
    """Sources of the files from which the pickled functions were compiled: the nodes need them for tracebacks."""
    names = {str(module.__file__): vars(module) for module in own_modules}
    code = getattr(_unwrap(call.function), "__code__", None)
    main = getattr(sys.modules.get("__main__"), "__file__", None)
    # By name, because whether the cache below contains a script depends on earlier look-ups.
    names.update({str(name): {} for name in (main, getattr(code, "co_filename", None)) if name})
    # A notebook's cells are files in this cache only.
    names.update({name: {} for name in list(linecache.cache) if name not in names})
    sources = {}
    for name, namespace in names.items():
        # Code pickled by value contains its file's name.
        if name.encode("utf-8", "surrogatepass") in pickled:
            sources[name] = "".join(linecache.getlines(name, namespace))
    return {name: text for name, text in sources.items() if text}


def _part(
    call: FunctionCall, source: FunctionSource, own_modules: list[types.ModuleType], project: Project
) -> PreviewPart:
    code = getattr(_unwrap(call.function), "__code__", None)
    text = f"{source.module}.{source.qualname}"
    if isinstance(code, types.CodeType):
        lines = linecache.getlines(code.co_filename)
        text = "".join(_block(lines[code.co_firstlineno - 1 :])) or text
    module_names = ", ".join(sorted(module.__name__ for module in own_modules)[:10])
    notes = ["pickled by value with its arguments, as defined in this process now"]
    if module_names:
        notes.append(f"modules of the project that it uses are pickled too: {module_names}")
    notes.append(f"other modules are imported by name on the cluster; project root: {project.root}")
    return PreviewPart(f"Function {source.qualname}", "python", text, tuple(notes))


def _block(lines: list[str]) -> list[str]:
    import inspect

    try:
        return inspect.getblock(lines) if lines else []
    except (OSError, SyntaxError, IndentationError):
        return []
