#include "runtime/cache/TrustedFile.h"

#include "runtime/cache/Ownership.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fcntl.h>
#include <filesystem>

namespace kiln::cache {

namespace fs = std::filesystem;

/// Whether the running program lies in `folder` or below: who can replace the folder can replace the program.
static bool holdsProgram(const fs::path &folder, const std::vector<std::string> &programs) {
  const std::string prefix = folder == "/" ? "/" : folder.string() + "/";
  return std::any_of(programs.begin(), programs.end(),
                     [&](const std::string &p) { return p == folder || p.starts_with(prefix); });
}

Result<std::string> trustedFile(const std::string &path, std::string_view what) {
  const std::string name = std::string(what) + " '" + path + "'";
  std::error_code error;
  const fs::path real = fs::canonical(path, error);
  if (error)
    return Status(error == std::errc::no_such_file_or_directory ? StatusCode::NotFound : StatusCode::IoError,
                  name + " cannot be read: " + error.message(), "give the path of a file that exists");
  const std::vector<std::string> &programs = programFolders();
  if (std::find(programs.begin(), programs.end(), real.parent_path().string()) != programs.end())
    return real.string();
  const auto refuse = [&](const std::string &why, const fs::path &at) {
    return Status::invalid(name + " is not loaded: " + why,
                           "others could put code there: 'chmod go-w " + at.string() +
                               "' if the file is to be trusted, or copy it to a folder of your own");
  };
  const auto statusOf = [&](const fs::path &at, struct stat &info) {
    return ::lstat(at.c_str(), &info) == 0
               ? Status()
               : Status(StatusCode::IoError, name + " cannot be read: '" + at.string() + "': " + std::strerror(errno));
  };
  struct stat info{};
  // From the root down: what is found below a folder that no one else can change stays.
  fs::path at;
  for (const fs::path &part : real.parent_path()) {
    at /= part;
    if (holdsProgram(at, programs))
      continue;
    KILN_TRY(statusOf(at, info));
    if (const std::string why = folderObjection(info); !why.empty())
      return refuse("the folder '" + at.string() + "' " + why, at);
  }
  KILN_TRY(statusOf(real, info));
  if (const std::string why = libraryObjection(info); !why.empty())
    return refuse("it " + why, real);
  return real.string();
}

Result<OpenedFile> openTrusted(FileLayer &files, const std::string &path, std::string_view what) {
  OpenedFile out;
  KILN_ASSIGN(out.path, trustedFile(path, what));
  out.file =
      OwnedFile(files, files.openAt(AT_FDCWD, out.path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (!out.file)
    return systemError("read", out.path, out.file.get());
  struct stat info;
  if (const int error = files.status(out.file.get(), info); error < 0)
    return systemError("read", out.path, error);
  out.bytes = static_cast<std::uint64_t>(info.st_size);
  out.isRegular = S_ISREG(info.st_mode);
  return out;
}

} // namespace kiln::cache
