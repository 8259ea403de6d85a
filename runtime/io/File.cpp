#include "runtime/io/File.h"

#include "support/Text.h"

#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace kiln {

static std::string inQuotes(const std::string &path) {
  return "'" + path + "'";
}

static Status ioError(const std::string &what, const std::string &path, int error, std::string remedy = {}) {
  return {error == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
          "cannot " + what + " " + inQuotes(path) + ": " + std::strerror(error), std::move(remedy)};
}

InputFile::InputFile(std::string path, int descriptor, std::uint64_t bytes)
    : path(std::move(path)), descriptor(descriptor), bytes(bytes) {}

InputFile::InputFile(InputFile &&other) noexcept
    : path(std::move(other.path)), descriptor(std::exchange(other.descriptor, -1)), bytes(other.bytes) {}

InputFile::~InputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
}

Result<InputFile> InputFile::open(const std::string &path) {
  // Non-blocking: opening a named pipe without a writer would wait for ever.
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0)
    return ioError("open", path, errno);
  struct stat info;
  if (::fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    ::close(fd);
    return Status(StatusCode::IoError,
                  inQuotes(path) + (S_ISDIR(info.st_mode) ? " is a folder" : " is not a regular file"), "name a file");
  }
  return InputFile(path, fd, static_cast<std::uint64_t>(info.st_size));
}

Status InputFile::read(std::span<std::byte> out) {
  while (!out.empty()) {
    const ssize_t n = ::read(descriptor, out.data(), out.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n < 0)
      return ioError("read", path, errno);
    if (n == 0)
      return {StatusCode::IoError, inQuotes(path) + " ended " + std::to_string(out.size()) + " bytes early",
              "it changed while it was read: try again"};
    out = out.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Result<std::string> readTextFile(const std::string &path, std::uint64_t limit) {
  KILN_ASSIGN(InputFile file, InputFile::open(path));
  if (file.size() > limit)
    return Status::invalid(inQuotes(path) + " has " + std::to_string(file.size()) + " bytes; the limit is " +
                           std::to_string(limit));
  try {
    std::string text(file.size(), '\0');
    KILN_TRY(file.read(std::as_writable_bytes(std::span(text.data(), text.size()))));
    return text;
  } catch (const std::bad_alloc &) {
    return Status(StatusCode::OutOfMemory,
                  "no memory for the " + std::to_string(file.size()) + " bytes of " + inQuotes(path));
  }
}

OutputFile::OutputFile(std::string name, std::string destination, std::string temporary, int descriptor)
    : name(std::move(name)), destination(std::move(destination)), temporary(std::move(temporary)),
      descriptor(descriptor) {}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : name(std::move(other.name)), destination(std::move(other.destination)),
      temporary(std::exchange(other.temporary, {})), descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

Result<OutputFile> OutputFile::create(const std::string &path) {
  if (path.empty())
    return Status::invalid("the name of an output file is empty", "give it a name");
  std::string destination = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    // Renaming over a device or a pipe would replace it.
    if (!S_ISREG(info.st_mode))
      return Status(StatusCode::IoError,
                    "cannot write " + inQuotes(path) +
                        (S_ISDIR(info.st_mode) ? ": it is a folder" : ": it is not a regular file"),
                    "name a new file, or one to replace");
    if (char *resolved = ::realpath(path.c_str(), nullptr)) {
      destination = resolved;
      std::free(resolved);
    }
  }
  static std::atomic<unsigned> counter{0};
  for (unsigned attempt = 0; attempt < 100; ++attempt) {
    std::string temporary = destination + format(".%ld-%u.tmp", static_cast<long>(::getpid()), counter.fetch_add(1));
    const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (fd >= 0)
      return OutputFile(path, std::move(destination), std::move(temporary), fd);
    if (errno != EEXIST) {
      Status s = ioError("write", path, errno, "the folder must exist and be writable");
      return Status(StatusCode::IoError, s.message(), s.remedy());
    }
  }
  return ioError("write", path, EEXIST, "remove the old .tmp files beside it");
}

Status OutputFile::write(std::span<const std::byte> data) {
  while (!data.empty()) {
    const ssize_t n = ::write(descriptor, data.data(), data.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return ioError("write", name, n < 0 ? errno : EIO);
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::commit() {
  // Some file systems report a full disk only here.
  if (::close(std::exchange(descriptor, -1)) != 0)
    return ioError("write", name, errno);
  if (::rename(temporary.c_str(), destination.c_str()) != 0)
    return ioError("rename a temporary to", name, errno);
  temporary.clear();
  return {};
}

} // namespace kiln
