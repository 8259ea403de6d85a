//===- Plugins.h - Passes from shared objects --------------------------------===//
//
// A pass plugin is a shared object with MLIR's entry point mlirGetPassPluginInfo.  Its passes run where the request
// says (StageInsertions in Stages.h).  What cannot work is refused before any of its code runs: a file that is no
// plugin, one that was built for another LLVM or another Kiln, one that holds an LLVM of its own, and every plugin if
// this compiler holds LLVM inside itself.
//
// A plugin stays loaded until the process ends, and MLIR keeps the first pass of each name.  So a compile with plugins
// runs in a helper process, which loads what the files hold now (CompilerTable.cpp); only isolation = none loads them
// into the caller's process.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PIPELINE_PLUGINS_H
#define KILN_PIPELINE_PLUGINS_H

#include "support/Status.h"

#include <string>

namespace kiln {

/// Ok, or why the file cannot be loaded.  Reads it, runs nothing.  `entry`: the function that makes it a plugin.
Status checkPlugin(const std::string &path, const std::string &entry = "mlirGetPassPluginInfo");

/// Loads the plugin and registers its passes.  Does nothing if this very file was loaded before; fails if another one
/// was loaded from this path.
Status loadPlugin(const std::string &path);

/// kiln-opt's --load-pass-plugin and --load-dialect-plugin, before MLIR reads them: it goes on without a plugin that it
/// cannot load.
Status loadPluginsOf(int argc, char **argv);

} // namespace kiln

#endif // KILN_PIPELINE_PLUGINS_H
