"""Pages of the documentation, as their tests read them: headings, links, code and sessions.

Everything keeps the number of its line, for complaints that an editor can jump to.
"""

import re
from dataclasses import dataclass, field
from pathlib import Path

NOT_RUN = re.compile(r"<!-- not run: (.+) -->")
NEEDS = re.compile(r"<!-- needs: (\S+) -->")


@dataclass
class Block:
    """What stands between two fences."""

    line: int  # of the first fence
    language: str
    lines: list
    not_run: str = ""  # why nobody runs it, if the comment above says so
    needs: str = ""  # a program that not every machine has, likewise

    @property
    def text(self):
        return "\n".join(self.lines) + "\n"


@dataclass
class Command:
    """A command behind a prompt, and what the page says that it prints."""

    line: int
    text: str
    shown: list = field(default_factory=list)


class Page:
    def __init__(self, path, name):
        self.path = path
        self.name = name  # as complaints have it: docs/http.md
        self.blocks = []
        self.prose = []  # (number, text) of every line that is not in a block
        self._read(path.read_text().splitlines())

    def _read(self, lines):
        block, above = None, ""
        for number, line in enumerate(lines, 1):
            fence = re.match(r"```(\w*)$", line)
            if block is not None:
                if line == "```":
                    self.blocks.append(block)
                    block = None
                else:
                    block.lines.append(line)
            elif fence:
                reason, needs = NOT_RUN.fullmatch(above), NEEDS.fullmatch(above)
                block = Block(number, fence[1], [], reason[1] if reason else "",
                              needs[1] if needs else "")
            else:
                self.prose.append((number, line))
            above = line
        if block is not None:
            raise ValueError(f"{self.name}:{block.line}: a block without an end")

    def anchors(self):
        """What a link may name behind #, as GitHub makes it of headings."""
        found = {}
        for _, line in self.prose:
            heading = re.match(r"#+ (.*)", line)
            if not heading:
                continue
            text = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading[1]).lower()
            slug = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
            found[slug] = found.get(slug, 0) + 1
        return {slug if n == 0 else f"{slug}-{n}" for slug, count in found.items()
                for n in range(count)}

    def links(self):
        """(line, target) of every link and picture."""
        for number, line in self.prose:
            for target in re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", line)):
                yield number, target
            # A link whose text is code.
            for target in re.findall(r"\[`[^`]*`\]\(([^)\s]+)\)", line):
                yield number, target

    def code(self):
        """(line, text) of everything in backticks."""
        for number, line in self.prose:
            for text in re.findall(r"`([^`]+)`", line):
                yield number, text

    def commands(self, block):
        """The commands of a block, each with the lines behind it. "> " continues a command."""
        found = []
        for number, line in enumerate(block.lines, block.line + 1):
            if line.startswith("$ "):
                found.append(Command(number, line[2:]))
            elif not found:
                raise ValueError(f"{self.name}:{number}: no command is above this")
            elif line.startswith("> ") and not found[-1].shown:
                found[-1].text += "\n" + line[2:]
            else:
                found[-1].shown.append(line)
        return found


def all_pages(source_dir):
    root = Path(source_dir)
    paths = [root / name for name in
             ("README.md", "ARCHITECTURE.md", "DESIGN.md", "CONTRIBUTING.md", "CHANGELOG.md",
              "SECURITY.md")]
    paths += sorted((root / "docs").glob("*.md"))
    return [Page(path, str(path.relative_to(root))) for path in paths]
