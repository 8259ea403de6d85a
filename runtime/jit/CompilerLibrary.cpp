#include "runtime/jit/CompilerLibrary.h"

#include "compiler/codegen/Process.h"
#include "runtime/cache/Ownership.h"
#include "runtime/cache/TrustedFile.h"
#include "support/Text.h"

#include <nlohmann/json.hpp>

#include <dlfcn.h>
#include <map>
#include <mutex>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <vector>

namespace kiln {

namespace {

bool isFile(const std::string &path) {
  struct stat s{};
  return ::stat(path.c_str(), &s) == 0 && S_ISREG(s.st_mode);
}

/// Where the loader looks for a library: LD_LIBRARY_PATH, the program's RUNPATH, the system's folders.
std::vector<std::string> loaderFolders() {
  std::vector<std::string> out;
  void *self = ::dlopen(nullptr, RTLD_LAZY);
  Dl_serinfo size{};
  if (!self || ::dlinfo(self, RTLD_DI_SERINFOSIZE, &size) != 0)
    return out;
  std::vector<char> memory(size.dls_size);
  auto *info = reinterpret_cast<Dl_serinfo *>(memory.data());
  info->dls_size = size.dls_size;
  info->dls_cnt = size.dls_cnt;
  if (::dlinfo(self, RTLD_DI_SERINFO, info) != 0)
    return out;
  for (unsigned i = 0; i < info->dls_cnt; ++i)
    if (const char *name = info->dls_serpath[i].dls_name; name && *name)
      out.emplace_back(name);
  return out;
}

/// What this process has loaded, by path.  The loader knows a library by its name and never gives it back: whatever the
/// file holds by now, this code is what `dlopen` gives.
struct LoadedCompiler {
  std::string hash; ///< empty: not known, the file changed while it was loaded
  const KilnCompilerTable *table = nullptr;
};
struct LoadedCompilers {
  std::mutex mutex;
  std::map<std::string, LoadedCompiler> byPath;
};
LoadedCompilers &loadedCompilers() {
  static LoadedCompilers all; // of the process, as the loader's list is
  return all;
}

/// Why a library cannot be loaded, and what to do.  Too little memory for it is told from a broken file by trying.
Status cannotLoad(const std::string &file, const std::string &why, const std::string &remedy) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) {
    constexpr std::size_t compilerBytes = std::size_t(512) << 20; // LLVM, MLIR and what they allocate at once
    void *trial = ::mmap(nullptr, compilerBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (trial == MAP_FAILED)
      return {StatusCode::OutOfMemory,
              "the compiler cannot be loaded: too little memory: this process may use " +
                  std::to_string(limit.rlim_cur >> 20) + " MiB of address space, and the compiler needs about " +
                  std::to_string(compilerBytes >> 20) + " MiB of it (" + why + ")",
              limitsRemedy()};
    ::munmap(trial, compilerBytes);
  }
  return {StatusCode::NotFound, "the compiler '" + file + "' cannot be loaded: " + why, remedy};
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
    code = StatusCode::CompileError; // the compile failed; the process, the device and the cache are sound
    message += "crashed the compiler, which was contained";
    break;
  case KILN_COMPILE_NOT_STARTED:
    code = StatusCode::OutOfMemory;
    message += "was not compiled";
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
  const auto open = [](const std::string &name) -> Result<std::shared_ptr<CompilerLibrary>> {
    KILN_ASSIGN(const std::string file, cache::trustedFile(name, "the compiler"));
    return std::shared_ptr<CompilerLibrary>(new CompilerLibrary(file));
  };
  const std::string remedy = std::string("set KILN_COMPILER to the path of ") + fileName;
  if (!path.empty()) {
    if (isFile(path))
      return open(path);
    return Status(StatusCode::NotFound, "the compiler '" + path + "' is no file", remedy);
  }
  std::vector<std::string> folders = cache::programFolders();
  for (std::string &folder : loaderFolders())
    folders.push_back(std::move(folder));
  for (const std::string &folder : folders)
    if (isFile(folder + "/" + fileName))
      return open(folder + "/" + fileName);
  return Status(StatusCode::NotFound, std::string(fileName) + " was not found in " + join(folders), remedy);
}

Result<std::string> CompilerLibrary::identity(const FileHashes &hashes) {
  {
    LoadedCompilers &loaded = loadedCompilers();
    const std::lock_guard lock(loaded.mutex);
    if (const auto known = loaded.byPath.find(file); known != loaded.byPath.end() && known->second.table)
      return known->second.hash;
  }
  KILN_ASSIGN(FileHashes::Hashed hashed, hashes.hash(file));
  return hashed.hash;
}

Status CompilerLibrary::open(const FileHashes &hashes) {
  if (opened())
    return {};
  LoadedCompilers &all = loadedCompilers();
  const std::lock_guard lock(all.mutex);
  const std::string remedy = "build or install " + std::string(fileName) + " of this version, or set KILN_COMPILER";
  auto known = all.byPath.find(file);
  if (known == all.byPath.end()) {
    KILN_ASSIGN(FileHashes::Hashed hashed, hashes.hash(file));
    // NOW: a function that is missing is an error here, and not the end of the process at its first use.
    void *handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (!handle) {
      const char *why = ::dlerror();
      return cannotLoad(file, why ? why : "no reason given", remedy);
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
    // What was loaded is what was hashed, unless the file changed in between; to load it again would give the same.
    const Result<FileStamp> now = FileStamp::of(file);
    const bool same = now && *now == hashed.stamp;
    known = all.byPath.emplace(file, LoadedCompiler{same ? hashed.hash : "", same ? found : nullptr}).first;
  }
  if (!known->second.table)
    return {StatusCode::IoError, "the compiler '" + file + "' changed while it was loaded: no key can say what it is",
            "start the process again once the file is written"};
  table.store(known->second.table, std::memory_order_release);
  return {};
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
