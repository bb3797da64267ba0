#!/usr/bin/env python3
"""Makes html_page.cc of the page's sources: embed.py OUTPUT LIST

Each line of LIST is the path of a part, from LIST's folder: the page, its style, then its scripts. The scripts are joined in that order, as
one script. The page's Content-Security-Policy names the hashes of that script and of the style. The result is the same on every machine.
"""
import base64
import hashlib
import pathlib
import sys

LINE_BYTES = 4000  # of a string literal


def source(path):
    text = pathlib.Path(path).read_bytes().decode("utf-8")
    lowered = text.lower()
    for end in ("</script", "</style", "<!--"):
        if end in lowered and not path.endswith("page.html"):
            sys.exit(f"{path}: contains {end}, which ends or changes the element it is embedded in")
    if "\r" in text:
        sys.exit(f"{path}: browsers hash lines that end in one character only")
    return text


def csp_hash(text):
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


def literal(text):
    """`text` as a C++ expression: string literals, one after the other."""
    content = text.encode()
    escaped = {ord('"'): '\\"', ord("\\"): "\\\\", ord("\n"): "\\n", ord("?"): "\\?"}
    lines = []
    for begin in range(0, len(content), LINE_BYTES):
        piece = content[begin:begin + LINE_BYTES]
        # Octal escapes end after three digits, whatever follows.
        lines.append('"' + "".join(escaped.get(byte) or (chr(byte) if 0x20 <= byte < 0x7F else f"\\{byte:03o}") for byte in piece) + '"')
    return "\n    ".join(lines) or '""'


def main():
    output, list_path = sys.argv[1:]
    folder = pathlib.Path(list_path).parent
    page_path, style_path, *script_paths = (str(folder / part) for part in pathlib.Path(list_path).read_text().split())
    style = "\n" + source(style_path)
    script = "\n'use strict';\n{\n" + "\n".join(source(path) for path in script_paths) + "}\n"
    policy = f"default-src 'none'; script-src {csp_hash(script)}; style-src {csp_hash(style)}; worker-src blob:; base-uri 'none'; form-action 'none'"
    page = source(page_path)
    for mark, text in (("{{policy}}", policy), ("{{style}}", style), ("{{script}}", script)):
        if page.count(mark) != 1:
            sys.exit(f"{page_path}: {mark} must stand there once")
        page = page.replace(mark, text)
    for mark in ("{{title}}", "{{data}}"):
        if page.count(mark) != 1:
            sys.exit(f"{page_path}: {mark} must stand in the page once")
    before_title, rest = page.split("{{title}}")
    before_data, after_data = rest.split("{{data}}")
    parts = ",\n    ".join(literal(part) for part in (before_title, before_data, after_data))
    pathlib.Path(output).write_text(f'// Made by embed.py.\n#include "encode/html/html_page.h"\n\nnamespace strobe::internal {{\n\n'
                                    f"const HtmlPage kHtmlPage = {{\n    {parts}}};\n\n}}  // namespace strobe::internal\n")


if __name__ == "__main__":
    main()
