"""Reads a pprof file, as far as tests need: rows of addresses, names and values.

  profile = pprof_file.read(path)
"""
import gzip


def fields(message):
    """(number, value) of each field: an integer, or bytes."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
        elif key & 7 == 2:
            size = varint()
            yield key >> 3, message[at:at + size]
            at += size
        else:
            raise ValueError("wire type %d" % (key & 7))


def numbers(values):
    """A repeated number, packed or not."""
    out = []
    for value in values:
        out += [value] if isinstance(value, int) else [number for _, number in fields(b"".join(b"\x08" + part for part in split(value)))]
    return out


def split(packed):
    begin = 0
    for at, byte in enumerate(packed):
        if byte < 0x80:
            yield packed[begin:at + 1]
            begin = at + 1


def grouped(message):
    groups = {}
    for number, value in fields(message):
        groups.setdefault(number, []).append(value)
    return groups


class Location:
    def __init__(self, profile, message):
        groups = grouped(message)
        self.address = groups.get(3, [0])[0]
        self.mapping = profile.mappings.get(groups.get(2, [0])[0])
        # The outermost of the functions that are inlined there.
        lines = [grouped(line) for line in groups.get(4, [])]
        function = lines[-1].get(1, [0])[0] if lines else 0
        self.function = profile.functions.get(function, ("", ""))
        self.file = profile.files.get(function, "")

    @property
    def offset(self):
        """In the file."""
        return self.address - self.mapping[0] + self.mapping[1] if self.mapping else None


class Profile:
    def __init__(self, message):
        groups = grouped(message)
        strings = [text.decode() for text in groups[6]]
        self.types = [strings[grouped(kind).get(1, [0])[0]] for kind in groups.get(1, [])]
        self.mappings, self.functions, self.files, locations = {}, {}, {}, {}
        for mapping in map(grouped, groups.get(3, [])):
            self.mappings[mapping[1][0]] = (mapping.get(2, [0])[0], mapping.get(4, [0])[0], strings[mapping.get(5, [0])[0]])
        for function in map(grouped, groups.get(5, [])):
            self.functions[function[1][0]] = (strings[function.get(2, [0])[0]], strings[function.get(3, [0])[0]])
            self.files[function[1][0]] = strings[function.get(4, [0])[0]]
        for location in groups.get(4, []):
            locations[grouped(location)[1][0]] = Location(self, location)
        self.comments = [strings[number] for number in numbers(groups.get(13, []))]
        # (locations from the leaf to the root, values, labels)
        self.rows = []
        for row in map(grouped, groups.get(2, [])):
            labels = {}
            for label in map(grouped, row.get(3, [])):
                labels[strings[label[1][0]]] = strings[label[2][0]] if 2 in label else label.get(3, [0])[0]
            self.rows.append(([locations[number] for number in numbers(row.get(1, []))], numbers(row.get(2, [])), labels))


def read(path):
    with gzip.open(path) as stream:
        return Profile(stream.read())
