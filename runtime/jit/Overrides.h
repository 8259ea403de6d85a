//===- Overrides.h - Texts that take the place of a stage's output ------------===//
//
// KILN_OVERRIDE_DIR holds files with the names of dumps (KILN_DUMP_DIR): KERNEL.TARGET.HASH.STAGE.  They are read once
// a first call, before its key is made: what is compiled is what the key says, whatever becomes of the files.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_OVERRIDES_H
#define KILN_RUNTIME_JIT_OVERRIDES_H

#include "kiln/Knobs.h"

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln {

struct Overrides {
  std::vector<std::pair<std::string, std::string>> files; ///< name, text; by name

  /// For keys: names and hashes of the texts; empty if there is no file.
  std::string identity() const;
};

/// The files of this kernel and target (empty: of every one); none where the knob is empty.  Which variant of the
/// kernel each is for, the compiler finds out.  Fails if the folder or a file could have been written by others.
Result<Overrides> readOverrides(const Knobs &knobs, std::string_view kernel, std::string_view codeTarget);

} // namespace kiln

#endif // KILN_RUNTIME_JIT_OVERRIDES_H
