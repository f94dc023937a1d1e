"""The wheel and the sdist, the examples, and the code of the pages."""

from __future__ import annotations

import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest
import venv
from pathlib import Path
from typing import ClassVar

import lockd

from .support import ROOT, Server

PACKAGE = Path(__file__).resolve().parents[1]
EXAMPLES = PACKAGE / "examples"
GUIDE = ROOT / "docs" / "python.md"


def run(*command: object, cwd: Path | None = None) -> str:
    """What it prints. Fails with that if it fails."""
    done = subprocess.run(
        [str(word) for word in command], cwd=cwd, capture_output=True, text=True, timeout=100
    )
    if done.returncode != 0:
        raise AssertionError(f"{command} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


class Package(unittest.TestCase):
    """In an empty environment, without the sources in reach."""

    folder: ClassVar[Path]
    python: ClassVar[Path]
    _directory: ClassVar[tempfile.TemporaryDirectory[str]]

    @classmethod
    def setUpClass(cls) -> None:
        cls._directory = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._directory.cleanup)
        cls.folder = Path(cls._directory.name)
        builder, empty = cls.folder / "builder", cls.folder / "empty"
        venv.create(builder, with_pip=True)
        pip = [builder / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "-q"]
        try:
            run(*pip, "install", "build", "hatchling")
        except (AssertionError, subprocess.TimeoutExpired) as error:
            raise unittest.SkipTest("no build backend can be had from a registry") from error
        build = [builder / "bin" / "python", "-m", "build", "--no-isolation"]
        run(*build, "--outdir", cls.folder / "dist", PACKAGE)
        (cls.wheel,) = (cls.folder / "dist").glob("lockd-*.whl")
        (cls.sdist,) = (cls.folder / "dist").glob("lockd-*.tar.gz")
        venv.create(empty, with_pip=False)
        cls.python = empty / "bin" / "python"
        run(*pip, "--python", cls.python, "install", "--no-index", "--no-deps", cls.wheel)

    wheel: ClassVar[Path]
    sdist: ClassVar[Path]

    def run_there(self, *arguments: object) -> str:
        return run(self.python, "-I", *arguments, cwd=self.folder)

    def test_the_wheel_needs_nothing(self) -> None:
        where = self.run_there("-c", "import lockd, lockd.aio; print(lockd.__file__)")
        self.assertIn(str(self.folder), where)
        self.assertEqual(
            self.run_there("-c", "import importlib.metadata as m; print(m.requires('lockd'))"),
            "None\n",
        )

    def test_the_wheel_is_typed(self) -> None:
        where = self.run_there("-c", "import lockd; print(lockd.__file__)").strip()
        self.assertTrue(Path(where).with_name("py.typed").exists())

    def test_the_wheel_takes_locks(self) -> None:
        with Server() as server:
            shown = self.run_there(EXAMPLES / "lock.py", server.address)
        self.assertRegex(shown, r"^(step \d under fence \d+\n){3}released\n$")

    def test_the_sdist_has_its_tests(self) -> None:
        with tarfile.open(self.sdist) as archive:
            names = {name.split("/", 1)[1] for name in archive.getnames()}
        for name in ("pyproject.toml", "README.md", "LICENSE", "test", "tests/support.py"):
            self.assertIn(name, names)


class Examples(unittest.TestCase):
    def shown(self, name: str) -> str:
        with Server() as server:
            return run(sys.executable, EXAMPLES / name, server.address)

    def test_lock(self) -> None:
        self.assertRegex(self.shown("lock.py"), r"^(step \d under fence \d+\n){3}released\n$")

    def test_lock_aio(self) -> None:
        self.assertEqual(self.shown("lock_aio.py"), "three worked, 2 at a time\n")

    def test_tour(self) -> None:
        lines = self.shown("tour.py").splitlines()
        self.assertRegex(lines[0], r"^my-job \d+ 30 [12]\d\.\d+ True False$")
        self.assertEqual(lines[1:5], ["queued", "two read", "one writes", "a job of four"])
        self.assertEqual(lines[5], "seat-12 seat-13 under one fence")
        self.assertEqual(lines[6:8], ["reached 1", "orders.42: ready"])
        self.assertEqual(len(lines), 9)


@unittest.skipUnless(GUIDE.exists(), "the guide is not beside the package")
class Guide(unittest.TestCase):
    def test_shows_code_of_the_examples(self) -> None:
        examples = [file.read_text().splitlines() for file in EXAMPLES.glob("*.py")]
        blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
        self.assertGreaterEqual(len(blocks), 5)
        for block in blocks:
            lines = block.splitlines()
            self.assertTrue(
                any(
                    textwrap.dedent("\n".join(example[at : at + len(lines)])) == "\n".join(lines)
                    for example in examples
                    for at in range(len(example))
                ),
                f"in no example, as it stands on the page:\n{block}",
            )

    def test_names_every_error(self) -> None:
        text = GUIDE.read_text()
        for name in lockd.errors.__all__:
            self.assertIn(f"`{name}`", text)


if __name__ == "__main__":
    unittest.main()
