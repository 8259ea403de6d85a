#!/usr/bin/env python3
"""Adds up the JUnit reports of ctest.

usage: summarise_tests.py NAME=REPORT.xml ...

Prints each failed test, each skipped test with its reason, and last "N passed, N failed, N skipped".
Exit status 1 if a test failed or none ran.
"""
import re
import sys
import xml.etree.ElementTree as ET


def reason_of(output):
    """What the test said after GTEST_SKIP: the line after "Skipped"."""
    lines = [line.strip() for line in output.splitlines()]
    for i, line in enumerate(lines):
        if line.endswith("Skipped") and i + 1 < len(lines) and lines[i + 1]:
            return lines[i + 1]
    return "no reason given"


def main():
    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    passed = failed = 0
    skipped = {}
    for argument in sys.argv[1:]:
        name, path = argument.split("=", 1)
        for case in ET.parse(path).getroot().iter("testcase"):
            test = case.get("name", "?")
            output = case.findtext("system-out") or ""
            if case.find("failure") is not None or case.get("status") == "fail":
                failed += 1
                print(f"FAILED {name}: {test}")
            elif case.find("skipped") is not None or case.get("status") in ("disabled", "notrun"):
                skipped.setdefault(reason_of(output), []).append(f"{name}: {test}")
            else:
                passed += 1
                # A program may skip some of its cases and pass: those are counted too.
                for line in re.findall(r"^kiln-skipped: (.*)$", output, re.M):
                    skipped.setdefault(line, []).append(f"{name}: {test}")
    for reason, tests in sorted(skipped.items()):
        print(f"skipped {len(tests)}: {reason} ({tests[0]}{', ..' if len(tests) > 1 else ''})")
    print(f"{passed} passed, {failed} failed, {sum(map(len, skipped.values()))} skipped")
    return 1 if failed or not passed else 0


if __name__ == "__main__":
    sys.exit(main())
