#!/usr/bin/env python3
"""header.py TOOL HEADER FIELDS LIBRARY NM: kiln/operations.h is what the families' tables say; no field of a struct has
moved since it was recorded in FIELDS; the library exports Kiln's names alone.  With --record it writes FIELDS."""
import re
import subprocess
import sys


def fields(text):
    """operation name kind offset, a line each."""
    out, places = [], {}
    for operation, name, kind in re.findall(r'^KILN_FIELD\((\w+), \w+, "(\w+)", (\w+)\)$', text, re.M):
        places[operation] = places.get(operation, 0) + 8  # after the size; every field has 8 bytes
        out.append(f"{operation} {name} {kind} {places[operation]}")
    return out


def main():
    words = [w for w in sys.argv[1:] if w != "--record"]
    tool, header, recorded, library, nm = words
    with open(header, encoding="utf-8") as file:
        text = file.read()
    made = subprocess.run([tool, header], capture_output=True, text=True, check=True)
    problems = [made.stderr.strip()] if made.stderr else []
    if made.stdout != text:
        problems.append(f"{header} is not what the families' tables say: {tool} {header} prints what it is to be")
    now = fields(text)
    if not now:
        problems.append(f"{header} has no fields")
    if "--record" in sys.argv:
        with open(recorded, "w", encoding="utf-8") as file:
            file.write("".join(line + "\n" for line in now))
    with open(recorded, encoding="utf-8") as file:
        before = file.read().splitlines()
    problems += [f"a program that was compiled before gives '{line}', which is not there any more"
                 for line in before if line not in now]
    problems += [f"'{line}' is new: add it to {recorded} (--record)" for line in now if line not in before]
    symbols = subprocess.run([nm, "-D", "--defined-only", "--format=posix", library], capture_output=True, text=True,
                             check=True).stdout.split("\n")
    names = [line.split()[0].split("@")[0] for line in symbols if line]
    foreign = [n for n in names if not re.fullmatch(r"(__tvm_ffi_)?kiln_\w+|KILN_[\d.]+", n)]
    if foreign:
        problems.append(f"{library} exports {', '.join(foreign[:5])}, {len(foreign)} in all")
    declared = set(re.findall(r"^\w+ (kiln_\w+)\(", text, re.M))
    missing = sorted(declared - set(names))
    if missing or len(names) < len(declared):
        problems.append(f"{library} does not export {', '.join(missing[:5])}")
    print("\n".join(problems) or f"{len(now)} fields, {len(names)} names")
    return bool(problems)


if __name__ == "__main__":
    sys.exit(main())
