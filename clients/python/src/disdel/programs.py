"""Load a user's program, find what trains in it, and tell what is wrong with it in the user's own lines."""

from __future__ import annotations

import ast
import errno
import importlib
import importlib.util
import inspect
import linecache
import os
import sys
import traceback
from typing import Any, Dict, Iterator, List, NamedTuple, Optional, Tuple

MODULE, TASK, LOOP, KUBEML = "module", "task", "loop", "kubeml"

#: The package and the name of the class that an entry of a form is derived from.
_BASES = {KUBEML: ("kubeml", "KubeModel"), TASK: ("disdel", "Task"), MODULE: ("torch", "Module")}


class Refused(Exception):
    """What is wrong with a program, for the person who wrote it.

    :param kind: ``syntax``, ``import``, ``user``, ``memory``, ``diverged``, ``changed``, ``unsupported``, ``exit``,
        ``arguments``, ``export`` or ``timeout``.
    """

    def __init__(
        self,
        kind: str,
        message: str,
        *,
        place: str = "",
        source: str = "",
        trace: str = "",
        module: str = "",
        size: int = 0,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.place = place  #: ``net.py:31 in loss``
        self.source = source  #: the text of that line
        self.trace = trace  #: the whole traceback
        self.module = module  #: the module that an import did not find
        self.size = size  #: bytes that could not be had

    def told(self) -> Dict[str, Any]:
        """The error as JSON has it; what is empty is left out."""
        fields = {
            "kind": self.kind,
            "message": self.message,
            "place": self.place,
            "source": self.source,
            "trace": self.trace,
            "module": self.module,
            "bytes": self.size,
        }
        return {name: value for name, value in fields.items() if value}


class Program(NamedTuple):
    """A program that was loaded."""

    form: str  #: ``module``, ``task``, ``loop`` or ``kubeml``
    entry: str  #: the name of what trains
    value: Any  #: the class or function of that name
    module: Any  #: the Python module that has it


def load(folder: str, file: str, entry: str = "", arguments: Optional[Dict[str, Any]] = None) -> Program:
    """Import a program and find its entry.

    :param folder: the folder with all its files; it becomes the first place where imports look.
    :param file: the module's file, relative to the folder.
    :param entry: a class or function of the module; "" where only one fits.
    :raises Refused: with the user's line where importing fails, and with the list of entries where none or several fit.
    """
    if not os.path.isfile(os.path.join(folder, file)):
        raise Refused("arguments", "%s: there is no such file" % file)
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        module = _imported(folder, file)
    except BaseException as error:  # a SystemExit, too
        raise refusal(error, folder) from error
    return find(module, file, entry, arguments or {})


def _imported(folder: str, file: str) -> Any:
    name = os.path.splitext(file)[0].replace(os.sep, ".")
    if "." in name:
        return importlib.import_module(name)
    if name in sys.modules or name in getattr(sys, "stdlib_module_names", ()):
        name = "program_" + name  # the user's random.py must not be everybody's
    spec = importlib.util.spec_from_file_location(name, os.path.join(folder, file))
    if spec is None or spec.loader is None:
        raise Refused("arguments", "%s is no Python file" % file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def find(module: Any, file: str, entry: str, arguments: Dict[str, Any]) -> Program:
    """The entry of a module by its name, or the only one that fits."""
    if entry:
        if not hasattr(module, entry):
            raise Refused("arguments", "%s has no %s; it has %s" % (file, entry, _listed(_entries(module))))
        value = getattr(module, entry)
        form = _form(entry, value)
        if not form and callable(value):
            form = MODULE  # a function that returns a network
        if not form:
            raise Refused("arguments", "%s in %s is no class and no function" % (entry, file))
        return Program(form, entry, value, module)
    entries = _entries(module)
    # The first form that a file has is meant: a task's file has networks, too.
    for form in (KUBEML, TASK, LOOP, MODULE):
        fits = [e for e in entries if e.form == form]
        if len(fits) > 1:
            fits = [e for e in fits if _accepts(e.value, arguments)] or fits
        if len(fits) == 1:
            return fits[0]
        if fits:
            break
    if not fits:
        raise Refused(
            "arguments",
            "%s has nothing to train: no class derived from torch.nn.Module or disdel.Task, no def train(run),"
            " and no KubeModel" % file,
        )
    raise Refused("arguments", "%s has several entries: %s; name one" % (file, _listed(fits)))


def _listed(entries: List[Program]) -> str:
    return ", ".join(sorted(e.entry for e in entries)) or "none that trains"


def _entries(module: Any) -> List[Program]:
    """What trains among the module's own names; imported names are other files'."""
    own = [(n, v) for n, v in vars(module).items() if getattr(v, "__module__", None) == module.__name__]
    found = [Program(_form(n, v), n, v, module) for n, v in own if not n.startswith("_")]
    if any(e.form == KUBEML for e in found) and callable(getattr(module, "main", None)):
        return [Program(KUBEML, "main", module.main, module)]
    return [e for e in found if e.form]


def _form(name: str, value: Any) -> str:
    """The form of an entry, "" where it is none. Bases are told by name: what is not imported stays unloaded."""
    if isinstance(value, type):
        bases = {(b.__module__.split(".")[0], b.__name__) for b in value.__mro__[1:]}
        for form, base in _BASES.items():
            if base in bases:
                return form
        return ""
    if inspect.isfunction(value) and name == "main" and "kubeml" in _imports_of(value):
        return KUBEML
    return LOOP if inspect.isfunction(value) and name == "train" and _positional(value) == 1 else ""


def _imports_of(function: Any) -> Iterator[str]:
    for value in function.__globals__.values():
        yield str(getattr(value, "__module__", "") or "").split(".")[0]


def _positional(function: Any) -> int:
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in parameters)


def _accepts(value: Any, arguments: Dict[str, Any]) -> bool:
    try:
        inspect.signature(value).bind(**arguments)
    except TypeError:
        return False
    except ValueError:  # no signature is known
        return True
    return True


def built(program: Program, arguments: Dict[str, Any], folder: str) -> Any:
    """What the entry returns for its arguments.

    :raises Refused: kind ``arguments`` where they do not fit its signature, else as :func:`refusal` has it.
    """
    try:
        inspect.signature(program.value).bind(**arguments)
    except ValueError:
        pass
    except TypeError as error:
        place, source = definition(program.value, folder)
        raise Refused("arguments", "%s: %s" % (program.entry, error), place=place, source=source) from error
    try:
        return program.value(**arguments)
    except BaseException as error:
        raise refusal(error, folder) from error


def definition(value: Any, folder: str) -> Tuple[str, str]:
    """The place and the text of the line that begins a class or a function of the user's, "" where it is another's."""
    init = getattr(value, "__init__", None) if isinstance(value, type) else None
    target = init if inspect.isfunction(init) else value
    code = getattr(target, "__code__", None)
    if code is None or not inside(code.co_filename, folder):
        return "", ""
    place = "%s:%d in %s" % (os.path.relpath(code.co_filename, folder), code.co_firstlineno, code.co_name)
    return place, linecache.getline(code.co_filename, code.co_firstlineno).strip()


def refusal(error: BaseException, folder: str) -> Refused:
    """Any exception of a user's code as a refusal, with the last line of the user's that led to it."""
    if isinstance(error, Refused):
        return error
    trace = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    if isinstance(error, SyntaxError):
        place = "%s:%d" % (relative(error.filename or "", folder), error.lineno or 0)
        return Refused("syntax", str(error.msg), place=place, source=(error.text or "").strip(), trace=trace)
    place, source = user_line(traceback.extract_tb(error.__traceback__), folder)
    message = "%s: %s" % (type(error).__name__, error) if str(error) else type(error).__name__
    if isinstance(error, SystemExit):
        message = "the program ended by itself with code %s" % error.code
        return Refused("exit", message, place=place, source=source, trace=trace)
    if "can't start new thread" in message:
        message += ". The stacks of threads count as memory: start fewer, or call threading.stack_size(1 << 20) before"
        return Refused("memory", message, place=place, source=source, trace=trace)
    no_memory = isinstance(error, MemoryError) or getattr(error, "errno", None) == errno.ENOMEM
    if no_memory or "can't allocate memory" in message or "bad_alloc" in message:
        return Refused("memory", message, place=place, source=source, trace=trace, size=_wanted(message))
    if isinstance(error, ImportError):
        return Refused("import", message, place=place, source=source, trace=trace, module=error.name or "")
    return Refused("user", message, place=place, source=source, trace=trace)


def user_line(frames: Any, folder: str) -> Tuple[str, str]:
    """The place and the text of the last frame in the user's files, "" where none is."""
    for frame in reversed(list(frames)):
        if inside(frame.filename, folder):
            return "%s:%d in %s" % (relative(frame.filename, folder), frame.lineno or 0, frame.name), frame.line or ""
    return "", ""


def inside(file: str, folder: str) -> bool:
    """Whether a file is the program's own: a virtual environment in its folder is not."""
    file, folder = os.path.realpath(file), os.path.realpath(folder)
    return file.startswith(folder + os.sep) and "site-packages" not in file[len(folder) :].split(os.sep)


def relative(file: str, folder: str) -> str:
    """A file's path for messages."""
    if not inside(file, folder):
        return os.path.basename(file)
    return os.path.relpath(os.path.realpath(file), os.path.realpath(folder))


def _wanted(message: str) -> int:
    """The size in torch's message: you tried to allocate 8000 bytes."""
    words = message.split()
    for number, unit in zip(words, words[1:]):
        if unit.startswith("byte") and number.isdigit():
            return int(number)
    return 0


def files_of(folder: str, file: str) -> List[str]:
    """The files that a program of one file needs: itself and every module beside it that these import.

    :raises Refused: kind ``syntax`` for a file that does not compile. Nothing is imported.
    """
    found: List[str] = []
    wanted = [file]
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        found.append(name)
        for module in _named_imports(folder, name):
            parts = module.split(".")
            for depth in range(1, len(parts) + 1):
                path = os.path.join(*parts[:depth])
                wanted += [f for f in (path + ".py", os.path.join(path, "__init__.py")) if _is_file(folder, f)]
    return sorted(found)


def _is_file(folder: str, name: str) -> bool:
    return os.path.isfile(os.path.join(folder, name))


def _named_imports(folder: str, file: str) -> Iterator[str]:
    package = os.path.dirname(file).split(os.sep) if os.path.dirname(file) else []
    for node in ast.walk(tree_of(folder, file)):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package[: len(package) - node.level + 1] if node.level else []
            base = base + (node.module.split(".") if node.module else [])
            for alias in node.names:
                yield ".".join(base + [alias.name])


def tree_of(folder: str, file: str) -> ast.Module:
    """The syntax of a file.

    :raises Refused: kind ``syntax``.
    """
    path = os.path.join(folder, file)
    try:
        with open(path, "rb") as source:
            return ast.parse(source.read(), path)
    except (SyntaxError, ValueError) as error:
        raise refusal(error, folder) from error


def file_with(folder: str, entry: str = "") -> str:
    """The file of a folder that has the entry, or the only file that defines something to train. Nothing is imported.

    :raises Refused: where none or several files have it.
    """
    names = sorted(n for n in os.listdir(folder) if n.endswith(".py"))
    fits = [n for n in names if _defines(tree_of(folder, n), entry)]
    if len(fits) == 1:
        return fits[0]
    what = entry or "something to train"
    if not fits:
        raise Refused("arguments", "no Python file directly in the folder defines %s" % what)
    raise Refused("arguments", "several files define %s: %s; name one of them" % (what, ", ".join(fits)))


def _defines(tree: ast.Module, entry: str) -> bool:
    for node in tree.body:
        if not isinstance(node, (ast.ClassDef, ast.FunctionDef)):
            continue
        if entry and node.name == entry:
            return True
        if entry:
            continue
        if isinstance(node, ast.FunctionDef) and node.name == "train" and len(node.args.args) == 1:
            return True
        if isinstance(node, ast.ClassDef) and any(_last_name(b) in ("Module", "Task", "KubeModel") for b in node.bases):
            return True
    return False


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
