"""Reads the public headers: functions, structs, enumerators. They are plain enough for patterns."""

import re
from pathlib import Path


def read(folder):
    """The text of all headers without comments and directives."""
    text = ""
    for path in sorted(Path(folder).glob("*.h")):
        text += re.sub(r"/\*.*?\*/", " ", path.read_text(), flags=re.S)
    text = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*$", "", text)
    return text


def functions(text):
    """(return type, name, [(type, name)]) of each exported function."""
    found = []
    for match in re.finditer(r"SF_API\s+([^;]*?)\b(sf_\w+)\s*\(([^;]*)\)\s*;", text):
        arguments = " ".join(match[3].split())
        parameters = []
        for argument in [] if arguments == "void" else arguments.split(", "):
            kind, name, array = re.match(r"(.*?)(\w+)(\[\w*\])?$", argument).groups()
            parameters.append((kind.strip() + (" *" if array else ""), name))
        found.append((" ".join(match[1].split()), match[2], parameters))
    return found


def structs(text):
    """The name and the body of each struct that is defined."""
    return re.findall(r"typedef struct (sf_\w+) \{(.*?)\n\} \1;", text, flags=re.S)


def enumerators(text):
    """The names of all enumerators."""
    names = []
    for body in re.findall(r"\benum(?: \w+)?\s*\{(.*?)\}", text, flags=re.S):
        names += [item.split("=")[0].strip() for item in body.split(",") if item.strip()]
    return names
