//===- CompileRequest.h - What a compile is asked -------------------------===//
//
// The options of a request (CompilerTable.h), made here for the JIT and for every command: all settings that go to the
// compiler (the column of Knobs.def), and what the caller wants of this compile.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_COMPILEREQUEST_H
#define KILN_RUNTIME_JIT_COMPILEREQUEST_H

#include "kiln/Knobs.h"
#include "runtime/jit/Overrides.h"

namespace kiln {

struct CompilePurpose {
  std::string_view emit = "ptx";
  bool lineInfo = false;
  bool explain = false;
  /// The program is the text of a file, which may be anybody's: isolation `auto` is a process.
  bool fromFile = false;
  /// Only what the text itself says is asked for: no added passes, no dumps.
  bool plain = false;
  bool timePasses = false;
  /// What takes the place of stages' outputs; null: what the settings say, of the kernel and target below.
  const Overrides *overrides = nullptr;
  std::string_view kernel = {}, codeTarget = {};
};

struct CompileOptions {
  std::string json;
  std::string note; ///< for the user, in a line: a setting that could not be obeyed and does not change code; or empty
};

/// Fails if a plugin is missing, or it or an override could have been written by others.
Result<CompileOptions> compileOptions(const Knobs &knobs, const CompilePurpose &purpose);

/// The plugins' files as they are hashed and loaded: without links, and nobody else's.
Result<std::vector<std::string>> pluginFiles(const Knobs &knobs);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_COMPILEREQUEST_H
