#!/usr/bin/env python3
"""What tutorial.py accepts and refuses."""
import pathlib
import subprocess
import sys
import tempfile
import unittest

import tutorial


def run(page):
    """The exit status and output of a page of its own."""
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder) / "page.md"
        path.write_text(page, encoding="utf-8")
        got = subprocess.run([sys.executable, tutorial.__file__, str(path)], capture_output=True, text=True)
        return got.returncode, got.stdout + got.stderr


class Matching(unittest.TestCase):
    def test_dots(self):
        self.assertTrue(tutorial.matches(["a", "...", "z"], "a\nb\nc\nz\n"))
        self.assertTrue(tutorial.matches(["a", "...", "z"], "a\nz\n"))
        self.assertTrue(tutorial.matches(["took ... ms"], "took 3.5 ms\n"))
        self.assertFalse(tutorial.matches(["took ... ms"], "took 3.5 s\n"))
        self.assertFalse(tutorial.matches(["took ... ms"], "took 3.5 ms\nand more\n"))
        self.assertFalse(tutorial.matches(["a", "...", "z"], "a\nz\nmore\n"))
        self.assertFalse(tutorial.matches(["x*"], "xx\n"))

    def test_commands(self):
        found = tutorial.commands(["$ one \\", "  two  # exit status 3", "shown", "$ three"])
        self.assertEqual(found, [(0, "one two", 3, ["shown"]), (3, "three", 0, [])])


class Pages(unittest.TestCase):
    def page(self, *lines):
        return run("\n".join(["# Page", "", "```console", "$ cd $HOME", *lines, "```", ""]))

    def test_good(self):
        status, output = self.page("$ X=5", "$ echo $X; pwd", "5", "...", "$ false  # exit status 1")
        self.assertEqual(status, 0, output)

    def test_other_output(self):
        status, output = self.page("$ echo 4", "5")
        self.assertEqual(status, 1)
        self.assertIn("page.md:5: the page shows for: echo 4", output)

    def test_other_status(self):
        self.assertIn("exit status 1, not 0: false", self.page("$ false")[1])
        self.assertIn("exit status 0, not 2: true", self.page("$ true  # exit status 2")[1])

    def test_end_of_the_shell(self):
        self.assertIn("the shell ended in: exit 3", self.page("$ exit 3")[1])

    def test_file(self):
        status, output = run("```console\n$ cd $HOME\n```\n\n```text file=a/b.txt\nx\n    ```\ny\n```\n\n```console\n$ cat a/b.txt\nx\n    ```\ny\n```\n")
        self.assertEqual(status, 0, output)

    def test_patch(self):
        patch = "```diff patch\n--- a/README.md\n+++ b/README.md\n@@ -1,1 +1,1 @@\n-# Kiln, otherwise\n+# Kiln\n```\n"
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "page.md"
            path.write_text(patch, encoding="utf-8")
            got = subprocess.run([sys.executable, tutorial.__file__, "--patches", str(path)], capture_output=True, text=True)
            self.assertEqual(got.returncode, 1)
            self.assertIn("the patch does not apply", got.stderr)


if __name__ == "__main__":
    unittest.main()
