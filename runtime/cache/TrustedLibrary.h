//===- TrustedLibrary.h - Libraries of Kiln's that are opened when asked for ----===//
//
// What only some programs need (a server's client, MPI) is in a library next to the program, with one function that
// gives a table of functions; so nothing else needs what that library is linked with.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_TRUSTEDLIBRARY_H
#define KILN_RUNTIME_CACHE_TRUSTEDLIBRARY_H

#include "support/Status.h"

#include <cstdint>
#include <string>

namespace kiln::cache {

struct LibraryName {
  const char *file;      ///< "libkiln-redis.so"
  const char *function;  ///< without arguments, gives the table; null: it cannot be used
  const char *remedy;    ///< where it comes from, and what it needs
  bool isGlobal = false; ///< what it loads later looks for its symbols among all
};

/// The table of the library `path`, or of the file next to the program or this library, or in its ../lib.  The table
/// begins with its version.
Result<const void *> openTrustedLibrary(const LibraryName &name, std::string path, std::uint32_t version);

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_TRUSTEDLIBRARY_H
