"""The wheel and the sdist, the examples, and the code of the pages."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tarfile
import tempfile
import textwrap
import unittest
from pathlib import Path

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


@unittest.skipIf(sys.version_info < (3, 11), "Python 3.11 is needed to build them")
class Package(unittest.TestCase):
    """What is built. ``clients/packages_test`` installs it."""

    def built(self, environment: dict[str, str]) -> Path:
        """The folder with the wheel and the sdist."""
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        command = [sys.executable, "-B", str(PACKAGE / "build_backend.py"), folder.name]
        subprocess.run(command, env={**os.environ, **environment}, check=True, capture_output=True)
        return Path(folder.name)

    def test_the_same_sources_give_the_same_bytes(self) -> None:
        date = {"SOURCE_DATE_EPOCH": "1794760433"}
        one, two = self.built(date), self.built(date)
        for suffix in ("*.whl", "*.tar.gz"):
            (first,), (second,) = one.glob(suffix), two.glob(suffix)
            self.assertEqual(first.read_bytes(), second.read_bytes())

    def test_the_sdist_has_its_tests(self) -> None:
        (sdist,) = self.built({}).glob("*.tar.gz")
        with tarfile.open(sdist) as archive:
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
        self.assertEqual(lines[6], "a report alone, prices shared, four cores: True")
        self.assertEqual(lines[7:9], ["reached 1", "orders.42: ready"])
        self.assertEqual(len(lines), 10)


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
