//===- File.h - Whole files in, whole files out ---------------------------===//
//
// Reading takes a regular file or fails.  Writing goes to a file without a name in the destination's folder, which
// `commit` gives the name: a failure, an object destroyed before `commit`, or a process that is killed leaves the
// destination as it was and nothing else.  Where the file system has no files without a name, and while one takes the
// place of an older file, there is a temporary, listed in Temporaries.h.  A device or pipe that exists is written as it
// is and never replaced.  Every failure names the file, the system's reason and a remedy.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_FILE_H
#define KILN_RUNTIME_IO_FILE_H

#include "runtime/io/Temporaries.h"
#include "support/Status.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace kiln {

/// A regular file open for reading.
class InputFile {
public:
  static Result<InputFile> open(const std::string &path);
  InputFile(InputFile &&other) noexcept;
  InputFile &operator=(InputFile &&) = delete;
  ~InputFile();
  std::uint64_t size() const { return bytes; }
  /// Fills `out` from the current position; a file that ends early is an error.
  Status read(std::span<std::byte> out);

private:
  InputFile(std::string path, int descriptor, std::uint64_t bytes);
  std::string path;
  int descriptor;
  std::uint64_t bytes;
};

/// The whole file; larger than `limit` bytes is an error.
Result<std::string> readTextFile(const std::string &path, std::uint64_t limit = 1ull << 31);

class OutputFile {
public:
  /// How the bytes reach the destination.
  enum class Way : std::uint8_t {
    Nameless, ///< a file without a name (O_TMPFILE), linked into place
    Named,    ///< a temporary next to the destination, made at the first write and renamed
    Direct,   ///< a character device or a pipe, opened at the first write
  };

  /// An unwritable folder is seen here, before any work is done.  `way`: Named is taken too where Nameless cannot be,
  /// and Direct where the destination is such a thing.
  static Result<OutputFile> create(const std::string &path, Way way = Way::Nameless);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();
  const std::string &path() const { return name; }
  Status write(std::span<const std::byte> data);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// What was written becomes the destination.
  Status commit();

private:
  OutputFile(std::string name, std::string destination, Way way, int descriptor);
  Status open();
  /// Makes a temporary by `attempt`, which gets its path and returns an error of the system or 0.
  template <typename Attempt> Status makeTemporary(Attempt attempt);

  std::string name;        ///< as the caller wrote it
  std::string destination; ///< symbolic links resolved
  Way way;
  std::string temporary; ///< empty while there is none
  ListedTemporary listed;
  int descriptor; ///< -1 before the first write, unless Nameless
};

} // namespace kiln

#endif // KILN_RUNTIME_IO_FILE_H
