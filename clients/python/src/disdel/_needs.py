"""What a program needs of the Python that runs it: its files, the modules that they import, and its requirements."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.util
import os
import sys
from typing import Any, Dict, Iterator, List

from . import programs

#: Where the package to install has another name than the module that is imported.
_PACKAGES = {
    "PIL": "pillow",
    "bs4": "beautifulsoup4",
    "cv2": "opencv-python-headless",
    "skimage": "scikit-image",
    "sklearn": "scikit-learn",
    "yaml": "pyyaml",
}

#: Modules that are served inside an action.
_SERVED = ("disdel", "kubeml")


def of(folder: str, file: str = "", entry: str = "", requirements: str = "") -> Dict[str, Any]:
    """The needs of a program, as JSON. Nothing of it runs.

    :param file: "" for a folder whose file is found by the entry.
    :param requirements: path of a requirements.txt, "" for none.
    :returns: ``file``; ``files`` that a program of one file needs; ``missing`` packages; ``unmet`` lines of the
        requirements, with what is installed instead.
    :raises Refused: for a file that does not compile, and where no file or several files have the entry.
    """
    whole = not file
    file = file or programs.file_with(folder, entry)
    files = programs.files_of(folder, file)
    return {
        "file": file,
        "files": [] if whole else files,
        "missing": missing(folder, files),
        "unmet": unmet(requirements) if requirements else [],
    }


def missing(folder: str, files: List[str]) -> List[str]:
    """The packages that files import at their top and that are not installed."""
    wanted = set()
    for file in files:
        wanted |= set(_imported(programs.tree_of(folder, file).body))
    lacking = [name for name in wanted - set(_SERVED) if not _there(folder, name)]
    return sorted(_PACKAGES.get(name, name) for name in lacking)


def _imported(body: List[ast.stmt]) -> Iterator[str]:
    """The first names of imports that run whenever the file does: those in a try or a function may fail."""
    for node in body:
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]
        elif isinstance(node, ast.ClassDef):
            yield from _imported(node.body)


def _there(folder: str, name: str) -> bool:
    if os.path.exists(os.path.join(folder, name + ".py")) or os.path.isdir(os.path.join(folder, name)):
        return True
    try:
        return importlib.util.find_spec(name) is not None
    except (ImportError, ValueError):
        return name in sys.modules


def unmet(path: str) -> List[str]:
    """The lines of a requirements.txt that this Python does not fulfil. A line that cannot be judged counts as one."""
    with open(path, encoding="utf-8") as lines:
        judged = (_judged(line.split(" #")[0].strip()) for line in lines)
        return [line for line in judged if line]


def _judged(line: str) -> str:
    """The line with what is wrong, "" where it is fulfilled."""
    if not line or line.startswith("#"):
        return ""
    if line.startswith(("--index-url", "-i ", "--extra-index-url", "--find-links", "-f ", "--no-", "--pre")):
        return ""  # says where packages come from
    requirements = _parser()
    if requirements is None:
        return line
    try:
        wanted = requirements.Requirement(line.split(" --hash")[0].rstrip(" \\"))
    except Exception:  # an address, a path, another file
        return line
    if wanted.url or (wanted.marker is not None and not wanted.marker.evaluate()):
        return line if wanted.url else ""
    try:
        version = importlib.metadata.version(wanted.name)
    except importlib.metadata.PackageNotFoundError:
        return line
    return "" if wanted.specifier.contains(version, prereleases=True) else "%s (%s is installed)" % (line, version)


def _parser() -> Any:
    """What reads a requirement: pip brings it, where no package does. None: neither is there."""
    for name in ("packaging.requirements", "pip._vendor.packaging.requirements"):
        try:
            return importlib.import_module(name)
        except ImportError:
            continue
    return None
