#include "runtime/jit/Overrides.h"

#include "compiler/target/StageFiles.h"
#include "runtime/cache/Hash.h"
#include "runtime/cache/PrivateDirectory.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <filesystem>

namespace kiln {
namespace {

constexpr off_t maxBytes = off_t(64) << 20; // no stage of a kernel is as long
constexpr const char *remedy = "see KILN_OVERRIDE_DIR in docs/knobs.md";

/// "add.sm_80.1f3a5c70.tile.mlir"; dumps of single passes and of the program replace nothing.
bool isOverride(std::string_view name, std::string_view kernel, std::string_view target) {
  const auto cut = [&](std::string_view &out) {
    const std::size_t dot = name.find('.');
    if (dot == std::string_view::npos)
      return false;
    out = name.substr(0, dot);
    name.remove_prefix(dot + 1);
    return true;
  };
  std::string_view ofKernel, ofTarget, hash;
  if (!cut(ofKernel) || !cut(ofTarget) || !cut(hash))
    return false;
  return std::ranges::find(stage_files::all, name) != std::end(stage_files::all) &&
         (target.empty() || ofTarget == target) && (kernel.empty() || ofKernel == kernel);
}

Result<std::string> readOwn(cache::FileLayer &files, const cache::OwnedFile &folder, const std::string &path,
                            const std::string &name) {
  cache::OwnedFile file(files, files.openAt(folder.get(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC, 0));
  if (!file)
    return cache::systemError("open", path + "/" + name, file.get(), remedy);
  struct stat status{};
  if (const int failed = files.status(file.get(), status); failed != 0)
    return cache::systemError("read", path + "/" + name, failed, remedy);
  if (const std::string why = cache::entryFileObjection(status); !why.empty())
    return Status::invalid("the override '" + path + "/" + name + "' is not used: " + why, remedy);
  if (status.st_size > maxBytes)
    return Status::invalid("the override '" + path + "/" + name + "' has " + std::to_string(status.st_size) +
                               " bytes; the limit is " + std::to_string(maxBytes),
                           remedy);
  std::string text(static_cast<std::size_t>(status.st_size), '\0');
  const ssize_t got = file.readAll(text.data(), text.size());
  if (got < 0)
    return cache::systemError("read", path + "/" + name, static_cast<int>(got), remedy);
  text.resize(static_cast<std::size_t>(got));
  return text;
}

} // namespace

std::string Overrides::identity() const {
  std::string out;
  for (const auto &[name, text] : files)
    out += (out.empty() ? "" : ", ") + name + " " + cache::hexText(cache::hash128(text));
  return out;
}

Result<Overrides> readOverrides(const Knobs &knobs, std::string_view kernel, std::string_view codeTarget) {
  Overrides out;
  if (knobs.overrideDir.empty())
    return out;
  std::error_code error;
  const std::string path = std::filesystem::absolute(knobs.overrideDir, error).string();
  cache::FileLayer &files = cache::systemFileLayer();
  KILN_ASSIGN(const cache::OwnedFile folder,
              cache::openPrivateDirectory(files, path, /*create=*/false, {"override directory", "KILN_OVERRIDE_DIR"}));
  std::vector<std::string> names;
  if (const int failed = files.list(folder.get(), names); failed < 0)
    return cache::systemError("list", path, failed, remedy);
  std::sort(names.begin(), names.end());
  for (const std::string &name : names)
    if (isOverride(name, kernel, codeTarget)) {
      KILN_ASSIGN(std::string text, readOwn(files, folder, path, name));
      out.files.emplace_back(name, std::move(text));
    }
  return out;
}

} // namespace kiln
