#!/usr/bin/env python3
"""quoted.py PAGE.md ..: C++ that a page quotes is in the file that it names, word for word.

A quote is a fenced block whose info string says where it is from: ```cpp quote=docs/examples/attention.cpp lines=10
(the folder is that of the repository). `lines`: the braces of the first function hold at most as many lines.
"""
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main():
    wrong, quotes = [], 0
    for page in sys.argv[1:]:
        with open(page, encoding="utf-8") as f:
            text = f.read()
        for info, block in re.findall(r"^```c(?:pp)? (quote=.*?)\n(.*?)^```", text, flags=re.M | re.S):
            quotes += 1
            words = dict(w.split("=", 1) for w in info.split())
            with open(os.path.join(ROOT, words["quote"]), encoding="utf-8") as f:
                if block not in f.read():
                    wrong.append(f"{page}: what it quotes is not in {words['quote']}:\n{block}")
            body = re.search(r"\{\n(.*?)^\}", block, flags=re.M | re.S)
            lines = len(body[1].splitlines()) if body else 0
            if "lines" in words and not 0 < lines <= int(words["lines"]):
                wrong.append(f"{page}: the quote of {words['quote']} has {lines} lines, not 1 to {words['lines']}")
    if not quotes:
        wrong.append("no page quotes anything")
    print("\n".join(wrong) if wrong else f"{quotes} quotes are as in their files")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
