# How the .mlir tests run: RUN lines see kiln-opt, FileCheck, not and split-file.  The build tree's lit.site.cfg.py sets
# binary_dir, source_dir and llvm_tools and loads this file.
import os

import lit.formats

config.name = "kiln"
config.test_format = lit.formats.ShTest(execute_external=False)
config.suffixes = [".mlir"]
config.excludes = ["data", "Inputs"]
config.test_source_root = os.path.join(config.source_dir, "tests")
config.test_exec_root = os.path.join(config.binary_dir, "tests", "lit")
config.environment["PATH"] = os.pathsep.join(
    [os.path.join(config.binary_dir, "bin"), config.llvm_tools, os.environ.get("PATH", "")]
)
config.environment["FILECHECK_OPTS"] = "--dump-input=fail"
# kiln-reduce and kiln-lsp-server, which builds with a static MLIR do not have.
if all(os.path.exists(os.path.join(config.binary_dir, "bin", tool)) for tool in ("kiln-reduce", "kiln-lsp-server")):
    config.available_features.add("mlir-tools")
