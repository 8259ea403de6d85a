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

static std::string readRemedy(int error) {
  switch (error) {
  case ENOENT:
  case ENOTDIR:
    return "check the name and the folder";
  case EACCES:
  case EPERM:
    return "make it readable for this user";
  case EMFILE:
  case ENFILE:
    return "raise the number of open files (ulimit -n)";
  default:
    return "name a file that can be read";
  }
}

static std::string writeRemedy(int error) {
  switch (error) {
  case ENOSPC:
  case EDQUOT:
    return "make room there, or write to another disk";
  case EFBIG:
    return "raise the largest size of a file (ulimit -f), or write to another disk";
  case ENOENT:
  case ENOTDIR:
  case EACCES:
  case EPERM:
  case EROFS:
    return "the folder must exist and be writable";
  case EMFILE:
  case ENFILE:
    return "raise the number of open files (ulimit -n)";
  default:
    return "write to another place";
  }
}

static Status readError(const std::string &what, const std::string &path, int error) {
  return {error == ENOENT ? StatusCode::NotFound : StatusCode::IoError,
          "cannot " + what + " " + inQuotes(path) + ": " + std::strerror(error), readRemedy(error)};
}

static Status writeError(const std::string &path, int error) {
  return {StatusCode::IoError, "cannot write " + inQuotes(path) + ": " + std::strerror(error), writeRemedy(error)};
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
    return readError("open", path, errno);
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
      return readError("read", path, errno);
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

OutputFile::OutputFile(std::string name, std::string destination, Way way, int descriptor)
    : name(std::move(name)), destination(std::move(destination)), way(way), descriptor(descriptor) {}

OutputFile::OutputFile(OutputFile &&other) noexcept
    : name(std::move(other.name)), destination(std::move(other.destination)), way(other.way),
      temporary(std::exchange(other.temporary, {})), listed(std::move(other.listed)),
      descriptor(std::exchange(other.descriptor, -1)) {}

OutputFile::~OutputFile() {
  if (descriptor >= 0)
    ::close(descriptor);
  if (!temporary.empty())
    ::unlink(temporary.c_str());
}

/// By which a descriptor's file can be linked without privileges.
static std::string procPath(int descriptor) {
  return "/proc/self/fd/" + std::to_string(descriptor);
}

static std::string folderOf(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}

Result<OutputFile> OutputFile::create(const std::string &path, Way way) {
  if (path.empty())
    return Status::invalid("the name of an output file is empty", "give it a name");
  std::string destination = path;
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) {
    if (S_ISCHR(info.st_mode) || S_ISFIFO(info.st_mode)) {
      if (::faccessat(AT_FDCWD, path.c_str(), W_OK, AT_EACCESS) != 0)
        return writeError(path, errno);
      return OutputFile(path, path, Way::Direct, -1);
    }
    // Renaming would replace it, and nobody writes an array over a disk.
    if (!S_ISREG(info.st_mode))
      return Status(StatusCode::IoError,
                    "cannot write " + inQuotes(path) +
                        (S_ISDIR(info.st_mode)   ? ": it is a folder"
                         : S_ISBLK(info.st_mode) ? ": it is a block device"
                                                 : ": it is a socket"),
                    "name a new file, or one to replace");
    if (char *resolved = ::realpath(path.c_str(), nullptr)) {
      destination = resolved;
      std::free(resolved);
    }
  }
  const std::string folder = folderOf(destination);
  if (way == Way::Nameless) {
    const int fd = ::open(folder.c_str(), O_WRONLY | O_TMPFILE | O_CLOEXEC, 0666);
    if (fd >= 0 && ::access(procPath(fd).c_str(), F_OK) == 0)
      return OutputFile(path, std::move(destination), Way::Nameless, fd);
    const int error = errno;
    if (fd >= 0)
      ::close(fd);
    else if (error != EOPNOTSUPP && error != EISDIR && error != EINVAL && error != ENOSYS)
      return writeError(path, error);
  }
  if (::faccessat(AT_FDCWD, folder.c_str(), W_OK | X_OK, AT_EACCESS) != 0)
    return writeError(path, errno);
  return OutputFile(path, std::move(destination), Way::Named, -1);
}

template <typename Attempt> Status OutputFile::makeTemporary(Attempt attempt) {
  static std::atomic<unsigned> counter{0};
  for (unsigned tries = 0; tries < 100; ++tries) {
    std::string candidate = destination + format(".%ld-%u.tmp", static_cast<long>(::getpid()), counter.fetch_add(1));
    ListedTemporary entry(candidate); // before the file is there, so that no moment is without it
    const int error = attempt(candidate.c_str());
    if (error == 0) {
      temporary = std::move(candidate);
      listed = std::move(entry);
      return {};
    }
    if (error != EEXIST)
      return writeError(name, error);
  }
  return {StatusCode::IoError, "cannot write " + inQuotes(name) + ": a hundred names of temporaries are taken",
          "remove the old .tmp files next to it"};
}

Status OutputFile::open() {
  if (descriptor >= 0)
    return {};
  if (way == Way::Direct) {
    // Of a pipe this waits for a reader, as a shell's redirection does.
    do
      descriptor = ::open(destination.c_str(), O_WRONLY | O_NOCTTY | O_CLOEXEC);
    while (descriptor < 0 && errno == EINTR);
    return descriptor < 0 ? writeError(name, errno) : Status();
  }
  return makeTemporary([&](const char *candidate) {
    descriptor = ::open(candidate, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    return descriptor < 0 ? errno : 0;
  });
}

Status OutputFile::write(std::span<const std::byte> data) {
  KILN_TRY(open());
  while (!data.empty()) {
    const ssize_t n = ::write(descriptor, data.data(), data.size());
    if (n < 0 && errno == EINTR)
      continue;
    if (n <= 0)
      return writeError(name, n < 0 ? errno : EIO);
    data = data.subspan(static_cast<std::size_t>(n));
  }
  return {};
}

Status OutputFile::commit() {
  KILN_TRY(open());
  // Some file systems report a full disk only when a descriptor is closed; the file has no name yet.
  const int copy = ::dup(descriptor);
  if (copy < 0 || ::close(copy) != 0)
    return writeError(name, errno);
  if (way == Way::Nameless) {
    const std::string self = procPath(descriptor);
    const auto link = [&](const char *to) {
      return ::linkat(AT_FDCWD, self.c_str(), AT_FDCWD, to, AT_SYMLINK_FOLLOW) == 0 ? 0 : errno;
    };
    if (const int error = link(destination.c_str()); error == EEXIST)
      KILN_TRY(makeTemporary(link)); // no call puts a file without a name in another's place
    else if (error)
      return writeError(name, error);
  }
  if (!temporary.empty() && ::rename(temporary.c_str(), destination.c_str()) != 0)
    return writeError(name, errno);
  temporary.clear();
  listed = {};
  ::close(std::exchange(descriptor, -1));
  return {};
}

} // namespace kiln
