#include "runtime/cache/TrustedLibrary.h"

#include "runtime/cache/Ownership.h"
#include "runtime/cache/TrustedFile.h"

#include <dlfcn.h>
#include <filesystem>

namespace kiln::cache {

Result<const void *> openTrustedLibrary(const LibraryName &name, std::string path, std::uint32_t version) {
  for (const std::string &folder : programFolders())
    if (std::error_code error; path.empty() && std::filesystem::exists(folder + "/" + name.file, error))
      path = folder + "/" + name.file;
  if (path.empty())
    return Status(StatusCode::NotFound, std::string(name.file) + " is not next to the program, nor in its ../lib",
                  name.remedy);
  KILN_ASSIGN(const std::string trusted, trustedFile(path, "the library"));
  void *library = ::dlopen(trusted.c_str(), RTLD_NOW | (name.isGlobal ? RTLD_GLOBAL : RTLD_LOCAL));
  if (!library)
    return Status(StatusCode::NotFound, "'" + trusted + "' cannot be loaded: " + ::dlerror(), name.remedy);
  using Function = const void *();
  auto *function = reinterpret_cast<Function *>(::dlsym(library, name.function));
  const void *table = function ? function() : nullptr;
  if (!table || *static_cast<const std::uint32_t *>(table) != version)
    return Status(StatusCode::Unsupported, "'" + trusted + "' is of another version of Kiln", name.remedy);
  return table;
}

} // namespace kiln::cache
