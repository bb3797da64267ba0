"""What docs_test.py reads in a Markdown file: headings, links, and fenced blocks."""
import re

_FENCE = re.compile(r"^( *)```(\S*)\s*$")
_CODE = re.compile(r"`[^`]*`")
_LINK = re.compile(r"\[(?:[^\[\]]|\[[^\]]*\])*\]\(([^()\s]+)\)")


class Block:
    """A fenced block: its language, its first line's number in the file, and its text."""

    def __init__(self, language, line, text):
        self.language, self.line, self.text = language, line, text


class Document:
    """A file. `prose` is its text without fenced blocks, whose lines are empty there."""

    def __init__(self, path):
        self.path, self.blocks, prose = path, [], []
        inside = None  # the block's fence, first line and lines
        for number, line in enumerate(path.read_text().splitlines(), 1):
            fence = _FENCE.match(line)
            if inside is None and fence:
                inside = (fence[1], Block(fence[2], number + 1, ""), [])
            elif inside is not None and fence and not fence[2]:
                indent, block, lines = inside
                block.text = "".join(part.removeprefix(indent) + "\n" for part in lines)
                self.blocks.append(block)
                inside = None
            elif inside is not None:
                inside[2].append(line)
            if inside is not None or fence:
                prose.append("")
            else:
                prose.append(line)
        if inside is not None:
            raise ValueError(f"{path}:{inside[1].line - 1}: a block without an end")
        self.prose = prose

    def of(self, *languages):
        return [block for block in self.blocks if block.language in languages]

    def headings(self):
        return [match[1].strip() for line in self.prose if (match := re.match(r"#{1,6} +(.*)", line))]

    def anchors(self):
        """The anchors of the headings, as GitHub makes them."""
        seen, anchors = {}, set()
        for heading in self.headings():
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
            anchor = re.sub(r"[^\w\- ]", "", text, flags=re.UNICODE).replace(" ", "-")
            count = seen[anchor] = seen.get(anchor, -1) + 1
            anchors.add(f"{anchor}-{count}" if count else anchor)
        return anchors

    def links(self):
        """(line, target) of each link."""
        text = "\n".join(_CODE.sub(lambda code: "`" * len(code[0]), line) for line in self.prose)
        for match in _LINK.finditer(text):
            yield text.count("\n", 0, match.start()) + 1, match[1]
