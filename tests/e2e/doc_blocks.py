"""The blocks of code in a Markdown page, fenced or indented."""
import dataclasses
import pathlib
import re


@dataclasses.dataclass
class Block:
    page: str  # below the root of the project
    line: int  # of its first line
    language: str  # of a fence; empty where there is none
    text: str

    def __str__(self):
        return f"{self.page}:{self.line}"


def fenced(lines, start):
    """The end of the block whose fence opens in line `start`."""
    fence = re.match(r"`{3,}|~{3,}", lines[start]).group()
    end = start + 1
    while end < len(lines) and not lines[end].startswith(fence):
        end += 1
    return end


def indented(lines, start):
    end = start
    while end < len(lines) and (lines[end].startswith("    ") or not lines[end].strip()):
        end += 1
    return end


def blocks_of(path, root):
    """In Markdown four spaces are a block only after an empty line, else they continue a paragraph or list."""
    lines = pathlib.Path(path).read_text().split("\n")
    page, at, found = str(pathlib.Path(path).relative_to(root)), 0, []
    while at < len(lines):
        after_gap = at == 0 or not lines[at - 1].strip()
        if lines[at].startswith(("```", "~~~")):
            end = fenced(lines, at)
            found.append(Block(page, at + 2, lines[at].strip("`~ "), "\n".join(lines[at + 1:end])))
            at = end + 1
        elif lines[at].startswith("    ") and lines[at].strip() and after_gap:
            end = indented(lines, at)
            found.append(Block(page, at + 1, "", "\n".join(line[4:] for line in lines[at:end]).rstrip()))
            at = end
        else:
            at += 1
    return found
