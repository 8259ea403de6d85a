//===- FileHash.h - What a file holds, without reading it each time -------===//
//
// Keys hold the contents of libkiln-compiler.so and of plugins: tens of megabytes, which a cache hit must not read. The
// hash is remembered under the file's stamp: device, inode, size, and the nanoseconds of its last change (mtime and
// ctime).  Any write, rename or replacement changes the stamp, because no program can set ctime back.  A stamp is only
// remembered once it is older than `settleSeconds`: until then two writes may share one tick of the file system's
// clock. (The linker's build-id would be cheaper still, but a file patched after linking keeps it.)
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_FILEHASH_H
#define KILN_RUNTIME_JIT_FILEHASH_H

#include "runtime/cache/KernelCache.h"
#include "support/Status.h"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kiln {

/// Equal texts: the same file, unchanged.  Symbolic links are followed.
struct FileStamp {
  std::string text;
  std::int64_t changedSeconds = 0; ///< Unix time of the last change
  bool operator==(const FileStamp &o) const { return text == o.text; }

  static Result<FileStamp> of(const std::string &path);
};

class FileHashes {
public:
  static constexpr std::int64_t settleSeconds = 2;

  /// Remembers in `memo`; nullptr: reads files whole each time.  `now` gives the Unix time, for tests.
  explicit FileHashes(std::shared_ptr<cache::KernelCache> memo, std::function<std::int64_t()> now = {})
      : memo(std::move(memo)), now(std::move(now)) {}

  struct Hashed {
    std::string hash;  ///< XXH3-128 of the XXH3-128 of each 4 MiB, 32 hexadecimal digits
    FileStamp stamp;   ///< of the file that was hashed
    bool read = false; ///< the file was read: nothing was remembered
  };
  Result<Hashed> hash(const std::string &path) const;

  /// A text remembered for `path` under its stamp as it is now; empty if there is none.
  std::string recall(std::string_view what, const std::string &path, const FileStamp &stamp) const;
  void remember(std::string_view what, const std::string &path, const FileStamp &stamp, const std::string &text) const;

private:
  std::shared_ptr<cache::KernelCache> memo;
  std::function<std::int64_t()> now;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_FILEHASH_H
