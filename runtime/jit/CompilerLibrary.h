//===- CompilerLibrary.h - libkiln-compiler.so, opened when it is needed --===//
//
// `find` only looks for the file, and refuses one that others could have written (cache/TrustedFile.h); its contents'
// hash is part of every key.  The first `compile` opens it with dlopen and checks its ABI; it stays loaded until the
// process ends (LLVM cannot be unloaded).  Once a process has loaded a path, `identity` is that of the loaded code for
// every object of that path, whatever happens to the file.  Safe to use from several threads; one object may serve
// many Jits.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_COMPILERLIBRARY_H
#define KILN_RUNTIME_JIT_COMPILERLIBRARY_H

#include "compiler/pipeline/CompilerTable.h"
#include "runtime/jit/FileHash.h"
#include "support/Status.h"

#include <atomic>
#include <memory>
#include <string>
#include <string_view>

namespace kiln {

struct CompileInput {
  std::string_view program, fileName, kernel, codeTarget;
  std::string_view specialization, options; ///< JSON, as in CompilerTable.h; may be empty
};

struct CompileOutput {
  std::int32_t status = 0;                   ///< KILN_COMPILE_*
  std::string output, metadata, diagnostics; ///< diagnostics: JSON
};

/// The diagnostics of a compile, a line each: "file:1:2: error: message".
std::string diagnosticsText(std::string_view diagnosticsJson);

/// Ok if the compile succeeded; else what its diagnostics say.
Status compileStatus(const CompileOutput &out, std::string_view kernel);

class CompilerLibrary {
public:
  static constexpr const char *fileName = "libkiln-compiler.so";

  /// `path`, which the loader does not search for; or if empty: next to the running program, in ../lib of it, the same
  /// two for the library that holds this function, then the folders that the loader searches.  A failure lists where
  /// was looked.
  static Result<std::shared_ptr<CompilerLibrary>> find(const std::string &path = {});

  /// Without links: what is hashed, and what is loaded.
  const std::string &path() const { return file; }
  bool opened() const { return table.load(std::memory_order_acquire) != nullptr; }

  /// The content hash for keys.
  Result<std::string> identity(const FileHashes &hashes);

  /// Opens the library; the second call does nothing.
  Status open(const FileHashes &hashes);

  /// "kiln 0.1.0, LLVM 22.1.8"; empty before `open`.
  std::string version() const;

  /// A compile that the compiler refuses is an Ok result with its status; a failed Status means that there was none.
  Result<CompileOutput> compile(const CompileInput &input, const FileHashes &hashes);

  /// The table, opened: for the commands that call kiln-opt's main.
  Result<const KilnCompilerTable *> functions(const FileHashes &hashes);

private:
  explicit CompilerLibrary(std::string file) : file(std::move(file)) {}
  std::string file;
  std::atomic<const KilnCompilerTable *> table{nullptr};
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_COMPILERLIBRARY_H
