"""Unpacks an action's zip archive into a folder, and nothing outside of it.

The archive is whoever's the action is: names that lead elsewhere, links out of the folder, what comes twice and what is
too much are refused, before or while it is written. Links are made last, so that no file is written through one.
"""

import glob
import io
import os
import site
import stat
import sys
import zipfile
import zlib

MOST_FILES = 50000
MOST_BYTES = 512 << 20
LONGEST_NAME = 1024
PIECE = 1 << 16


class BadArchive(ValueError):
    pass


def parts_of(name):
    parts = name.rstrip("/").split("/")
    if not name or len(name) > LONGEST_NAME or "\0" in name or any(part in ("", ".", "..") for part in parts):
        raise BadArchive("the archive's name %.100r leads out of it" % name)
    return parts


def inside(folder, path):
    real = os.path.realpath(path)
    return real == folder or real.startswith(folder + os.sep)


def write(archive, entry, path, left):
    got = 0
    mode = 0o755 if (entry.external_attr >> 16) & 0o111 else 0o644
    with archive.open(entry) as source:
        with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as target:
            for piece in iter(lambda: source.read(PIECE), b""):
                got += len(piece)
                if got > entry.file_size or got > left:
                    raise BadArchive("the archive holds more than it says, or than %d bytes" % MOST_BYTES)
                target.write(piece)
    return got


def link(archive, entry, folder, path):
    if entry.file_size > LONGEST_NAME:
        raise BadArchive("the link %.100r is too long" % entry.filename)
    target = os.fsdecode(archive.read(entry))
    meant = os.path.normpath(os.path.join(os.path.dirname(path), target))
    if os.path.isabs(target) or meant != folder and not meant.startswith(folder + os.sep):
        raise BadArchive("the link %.100r leads out of the archive" % entry.filename)
    os.symlink(target, path)


def extract(archive, folder):
    entries = archive.infolist()
    if len(entries) > MOST_FILES:
        raise BadArchive("the archive has more than %d files" % MOST_FILES)
    if sum(entry.file_size for entry in entries) > MOST_BYTES:
        raise BadArchive("the archive holds more than %d bytes" % MOST_BYTES)
    left, links = MOST_BYTES, []
    for entry in entries:
        path = os.path.join(folder, *parts_of(entry.orig_filename))  # filename ends at a zero
        if entry.flag_bits & 1 or entry.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
            raise BadArchive("%.100r is encrypted, or packed in another way than deflate" % entry.filename)
        if entry.is_dir():
            os.makedirs(path, exist_ok=True)
            continue
        os.makedirs(os.path.dirname(path), exist_ok=True)
        if stat.S_ISLNK(entry.external_attr >> 16):
            links.append((entry, path))
        else:
            left -= write(archive, entry, path, left)
    for entry, path in links:
        link(archive, entry, folder, path)
    for entry, path in links:  # through each other they may lead further than each alone
        if not inside(folder, path):
            raise BadArchive("the link %.100r leads out of the archive" % entry.filename)


def unpack(file, folder):
    """Unpacks a file of a zip archive into a new folder. It raises BadArchive, with what is wrong, for any that is not
    as it should be."""
    os.mkdir(folder)
    folder = os.path.realpath(folder)
    try:
        with zipfile.ZipFile(file) as archive:
            extract(archive, folder)
    except BadArchive:
        raise
    except FileExistsError as problem:
        raise BadArchive("the archive has %.100r twice" % os.path.relpath(problem.filename, folder)) from None
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError, RuntimeError, NotImplementedError) as problem:
        raise BadArchive("the archive cannot be unpacked: %.200s" % problem) from None
    return folder


def place(data, folder):
    """Unpacks an action's archive into a new folder and makes it the one that the action runs in. It returns the file
    that the action begins with."""
    folder = unpack(io.BytesIO(data), folder)
    file = os.path.join(folder, "__main__.py")
    if not os.path.isfile(file):
        raise BadArchive("Zip file does not include __main__.py at the root.")
    for packages in sorted(glob.glob(os.path.join(folder, "virtualenv", "lib", "python*", "site-packages"))):
        site.addsitedir(packages)
    sys.path.insert(0, folder)
    os.chdir(folder)
    return file
