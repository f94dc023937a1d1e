"""Builds the wheel and the sdist with the standard library alone: a backend as PEP 517 has it.

usage: build_backend.py FOLDER

A package that depends on nothing should need nothing to be built: so it can be, without a network.
The same sources give the same bytes: everything has the date of SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import os
import re
import sys
import tarfile
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

HERE = Path(__file__).resolve().parent
PACKAGE = "src/lockd"
SOURCES = (
    "src",
    "tests",
    "examples",
    "test",
    "build_backend.py",
    "pyproject.toml",
    "README.md",
    "LICENSE",
)
EPOCH_MIN = 315_532_800  # 1980: no zip knows an earlier date


def build_wheel(
    wheel_directory: str,
    config_settings: object = None,
    metadata_directory: str | None = None,
) -> str:
    """The name of the file that it wrote there."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    files = {name.split("/", 1)[1]: data for name, data in _files(PACKAGE)}
    files[f"{stem}.dist-info/licenses/LICENSE"] = (HERE / "LICENSE").read_bytes()
    files[f"{stem}.dist-info/METADATA"] = _metadata(project).encode()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: lockd\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    files[record] = "".join([*map(_recorded, files.items()), f"{record},,\n"]).encode()
    wheel = f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(Path(wheel_directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            entry = zipfile.ZipInfo(name, time.gmtime(_epoch())[:6])
            entry.external_attr = 0o100644 << 16
            archive.writestr(entry, data, zipfile.ZIP_DEFLATED)
    return wheel


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """The name of the file that it wrote there."""
    project = _project()
    stem = f"{project['name']}-{project['version']}"
    sdist = f"{stem}.tar.gz"
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for source in SOURCES:
            for name, data in _files(source):
                _add(archive, f"{stem}/{name}", data)
        _add(archive, f"{stem}/PKG-INFO", _metadata(project).encode())
    packed = gzip.compress(content.getvalue(), mtime=_epoch())
    Path(sdist_directory, sdist).write_bytes(packed)
    return sdist


def _project() -> dict[str, Any]:
    """The table of that name, and the version."""
    with open(HERE / "pyproject.toml", "rb") as file:
        project: dict[str, Any] = tomllib.load(file)["project"]
    found = re.search(r'^__version__ = "(.+)"$', _text(f"{PACKAGE}/__init__.py"), re.MULTILINE)
    assert found is not None, "the package has no version"
    return {**project, "version": found[1]}


def _metadata(project: dict[str, Any]) -> str:
    lines = [
        "Metadata-Version: 2.4",
        f"Name: {project['name']}",
        f"Version: {project['version']}",
        f"Summary: {project['description']}",
        f"Keywords: {','.join(project['keywords'])}",
        f"License-Expression: {project['license']}",
        "License-File: LICENSE",
        f"Requires-Python: {project['requires-python']}",
        *(f"Requires-Dist: {dependency}" for dependency in project["dependencies"]),
        *(f"Classifier: {classifier}" for classifier in project["classifiers"]),
        "Description-Content-Type: text/markdown",
    ]
    return "\n".join([*lines, "", _text(project["readme"])])


def _files(source: str) -> Iterator[tuple[str, bytes]]:
    """Names and contents of a file, or of all in a folder, in an order that is always the same."""
    path = HERE / source
    for file in [path] if path.is_file() else sorted(path.rglob("*")):
        if file.is_file() and file.suffix != ".pyc":
            yield file.relative_to(HERE).as_posix(), file.read_bytes()


def _add(archive: tarfile.TarFile, name: str, data: bytes) -> None:
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = len(data), _epoch()
    entry.mode = 0o755 if data.startswith(b"#!") else 0o644
    archive.addfile(entry, io.BytesIO(data))


def _recorded(file: tuple[str, bytes]) -> str:
    name, data = file
    digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(data)}\n"


def _text(name: str) -> str:
    return (HERE / name).read_text(encoding="utf-8")


def _epoch() -> int:
    return max(int(os.environ.get("SOURCE_DATE_EPOCH", EPOCH_MIN)), EPOCH_MIN)


if __name__ == "__main__":
    for build in (build_wheel, build_sdist):
        print(build(sys.argv[1]))
