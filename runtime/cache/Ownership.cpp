#include "runtime/cache/Ownership.h"

#include "support/Text.h"

#include <algorithm>
#include <dlfcn.h>
#include <filesystem>
#include <grp.h>
#include <link.h>
#include <pwd.h>
#include <unistd.h>

namespace kiln::cache {
namespace {

/// The file that holds this code: the program, or a library.
std::string holder() {
  Dl_info info{};
  link_map *object = nullptr;
  const void *here = reinterpret_cast<const void *>(&isTrusted);
  // The program's own name is empty in the list; dladdr would give argv[0], which need not be its path.
  const bool library = ::dladdr1(here, &info, reinterpret_cast<void **>(&object), RTLD_DL_LINKMAP) != 0 && object &&
                       object->l_name && *object->l_name;
  std::error_code error;
  const auto file = std::filesystem::canonical(library ? object->l_name : "/proc/self/exe", error);
  return error ? std::string() : file.string();
}

uid_t ownerOfThisCode() {
  struct stat info{};
  const std::string file = holder();
  return !file.empty() && ::stat(file.c_str(), &info) == 0 ? info.st_uid : ::geteuid();
}

/// Whether the group is the owner's alone: of the same name, and without other members.
bool isPrivateGroup(gid_t group, uid_t owner) {
  std::vector<char> users(1 << 14), groups(1 << 16);
  passwd user{}, *foundUser = nullptr;
  ::group entry{}, *foundGroup = nullptr;
  if (::getpwuid_r(owner, &user, users.data(), users.size(), &foundUser) != 0 || !foundUser ||
      ::getgrgid_r(group, &entry, groups.data(), groups.size(), &foundGroup) != 0 || !foundGroup)
    return false;
  const std::string_view name = user.pw_name;
  if (name != entry.gr_name)
    return false;
  for (char **member = entry.gr_mem; member && *member; ++member)
    if (name != *member)
      return false;
  return true;
}

bool othersCanWrite(const struct stat &info) {
  return (info.st_mode & S_IWOTH) || ((info.st_mode & S_IWGRP) && !isPrivateGroup(info.st_gid, info.st_uid));
}

std::string ownerText(const struct stat &info) {
  return "belongs to user " + std::to_string(info.st_uid) + ", this process runs as user " +
         std::to_string(::geteuid());
}

std::string writeText(const struct stat &info) {
  return "can be written to by others (mode " + modeText(info.st_mode) + ")";
}

} // namespace

std::string modeText(mode_t mode) {
  return format("%04o", static_cast<unsigned>(mode & 07777));
}

bool isTrusted(uid_t user) {
  static const uid_t program = ownerOfThisCode(); // of a file that runs: it stays
  return user == 0 || user == ::geteuid() || user == program;
}

std::string folderObjection(const struct stat &folder) {
  if (!isTrusted(folder.st_uid))
    return ownerText(folder);
  if (!(folder.st_mode & S_ISVTX) && othersCanWrite(folder))
    return writeText(folder);
  return {};
}

std::string libraryObjection(const struct stat &file) {
  if (!S_ISREG(file.st_mode))
    return "is not a regular file";
  if (!isTrusted(file.st_uid))
    return ownerText(file);
  if (othersCanWrite(file))
    return writeText(file);
  return {};
}

static std::vector<std::string> findProgramFolders() {
  std::vector<std::string> out;
  std::error_code error;
  for (const std::string &file : {std::filesystem::canonical("/proc/self/exe", error).string(), holder()}) {
    if (file.empty())
      continue;
    const std::filesystem::path folder = std::filesystem::path(file).parent_path();
    for (const std::filesystem::path &each : {folder, folder.parent_path() / "lib"})
      if (std::find(out.begin(), out.end(), each.string()) == out.end())
        out.push_back(each.string());
  }
  return out;
}

const std::vector<std::string> &programFolders() {
  static const std::vector<std::string> folders = findProgramFolders(); // as they were when it began
  return folders;
}

} // namespace kiln::cache
