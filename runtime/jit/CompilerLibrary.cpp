#include "runtime/jit/CompilerLibrary.h"

#include "support/Text.h"

#include <nlohmann/json.hpp>

#include <cstdlib>
#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <vector>

namespace kiln {

namespace {

std::string folderOf(const std::string &path) {
  const std::size_t slash = path.rfind('/');
  return slash == std::string::npos ? "." : path.substr(0, slash);
}

bool isFile(const std::string &path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

/// Where the loader looks for a library: LD_LIBRARY_PATH, the program's RUNPATH, the system's folders.
void appendLoaderFolders(std::vector<std::string> &out) {
  void *self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (!self || ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0)
    return;
  std::vector<char> memory(size.dls_size);
  auto *info = reinterpret_cast<Dl_serinfo *>(memory.data());
  info->dls_size = size.dls_size;
  info->dls_cnt = size.dls_cnt;
  if (::dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return;
  for (unsigned i = 0; i < info->dls_cnt; ++i)
    if (const char *name = info->dls_serpath[i].dls_name; name && *name)
      out.emplace_back(name);
}

std::vector<std::string> searchFolders() {
  std::vector<std::string> out;
  const auto around = [&](const std::string &program) {
    out.push_back(folderOf(program));
    out.push_back(folderOf(program) + "/../lib");
  };
  std::string program(4096, '\0');
  const ssize_t n = ::readlink("/proc/self/exe", program.data(), program.size());
  if (n > 0)
    around(program.substr(0, static_cast<std::size_t>(n)));
  Dl_info holder{};
  if (::dladdr(reinterpret_cast<const void *>(&isFile), &holder) != 0 && holder.dli_fname)
    if (char *real = ::realpath(holder.dli_fname, nullptr)) {
      if (n > 0 && folderOf(real) != out.front())
        around(real);
      std::free(real);
    }
  appendLoaderFolders(out);
  return out;
}

KilnText text(std::string_view view) {
  return {view.data(), view.size()};
}
std::string copy(const KilnText &t) {
  return t.data ? std::string(t.data, t.size) : std::string();
}

std::string stringOf(const nlohmann::json &object, const char *name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}
long numberOf(const nlohmann::json &object, const char *name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_number_integer() ? found->get<long>() : 0;
}

struct Diagnostic {
  std::string line, remedy;
  bool error = false;
};

std::vector<Diagnostic> parseDiagnostics(std::string_view text) {
  std::vector<Diagnostic> out;
  const nlohmann::json parsed = nlohmann::json::parse(text, nullptr, false);
  if (!parsed.is_array()) {
    if (!text.empty())
      out.push_back({std::string(text), {}, true});
    return out;
  }
  for (const nlohmann::json &d : parsed) {
    if (!d.is_object())
      continue;
    Diagnostic one;
    const std::string severity = stringOf(d, "severity"), file = stringOf(d, "file");
    if (!file.empty()) {
      one.line = file;
      if (numberOf(d, "line") > 0)
        one.line += ":" + std::to_string(numberOf(d, "line")) + ":" + std::to_string(numberOf(d, "column"));
      one.line += ": ";
    }
    one.error = severity == "error";
    one.line += (severity.empty() ? "error" : severity) + ": " + stringOf(d, "message");
    one.remedy = stringOf(d, "remedy");
    out.push_back(std::move(one));
  }
  return out;
}

} // namespace

std::string diagnosticsText(std::string_view diagnosticsJson) {
  std::string out;
  for (const Diagnostic &d : parseDiagnostics(diagnosticsJson))
    out += (out.empty() ? "" : "\n") + d.line + (d.remedy.empty() ? "" : " (" + d.remedy + ")");
  return out;
}

Status compileStatus(const CompileOutput &out, std::string_view kernel) {
  if (out.status == KILN_COMPILE_OK)
    return {};
  StatusCode code = StatusCode::Internal;
  std::string message = "kernel '" + std::string(kernel) + "' ";
  switch (out.status) {
  case KILN_COMPILE_INPUT:
    code = StatusCode::InvalidArgument;
    message += "cannot be read";
    break;
  case KILN_COMPILE_REFUSED:
    code = StatusCode::CompileError;
    message += "cannot be compiled";
    break;
  case KILN_COMPILE_CRASHED:
    message += "crashed the compiler, which was contained";
    break;
  default:
    message += "made the compiler answer with status " + std::to_string(out.status);
  }
  std::string remedy;
  for (const Diagnostic &d : parseDiagnostics(out.diagnostics)) {
    message += "\n" + d.line;
    if (d.error && remedy.empty())
      remedy = d.remedy;
  }
  return {code, std::move(message), std::move(remedy)};
}

Result<std::shared_ptr<CompilerLibrary>> CompilerLibrary::find(const std::string &path) {
  const auto make = [](const std::string &file) { return std::shared_ptr<CompilerLibrary>(new CompilerLibrary(file)); };
  const std::string remedy = std::string("set KILN_COMPILER to the path of ") + fileName;
  if (!path.empty()) {
    if (isFile(path))
      return make(path);
    return Status(StatusCode::NotFound, "the compiler '" + path + "' is no file", remedy);
  }
  const std::vector<std::string> folders = searchFolders();
  for (const std::string &folder : folders)
    if (isFile(folder + "/" + fileName))
      return make(folder + "/" + fileName);
  return Status(StatusCode::NotFound, std::string(fileName) + " was not found in " + join(folders), remedy);
}

Result<std::string> CompilerLibrary::identity(const FileHashes &hashes) {
  {
    const std::lock_guard lock(mutex);
    if (!loadedHash.empty())
      return loadedHash;
  }
  KILN_ASSIGN(FileHashes::Hashed hashed, hashes.hash(file));
  return hashed.hash;
}

Status CompilerLibrary::open(const FileHashes &hashes) {
  if (opened())
    return {};
  const std::lock_guard lock(mutex);
  if (opened())
    return {};
  const std::string remedy = "build or install " + std::string(fileName) + " of this version, or set KILN_COMPILER";
  constexpr unsigned attempts = 3;
  for (unsigned i = 0; i < attempts; ++i) {
    KILN_ASSIGN(FileHashes::Hashed hashed, hashes.hash(file));
    // NOW: a function that is missing is an error here, and not the end of the process at its first use.
    void *handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
      const char *why = ::dlerror();
      return {StatusCode::NotFound, "the compiler cannot be loaded: " + std::string(why ? why : file.c_str()), remedy};
    }
    auto *entry = reinterpret_cast<decltype(&kilnCompilerTable)>(::dlsym(handle, "kilnCompilerTable"));
    const KilnCompilerTable *found = entry ? entry() : nullptr;
    if (!found)
      return {StatusCode::NotFound, "'" + file + "' has no function kilnCompilerTable", remedy};
    if (found->abi != KILN_COMPILER_ABI)
      return {StatusCode::Unsupported,
              "'" + file + "' has version " + std::to_string(found->abi) +
                  " of the compiler's interface, this program " + std::to_string(KILN_COMPILER_ABI),
              remedy};
    // What was loaded is what was hashed, unless the file changed in between.
    KILN_ASSIGN(const FileStamp now, FileStamp::of(file));
    if (now == hashed.stamp) {
      loadedHash = hashed.hash;
      table.store(found, std::memory_order_release);
      return {};
    }
  }
  return {StatusCode::IoError, "the compiler '" + file + "' changes while it is loaded", "wait until it is written"};
}

std::string CompilerLibrary::version() const {
  const KilnCompilerTable *t = table.load(std::memory_order_acquire);
  return t && t->version ? t->version : "";
}

Result<const KilnCompilerTable *> CompilerLibrary::functions(const FileHashes &hashes) {
  KILN_TRY(open(hashes));
  return table.load(std::memory_order_acquire);
}

Result<CompileOutput> CompilerLibrary::compile(const CompileInput &input, const FileHashes &hashes) {
  KILN_ASSIGN(const KilnCompilerTable *functions, this->functions(hashes));
  KilnCompileRequest request{};
  request.program = text(input.program);
  request.fileName = text(input.fileName);
  request.kernel = text(input.kernel);
  request.codeTarget = text(input.codeTarget);
  request.specialization = text(input.specialization);
  request.options = text(input.options);
  KilnCompileResult *result = functions->compile(&request);
  if (!result)
    return Status(StatusCode::Internal, "the compiler '" + file + "' gave no result");
  CompileOutput out{result->status, copy(result->output), copy(result->metadata), copy(result->diagnostics)};
  functions->release(result);
  return out;
}

} // namespace kiln
