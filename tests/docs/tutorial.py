#!/usr/bin/env python3
"""Runs a tutorial of docs/tutorial as a reader would, and compares what it prints with what the page shows.

  tutorial.py PAGE.md [PAGE.md ..] --binary-dir build/dev [--until MARKER] [--copy FOLDER]

What it reads in a page, in order:
  ```console            commands after "$ "; a line that ends in \\ goes on. The lines below a command are its output:
                        "..." alone stands for any lines, inside a line for any text. No lines: output is not compared,
                        and the command must succeed. "# exit status N" at the end of a command says otherwise.
  ```LANG file=NAME     the whole contents of a file
  ```diff patch         a patch of the current folder, git's format
  <!-- test: NAME -->   a marker; --until NAME stops there. "copy" before the first command: the page changes the tree

All commands of a page run in one shell, as the first one finds it: in the source tree, with an empty home folder. The
tree is built already, so the commands that would install packages, configure and build it are left out, and its build
folder stands for build/dev. A page that changes the tree finds itself in a copy of the tree's files, without a build, in
the folder --copy, and there everything is run; the programs of the built tree are on the path. Several pages follow each
other with one home and one copy; a copy that is there from an earlier run gets what has changed, and keeps its build.
--patches runs nothing and checks that the patches of a page apply, each on top of those before it.
"""
import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import time

SOURCE = pathlib.Path(__file__).resolve().parents[2]
# What stands in place of a built tree.
BUILT = ["scripts/demo.sh", "cmake --preset dev", "cmake --build --preset dev"]


class Failed(Exception):
    pass


