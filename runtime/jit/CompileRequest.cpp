#include "runtime/jit/CompileRequest.h"

#include "runtime/cache/PrivateDirectory.h"
#include "runtime/cache/TrustedFile.h"

#include <nlohmann/json.hpp>

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <unistd.h>

namespace kiln {

/// The folder's absolute path once it is there, nobody else's, and writable.
static Result<std::string> dumpFolder(const std::string &given) {
  std::error_code error;
  const std::string path = std::filesystem::absolute(given, error).string();
  cache::FileLayer &files = cache::systemFileLayer();
  const cache::DirectoryUse use{"dump directory", "KILN_DUMP_DIR"};
  KILN_ASSIGN(const cache::OwnedFile folder, cache::openPrivateDirectory(files, path, /*create=*/true, use));
  if (::faccessat(folder.get(), ".", W_OK | X_OK, AT_EACCESS) != 0)
    return cache::systemError("write to the dump directory", path, -errno, "set KILN_DUMP_DIR to another one");
  return path;
}

Result<std::vector<std::string>> pluginFiles(const Knobs &knobs) {
  std::vector<std::string> out;
  for (const std::string &plugin : knobs.plugins) {
    Result<std::string> file = cache::trustedFile(plugin, "the pass plugin");
    if (!file)
      return Status(file.status().code(), file.status().message(),
                    file.status().code() == StatusCode::InvalidArgument
                        ? file.status().remedy()
                        : "KILN_PLUGINS names shared objects that kiln_add_pass_plugin builds");
    out.push_back(std::move(*file));
  }
  return out;
}

Result<CompileOptions> compileOptions(const Knobs &knobs, const CompilePurpose &purpose) {
  nlohmann::json request{{"emit", purpose.emit}, {"line_info", purpose.lineInfo}};
  if (purpose.explain)
    request["explain"] = true;
  if (purpose.timePasses)
    request["time_passes"] = true;
  CompileOptions out;
  for (const KnobInfo &knob : allKnobs()) {
    if (knob.request.empty() || (purpose.plain && knob.type != KnobType::Isolation))
      continue;
    const std::string name(knob.request);
    KILN_ASSIGN(const std::string value, knobs.get(knob.variable));
    if (knob.type == KnobType::Isolation)
      request[name] = knobs.isolation != knob::Isolation::Auto ? value : purpose.fromFile ? "child" : "thread";
    else if (value.empty() || (knob.type == KnobType::Bool && value == "0"))
      continue;
    else if (knob.type == KnobType::Bool)
      request[name] = true;
    else if (name == "overrides") {
      Overrides own;
      if (!purpose.overrides) {
        KILN_ASSIGN(own, readOverrides(knobs, purpose.kernel, purpose.codeTarget));
      }
      for (const auto &[file, text] : (purpose.overrides ? purpose.overrides : &own)->files)
        request[name][file] = text;
    } else if (knob.type == KnobType::Paths) {
      KILN_ASSIGN(request[name], pluginFiles(knobs));
    } else if (knob.type == KnobType::Path) {
      if (Result<std::string> folder = dumpFolder(value))
        request[name] = *folder;
      else
        out.note = "no dumps: " + folder.status().toString();
    } else
      request[name] = value;
  }
  out.json = request.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return out;
}

} // namespace kiln
