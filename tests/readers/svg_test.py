#!/usr/bin/env python3
"""svg_test.py WRITE_SAMPLES COLORS: the pictures of the sample profiles, as any reader of XML sees them.

WRITE_SAMPLES writes the samples; COLORS is the script of the page whose colours the pictures have.
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

SVG = "{http://www.w3.org/2000/svg}"
HEAD_PX, ROW_PX, LEFT_PX, WIDTH_PX = 70, 18, 10, 1200
# Sides are rounded to a hundredth of a pixel.
ROUNDING_PX = 0.011
MAX_BYTES = 10_000_000


def srgb(lightness, chroma, hue):
    """A colour of OKLCH as "#rrggbb", by the definition of the colour space."""
    a, b = chroma * math.cos(math.radians(hue)), chroma * math.sin(math.radians(hue))
    cones = [(lightness + x * a + y * b) ** 3
             for x, y in ((0.3963377774, 0.2158037573), (-0.1055613458, -0.0638541728), (-0.0894841775, -1.2914855480))]
    text = "#"
    for row in ((4.0767416621, -3.3077115913, 0.2309699292), (-1.2684380046, 2.6097574011, -0.3413193965),
                (-0.0041960863, -0.7034186147, 1.7076147010)):
        linear = max(0, sum(factor * cone for factor, cone in zip(row, cones)))
        encoded = 12.92 * linear if linear <= 0.0031308 else 1.055 * linear ** (1 / 2.4) - 0.055
        text += f"{max(0, min(255, round(255 * encoded))):02x}"
    return text


def page_fills(script):
    """The fills of the page's light theme."""
    hues = [int(hue) for hue in re.search(r"MODULE_HUES = \[([\d, ]+)\]", script)[1].split(",")]
    neutral = int(re.search(r"NEUTRAL_HUE = (\d+)", script)[1])
    light = script[script.index("const LIGHT"):script.index("const DARK")]
    fills = {"#ffffff"}
    for name in ("code", "inlined"):
        first, step = (json.loads(re.search(rf"{name}: {{first: (\[[^\]]+\]), step: (\[[^\]]+\])", light)[i]) for i in (1, 2))
        fills |= {srgb(first[0] + i * step[0], first[1] + i * step[1], hue) for hue in hues for i in range(3)}
    for name in ("plain", "rest"):
        fills.add(srgb(*json.loads(re.search(rf"{name}: (\[[^\]]+\])", light)[1]), neutral))
    return fills


def boxes_of(root):
    """(row, left, right, title, text) of each box."""
    for group in root.iter(f"{SVG}g"):
        rect, text = group.find(f"{SVG}rect"), group.find(f"{SVG}text")
        left, width = float(rect.get("x")), float(rect.get("width"))
        yield (int(rect.get("y")) - HEAD_PX) // ROW_PX, left, left + width, group.find(f"{SVG}title").text, text.text if text is not None else ""


def check_boxes(name, root):
    rows = {}
    for row, *box in boxes_of(root):
        rows.setdefault(row, []).append(box)
    for row, boxes in sorted(rows.items()):
        boxes.sort()
        for (_, end, title, _), (begin, _, other, _) in zip(boxes, boxes[1:]):
            if begin < end - ROUNDING_PX:
                sys.exit(f"{name}: {title} and {other} of row {row} overlap")
        for left, right, title, text in boxes:
            if not title or right <= left or left < LEFT_PX or right > LEFT_PX + WIDTH_PX + ROUNDING_PX:
                sys.exit(f"{name}: a box without a place: {title!r} from {left} to {right}")
            if row > 0 and not any(begin <= left + ROUNDING_PX and right <= end + ROUNDING_PX for begin, end, *_ in rows[row - 1]):
                sys.exit(f"{name}: {title} of row {row} is not below one caller")
    # What a function has in itself is what its callees leave of its box.
    for row, boxes in rows.items():
        for left, right, title, text in boxes:
            if "in itself" not in title and row > 0 and "too narrow" not in title:
                below = sum(end - begin for begin, end, *_ in rows.get(row + 1, []) if left - ROUNDING_PX <= begin and end <= right + ROUNDING_PX)
                if abs(below - (right - left)) > ROUNDING_PX:
                    sys.exit(f"{name}: the callees of {title} have {below} px of {right - left}")
    return sum(len(boxes) for boxes in rows.values())


def main(write_samples, colors):
    fills = page_fills(pathlib.Path(colors).read_text())
    count = 0
    with tempfile.TemporaryDirectory() as directory:
        subprocess.run([write_samples, directory], check=True)
        sums = json.loads((pathlib.Path(directory) / "sums.json").read_text())
        pictures = sorted(pathlib.Path(directory).glob("*.svg"))
        if {path.stem for path in pictures} != set(sums):
            sys.exit(f"pictures are missing: {pictures}")
        for path in pictures:
            if path.stat().st_size > MAX_BYTES:
                sys.exit(f"{path.name}: {path.stat().st_size} bytes")
            root = ElementTree.parse(path).getroot()
            if unknown := {rect.get("fill") for rect in root.iter(f"{SVG}rect")} - fills:
                sys.exit(f"{path.name}: not the page's colours: {unknown}")
            if root.tag != f"{SVG}svg" or {element.tag for element in root.iter()} - {SVG + tag for tag in ("svg", "g", "rect", "text", "title")}:
                sys.exit(f"{path.name}: more than boxes and texts")
            boxes = check_boxes(path.name, root)
            if (sums[path.stem].get("cpu", 0) > 0) != (boxes > 1):
                sys.exit(f"{path.name}: {boxes} boxes of {sums[path.stem]}")
            if boxes <= 1 and "no samples" not in root.find(f"{SVG}title").text:
                sys.exit(f"{path.name}: an empty picture does not say so")
            count += boxes
    print(f"{count} boxes in {len(pictures)} pictures")


if __name__ == "__main__":
    main(*sys.argv[1:])
