//===- File.h - Whole files in, whole files out ---------------------------===//
//
// Reading takes a regular file or fails.  Writing goes to a temporary beside the destination, which `commit` renames:
// a failure, or an object destroyed before `commit`, leaves the destination as it was and no temporary behind.
// Every failure names the file and the system's reason.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_IO_FILE_H
#define KILN_RUNTIME_IO_FILE_H

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
  /// Opens the temporary; so an unwritable folder is seen before any work is done.
  static Result<OutputFile> create(const std::string &path);
  OutputFile(OutputFile &&other) noexcept;
  OutputFile &operator=(OutputFile &&) = delete;
  ~OutputFile();
  const std::string &path() const { return name; }
  Status write(std::span<const std::byte> data);
  Status write(std::string_view text) { return write(std::as_bytes(std::span(text.data(), text.size()))); }
  /// Renames the temporary over the destination.
  Status commit();

private:
  OutputFile(std::string name, std::string destination, std::string temporary, int descriptor);
  std::string name;        ///< as the caller wrote it
  std::string destination; ///< symbolic links resolved
  std::string temporary;   ///< empty once renamed
  int descriptor;
};

} // namespace kiln

#endif // KILN_RUNTIME_IO_FILE_H
