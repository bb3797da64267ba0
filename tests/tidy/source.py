"""A look at C++ source that is just deep enough for the rules of tidy.py: comments and strings blanked, scopes by their braces."""
import re

# A comment, a string, a character; digit separators are no characters.
_BLANK = re.compile(r'//[^\n]*|/\*.*?\*/|R"([^(\s]*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|(?<![0-9A-Za-z])\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_KEYWORDS = re.compile(r"\b(?:if|for|while|switch|catch|do|else|try|return)\b")


def blanked(text):
    """`text` with every comment and literal replaced by spaces; lines stay where they are."""
    return _BLANK.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), text)


def without_directives(text):
    """`text` with preprocessor lines, and what they continue on, blanked."""
    return re.sub(r"^[ \t]*#(?:[^\n\\]|\\.|\\\n)*", lambda match: re.sub(r"[^\n]", " ", match.group()), text, flags=re.MULTILINE | re.DOTALL)


def namespaces(text):
    """(line, name) of each namespace definition; an anonymous one has the name ''."""
    code = without_directives(blanked(text))
    for match in re.finditer(r"\b(?:inline\s+)?namespace\b\s*([\w:\s]*?)\s*\{", code):
        yield code.count("\n", 0, match.start()) + 1, "".join(match.group(1).replace("STROBE_HIDDEN", "").split())


def own_lines(text):
    """(line, the namespace around the anonymous one) of each line that is a file's own: directly in an anonymous namespace."""
    depth, opened = 0, []  # opened: the depth within each namespace, and its name
    for number, line in enumerate(without_directives(blanked(text)).splitlines(), 1):
        if match := re.match(r"namespace\s*([\w:]*)\s*\{", re.sub(r"\bSTROBE_HIDDEN\s*", "", line)):
            opened.append((depth + 1, match[1]))
        elif opened and opened[-1] == (depth, ""):
            yield number, "::".join(name for _, name in opened if name)
        depth += line.count("{") - line.count("}")
        while opened and depth < opened[-1][0]:
            opened.pop()


def file_names(text):
    """(line, name, definition) of each type, alias, constant and variable of a file's own."""
    code, originals = without_directives(blanked(text)).splitlines(), text.splitlines()
    for number, scope in own_lines(text):
        if match := re.match(r"(?:class|struct|enum class|using|(?:const|constexpr|constinit|thread_local)\b[^(]*?)\s+(\w+)\s*(?:final\b\s*)?(?:[={;\[]|:(?!:)|$)",
                             code[number - 1]):
            yield number, f"{scope}::{match[1]}", originals[number - 1]


def file_functions(text):
    """(line, name and parameters) of each function of a file's own."""
    code, own = without_directives(blanked(text)).splitlines(), dict(own_lines(text))
    for first, _, heading in functions(text):
        match = re.search(r"([\w:~]+)\(", heading)
        # What belongs to a class is indented; what is written in capitals is a macro, as TEST.
        if first in own and not code[first - 1].startswith(" ") and match is not None and not match[1].isupper():
            yield first, f"{own[first]}::{match[1]}{heading[match.end() - 1:heading.rfind(')') + 1]}"


def functions(text):
    """(first line, last line, heading) of each function body, those of lambdas at namespace level included."""
    code = without_directives(blanked(text))
    scopes = []  # start of the function's heading that the scope is the body of, None for a body of something else, "=" for an initializer
    heading_start = 0
    in_function = False
    for position, character in ((match.start(), match.group()) for match in re.finditer(r"[{};]", code)):
        heading = code[heading_start:position]
        if character == "{":
            # In formatted code only an initializer's brace follows its name without a space; the
            # heading goes on behind it.
            if not in_function and heading and not heading[-1].isspace() and heading[-1] not in "{}(;":
                scopes.append("=")
                continue
            opens_function = not in_function and _is_function(heading)
            in_function = in_function or opens_function
            scopes.append(heading_start + len(heading) - len(heading.lstrip()) if opens_function else None)
        elif character == "}" and scopes:
            start = scopes.pop()
            if start == "=":
                continue
            if start is not None:
                in_function = False
                yield code.count("\n", 0, start) + 1, code.count("\n", 0, position) + 1, " ".join(code[start:].split("{")[0].split())
        elif character == ";" and heading.count("(") > heading.count(")"):
            continue  # of a for-statement
        heading_start = position + 1


def _is_function(heading):
    """Whether the `{` after `heading` begins the body of a function."""
    heading = " ".join(heading.split())
    if re.match(r"(?:template\s*<.*>\s*)?(?:namespace|class|struct|union|enum|extern|concept|requires)\b", heading) and not heading.endswith(")"):
        return False
    if _KEYWORDS.match(heading) or heading.endswith("="):
        return False
    return "(" in heading
