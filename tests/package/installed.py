"""Whatever `cmake --install` copies out of a build folder is built by the target kiln-installed.

usage: installed.py NINJA BUILD_FOLDER
"""

import os
import re
import subprocess
import sys

ninja, build = sys.argv[1:]
with open(os.path.join(build, "cmake_install.cmake")) as script:
    lines = [line for line in script if re.search(r"TYPE (EXECUTABLE|(STATIC|SHARED|MODULE)_LIBRARY)", line)]
installed = {path for line in lines for path in re.findall(r'"([^"]+)"', line) if path.startswith(build + os.sep)}
query = subprocess.run([ninja, "-C", build, "-t", "query", "kiln-installed"], check=True, capture_output=True, text=True)
inputs = query.stdout.split("outputs:")[0].split()
made = {os.path.join(build, name) for name in inputs}
missing = sorted(installed - made)
if len(installed) < 5 or missing:
    sys.exit(f"{len(installed)} installed files found; kiln-installed does not build: {missing}")
print(f"{len(installed)} installed files, all built by kiln-installed")