class Shell:
    """One bash that stays: folders and variables last from command to command."""

    MARK = "@@done"

    def __init__(self, folder, environment):
        self.process = subprocess.Popen(["bash", "--noprofile", "--norc"], cwd=folder, env=environment, text=True,
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def run(self, command):
        # Standard input is the shell's own commands: none may read it.
        self.process.stdin.write(f"{{ {command}\n}} </dev/null 2>&1\n"
                                 f"__status=$?; echo; echo \"{self.MARK} $__status\"\n")
        self.process.stdin.flush()
        lines = []
        for line in self.process.stdout:
            if line.startswith(self.MARK):
                output = "".join(lines)
                return output[:-1] if output.endswith("\n") else output, int(line.split()[1])
            lines.append(line)
        raise Failed(f"the shell ended in: {command}")

    def folder(self):
        return pathlib.Path(self.run("pwd")[0].strip())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


def blocks(text):
    """(line, kind, argument, lines) of every block and marker."""
    lines, i = text.splitlines(), 0
    while i < len(lines):
        marker = re.fullmatch(r"<!-- test: (.*) -->", lines[i])
        if marker:
            yield i + 1, "marker", marker[1], []
        fence = re.fullmatch(r"( {0,3})```(.*)", lines[i])
        if fence:
            start = i + 1
            i = next(j for j in range(start, len(lines)) if re.fullmatch(r" {0,3}``` *", lines[j]))
            words = fence[2].split()
            body = [line.removeprefix(fence[1]) for line in lines[start:i]]
            if words[:1] == ["console"]:
                yield start, "console", "", body
            elif words[:2] == ["diff", "patch"]:
                yield start, "patch", "", body
            elif len(words) > 1 and words[1].startswith("file="):
                yield start, "file", words[1].removeprefix("file="), body
        i += 1


def commands(body):
    """(offset, command, expected status, shown lines) of a console block."""
    found, i = [], 0
    while i < len(body):
        if body[i].startswith("$ "):
            at, command = i, body[i][2:]
            while command.endswith("\\"):
                i += 1
                command = command[:-1] + body[i].strip()
            remark = re.search(r"\s+# exit status (\d+)$", command)
            found.append((at, command[: remark.start()] if remark else command, int(remark[1]) if remark else 0, []))
        else:
            found[-1][3].append(body[i])
        i += 1
    return found


def pattern_of(shown):
    """Lines as a page shows them, as a regular expression over whole lines."""
    out = ""
    for line in shown:
        if line.strip() == "...":
            out += r"(?:[^\n]*\n)*?"
        else:
            out += r"[^\n]*".join(re.escape(part) for part in line.rstrip().split("...")) + r"[ \t]*\n"
    return out


def matches(shown, output):
    return re.fullmatch(pattern_of(shown), output if output.endswith("\n") or not output else output + "\n") is not None


class Reader:
    def __init__(self, arguments, home):
        self.arguments, self.home = arguments, home
        self.copy = None
        environment = {k: v for k, v in os.environ.items() if not k.startswith("KILN_") and k != "XDG_CACHE_HOME"}
        self.environment = environment | {"HOME": str(home), "LC_ALL": "C.UTF-8"}
        # What ccache has compiled before it need not compile again.
        self.environment.setdefault("CCACHE_DIR", str(pathlib.Path.home() / ".cache/ccache"))

    @staticmethod
    def copy_tree(place):
        """The tree's files as git sees them, uncommitted ones too; what is the same already keeps its time."""
        place = pathlib.Path(place).resolve()
        listed = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=SOURCE,
                                capture_output=True, check=True).stdout.decode().split("\0")
        names = {name for name in listed if name and (SOURCE / name).is_file()}
        for name in names:
            source, target = SOURCE / name, place / name
            if not target.exists() or target.read_bytes() != source.read_bytes():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(source, target)
        # What an earlier run added.
        if (place / ".git").exists():
            have = subprocess.run(["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"], cwd=place,
                                  capture_output=True, check=True).stdout.decode().split("\0")
            for name in set(have) - names - {""}:
                (place / name).unlink(missing_ok=True)
        else:
            subprocess.run(["git", "init", "-q"], cwd=place, check=True)
        return place

    def read(self, page):
        text = page.read_text(encoding="utf-8")
        folder, environment, self.in_copy = SOURCE, self.environment, "<!-- test: copy -->" in text
        if self.in_copy:
            if not self.arguments.copy:
                raise Failed(f"{page.name} changes the tree: say where its copy may lie (--copy FOLDER)")
            self.copy = self.copy or self.copy_tree(self.arguments.copy)
            folder, path = self.copy, f"{self.arguments.binary_dir.resolve()}/bin:{environment['PATH']}"
            environment = environment | {"PATH": path}
        shell, count = Shell(folder, environment), 0
        try:
            for line, kind, argument, body in blocks(text):
                where = f"{page.name}:{line}"
                if kind == "marker" and argument == self.arguments.until:
                    break
                if kind == "file":
                    path = shell.folder() / argument
                    path.parent.mkdir(parents=True, exist_ok=True)
                    path.write_text("\n".join(body) + "\n", encoding="utf-8")
                elif kind == "patch":
                    self.patch(where, body, shell.folder())
                elif kind == "console":
                    for offset, command, status, shown in commands(body):
                        count += self.step(f"{page.name}:{line + 1 + offset}", shell, command, status, shown)
        finally:
            shell.close()
        if count == 0:
            raise Failed(f"{page.name}: no command was run")
        print(f"{page.name}: {count} commands, as the page shows them")

    def step(self, where, shell, command, status, shown):
        if not self.in_copy:
            if command in BUILT:
                print(f"{where}: left out, this tree is built: {command}", flush=True)
                return 0
            command = re.sub(r"(\$(PWD|KILN)/)?build/dev", str(self.arguments.binary_dir.resolve()), command)
        start = time.monotonic()
        output, got = shell.run(command)
        print(f"{where}: {time.monotonic() - start:.1f} s: {command}", flush=True)
        if got != status:
            raise Failed(f"{where}: exit status {got}, not {status}: {command}\n{output}")
        if shown and not matches(shown, output):
            shown = "\n".join(shown)
            raise Failed(f"{where}: the page shows for: {command}\n{shown}\n-- printed was:\n{output}")
        return 1

    @staticmethod
    def patch(where, body, folder):
        got = subprocess.run(["git", "apply", "-"], cwd=folder, input="\n".join(body) + "\n", text=True,
                             capture_output=True)
        if got.returncode:
            raise Failed(f"{where}: the patch does not apply: {got.stderr}")

    @classmethod
    def check_patches(cls, page):
        """On copies of the files that they name."""
        with tempfile.TemporaryDirectory() as place:
            place, count = pathlib.Path(place), 0
            subprocess.run(["git", "init", "-q"], cwd=place, check=True)
            for line, kind, argument, body in blocks(page.read_text(encoding="utf-8")):
                if kind == "patch":
                    for name in [b[6:] for b in body if b.startswith("--- a/")]:
                        if not (place / name).exists():
                            (place / name).parent.mkdir(parents=True, exist_ok=True)
                            shutil.copy(SOURCE / name, place / name)
                    cls.patch(f"{page.name}:{line}", body, place)
                    count += 1
                elif kind == "file" and "/" in argument and (SOURCE / argument).exists():
                    raise Failed(f"{page.name}:{line}: the tree has a {argument} already")
        if count == 0:
            raise Failed(f"{page.name}: no patch")
        print(f"{page.name}: {count} patches apply")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("pages", nargs="+", type=pathlib.Path)
    parser.add_argument("--binary-dir", type=pathlib.Path, default=SOURCE / "build/dev")
    parser.add_argument("--until", metavar="MARKER")
    parser.add_argument("--copy", metavar="FOLDER")
    parser.add_argument("--patches", action="store_true")
    arguments = parser.parse_args()
    try:
        with tempfile.TemporaryDirectory() as home:
            reader = None if arguments.patches else Reader(arguments, pathlib.Path(home))
            for page in arguments.pages:
                if reader:
                    reader.read(page)
                else:
                    Reader.check_patches(page)
    except Failed as failure:
        sys.exit(str(failure))


if __name__ == "__main__":
    main()
