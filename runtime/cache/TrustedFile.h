//===- TrustedFile.h - Files whose code is going to be run ----------------===//
//
// A library runs code as soon as it is opened, and it is opened by its name.  So neither the file nor a folder on the
// way to it may be writable by others (Ownership.h), except for what lies with the running program: that is trusted as
// the program is.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_TRUSTEDFILE_H
#define KILN_RUNTIME_CACHE_TRUSTEDFILE_H

#include "runtime/cache/OwnedFile.h"
#include "support/Status.h"

#include <string>
#include <string_view>

namespace kiln::cache {

/// The file's path without links, relative parts or a loader's search: the one name to hash it, open it and speak of
/// it by.  Fails if it is missing or if others could have written or could replace it; `what` names it in the message,
/// as in "the pass plugin".
Result<std::string> trustedFile(const std::string &path, std::string_view what);

/// Such a file, opened for reading.
struct OpenedFile {
  OwnedFile file;
  std::string path; ///< without links
  std::uint64_t bytes = 0;
  bool isRegular = false;
};
Result<OpenedFile> openTrusted(FileLayer &files, const std::string &path, std::string_view what);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_TRUSTEDFILE_H
