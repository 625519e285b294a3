"""Writes a program that prints the interface: prototypes, sizes and offsets of structs, values of enumerators.

    layout.py HEADERS >program.c
"""

import re
import sys

import headers


def fields(body):
    """The names of a struct's fields."""
    for declaration in body.split(";"):
        declaration = " ".join(declaration.split())
        function = re.search(r"\(\*(\w+)\)\(", declaration)
        if function:
            yield function[1]
        elif declaration:
            for part in declaration.split(","):
                yield re.sub(r"(\[[^\]]*\])+$", "", part.strip()).split(" ")[-1].lstrip("*")


def main():
    text = headers.read(sys.argv[1])
    print("#include <sheaf/sheaf.h>\n#include <stddef.h>\n#include <stdio.h>\n\nint main(void)\n{")
    for result, name, parameters in headers.functions(text):
        arguments = ", ".join(kind for kind, _ in parameters) or "void"
        print(f'    puts("function {name}: {result} ({arguments})");')
    for name, body in headers.structs(text):
        names = list(fields(body))
        if names[0] != "size":
            sys.exit(f"layout.py: {name} does not begin with its size")
        print(f'    printf("struct {name} %zu\\n", sizeof({name}));')
        for field in names:
            print(f'    printf("field {name}.{field} %zu\\n", offsetof({name}, {field}));')
    for name in headers.enumerators(text):
        print(f'    printf("enum {name} %d\\n", (int){name});')
    print("    return 0;\n}")


main()
