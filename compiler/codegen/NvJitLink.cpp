// nvJitLink, loaded at run time over declarations of our own (its header's names and numbers, CUDA 12.0 to 13.x).
#include "compiler/codegen/AssemblerKinds.h"
#include "compiler/codegen/AssemblerLog.h"
#include "compiler/codegen/RegisterLimit.h"
#include "support/Text.h"

#include <chrono>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <mutex>
#include <sys/stat.h>

namespace kiln {
namespace {

using Handle = struct HandleTag *;
constexpr int inputPtx = 2;
constexpr int unrecognizedOption = 1, errorUnrecognizedArch = 16, errorUnsupportedArch = 17;

struct Functions {
  int (*create)(Handle *, std::uint32_t optionCount, const char **options) = nullptr;
  int (*destroy)(Handle *) = nullptr;
  int (*addData)(Handle, int type, const void *data, std::size_t bytes, const char *name) = nullptr;
  int (*complete)(Handle) = nullptr;
  int (*cubinSize)(Handle, std::size_t *) = nullptr;
  int (*cubin)(Handle, void *) = nullptr;
  int (*errorLogSize)(Handle, std::size_t *) = nullptr;
  int (*errorLog)(Handle, char *) = nullptr;
  int (*infoLogSize)(Handle, std::size_t *) = nullptr;
  int (*infoLog)(Handle, char *) = nullptr;
  int (*version)(unsigned *major, unsigned *minor) = nullptr;
};

/// Where the library may be, in this order.
constexpr const char *libraryNames[] = {
    "libnvJitLink.so.13",
    "/usr/local/cuda/lib64/libnvJitLink.so.13",
    "/usr/local/cuda/targets/x86_64-linux/lib/libnvJitLink.so.13",
    "libnvJitLink.so.12",
    "/usr/local/cuda/lib64/libnvJitLink.so.12",
    "/usr/local/cuda/targets/x86_64-linux/lib/libnvJitLink.so.12",
};

template <typename Size, typename Read> std::string readLog(Handle handle, Size size, Read read) {
  std::size_t bytes = 0;
  if (size(handle, &bytes) != 0 || bytes == 0)
    return {};
  std::string log(bytes + 1, '\0');
  if (read(handle, log.data()) != 0)
    return {};
  log.resize(std::strlen(log.c_str()));
  return log;
}

std::string_view resultText(int result) {
  switch (result) {
  case 1:
    return "it does not know an option";
  case 3:
    return "the input is not PTX";
  case errorUnrecognizedArch:
  case errorUnsupportedArch:
    return "it does not know the arch";
  default:
    return {};
  }
}

class NvJitLink : public Assembler {
public:
  NvJitLink(const Functions &functions, std::string where, AssemblerVersion number, std::string buildId)
      : call(functions), libraryPath(std::move(where)), number(number),
        id(format("nvJitLink %u.%u %s", number.major, number.minor, buildId.c_str())) {}

  std::string_view name() const override { return "nvJitLink"; }
  AssemblerVersion version() const override { return number; }
  const std::string &identity() const override { return id; }
  const std::string &path() const override { return libraryPath; }
  bool makesParts() const override { return true; }
  bool serves(std::string_view ptx) const override { return ptx.find("setmaxnreg") == std::string_view::npos; }
  Result<AssembledModule> assemble(std::string_view ptx, std::string_view arch, const AssembleOptions &options,
                                   std::string_view fileName) const override;
  void warmUp(std::string_view arch) const override {
    std::call_once(warm, [&] {
      constexpr std::string_view nothing = ".version 7.0\n.target sm_75\n.address_size 64\n.entry nothing() { ret; }\n";
      (void)assemble(nothing, arch, {}, "<nothing>");
    });
  }

private:
  Status failure(int result, std::string_view log, std::string_view arch, std::string_view fileName) const {
    if (result == errorUnrecognizedArch || result == errorUnsupportedArch || isOfLaterVersion(log))
      return olderThan(id, arch);
    if (!log.empty())
      return {StatusCode::CompileError, errorsFromLog(log, fileName)};
    std::string text = std::string(fileName) + ": nvJitLink failed with result " + std::to_string(result);
    if (std::string_view why = resultText(result); !why.empty())
      text += ": " + std::string(why);
    return {StatusCode::CompileError, text};
  }

  mutable std::once_flag warm;
  Functions call;
  std::string libraryPath;
  AssemblerVersion number;
  std::string id;
};

Result<AssembledModule> NvJitLink::assemble(std::string_view ptx, std::string_view arch, const AssembleOptions &options,
                                            std::string_view fileName) const {
  const auto start = std::chrono::steady_clock::now();
  KILN_TRY(checkAssemblyArch(arch));
  const std::string text(ptx), archOption = "-arch=" + std::string(arch);
  // Its own option knows 0 and 3 only.
  const bool between = options.optimisation == 1 || options.optimisation == 2;
  const std::string level =
      format(between ? "-Xptxas=-O%u" : "-O%u", options.optimisation > 3 ? 3 : options.optimisation);
  // "-verbose" would print the same once more for the linked module.
  std::vector<const char *> arguments{archOption.c_str(), level.c_str(), "-Xptxas=-v"};
  if (options.lineInfo)
    arguments.push_back("-lineinfo");
  // Its own cache, in the home folder, would answer without a log: no registers, no spills.
  arguments.push_back("-no-cache");

  Handle handle = nullptr;
  struct Destroy {
    int (*destroy)(Handle *);
    Handle *handle;
    ~Destroy() {
      if (*handle) // also after a failed creation
        destroy(handle);
    }
  } destroy{call.destroy, &handle};
  int result = call.create(&handle, static_cast<std::uint32_t>(arguments.size()), arguments.data());
  if (result == unrecognizedOption) { // before CUDA 12.4
    if (handle)
      call.destroy(&handle);
    handle = nullptr;
    result = call.create(&handle, static_cast<std::uint32_t>(arguments.size()) - 1, arguments.data());
  }
  if (result)
    return failure(result, {}, arch, fileName);

  result = call.addData(handle, inputPtx, text.c_str(), text.size() + 1, "ptx");
  if (!result)
    result = call.complete(handle);
  AssembledModule module;
  std::size_t bytes = 0;
  if (!result)
    result = call.cubinSize(handle, &bytes);
  if (!result) {
    module.cubin.resize(bytes);
    result = call.cubin(handle, module.cubin.data());
  }
  if (result)
    return failure(result, readLog(handle, call.errorLogSize, call.errorLog), arch, fileName);
  const std::string log = readLog(handle, call.infoLogSize, call.infoLog);
  module.resources = makeReport(log, module.cubin);
  module.warnings = warningsFromLog(log, fileName);
  module.assembler = name();
  if (ranOutOfRegisters(ptx, module.resources))
    module.doubt = std::string(name()) + " had no register left";
  module.milliseconds = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return module;
}

/// The build id of the library that is mapped at `base`; its size where it has none.
std::string buildIdentity(const link_map &library) {
  struct Query {
    ElfW(Addr) base;
    std::string text;
  } query{library.l_addr, {}};
  ::dl_iterate_phdr(
      [](dl_phdr_info *info, std::size_t, void *data) {
        auto &query = *static_cast<Query *>(data);
        if (info->dlpi_addr != query.base)
          return 0;
        for (int i = 0; i < info->dlpi_phnum; ++i) {
          const ElfW(Phdr) &segment = info->dlpi_phdr[i];
          if (segment.p_type != PT_NOTE)
            continue;
          const auto *bytes = reinterpret_cast<const unsigned char *>(info->dlpi_addr + segment.p_vaddr);
          for (std::size_t at = 0; at + sizeof(ElfW(Nhdr)) <= segment.p_memsz;) {
            ElfW(Nhdr) note;
            std::memcpy(&note, bytes + at, sizeof note);
            const std::size_t description = at + sizeof note + (note.n_namesz + 3) / 4 * 4;
            if (description + note.n_descsz > segment.p_memsz)
              break;
            if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 &&
                !std::memcmp(bytes + at + sizeof note, "GNU", 4)) {
              query.text = "build-id ";
              for (std::size_t k = 0; k < note.n_descsz; ++k)
                query.text += format("%02x", bytes[description + k]);
              return 1;
            }
            at = description + (note.n_descsz + 3) / 4 * 4;
          }
        }
        return 1;
      },
      &query);
  struct stat file;
  if (query.text.empty() && ::stat(library.l_name, &file) == 0)
    query.text = format("%lld bytes, modified %lld", static_cast<long long>(file.st_size),
                        static_cast<long long>(file.st_mtim.tv_sec));
  return query.text;
}

} // namespace

Result<std::shared_ptr<const Assembler>> findNvJitLink(const AssemblerSearch &search) {
  if (search.nvJitLink == "none")
    return Status(StatusCode::NotFound, "nvJitLink: switched off");
  std::vector<const char *> candidates(std::begin(libraryNames), std::end(libraryNames));
  if (!search.nvJitLink.empty())
    candidates = {search.nvJitLink.c_str()};
  void *library = nullptr;
  std::string why;
  for (const char *candidate : candidates) {
    library = ::dlopen(candidate, RTLD_NOW | RTLD_LOCAL);
    if (library)
      break;
    if (const char *error = ::dlerror(); error && why.empty())
      why = error;
  }
  if (!library)
    return Status(StatusCode::NotFound, "nvJitLink: " + why);

  Functions call;
  std::string missing;
  auto load = [&](auto &function, const char *name) {
    function = reinterpret_cast<std::remove_reference_t<decltype(function)>>(::dlsym(library, name));
    if (!function && missing.empty())
      missing = name;
  };
  load(call.create, "nvJitLinkCreate");
  load(call.destroy, "nvJitLinkDestroy");
  load(call.addData, "nvJitLinkAddData");
  load(call.complete, "nvJitLinkComplete");
  load(call.cubinSize, "nvJitLinkGetLinkedCubinSize");
  load(call.cubin, "nvJitLinkGetLinkedCubin");
  load(call.errorLogSize, "nvJitLinkGetErrorLogSize");
  load(call.errorLog, "nvJitLinkGetErrorLog");
  load(call.infoLogSize, "nvJitLinkGetInfoLogSize");
  load(call.infoLog, "nvJitLinkGetInfoLog");
  load(call.version, "nvJitLinkVersion");
  link_map *map = nullptr;
  if (::dlinfo(library, RTLD_DI_LINKMAP, &map) != 0 || !map)
    missing = "link map";
  AssemblerVersion version;
  if (missing.empty() && call.version(&version.major, &version.minor) != 0)
    missing = "version";
  if (!missing.empty())
    return Status(StatusCode::NotFound,
                  "nvJitLink: " + std::string(map ? map->l_name : "the library") + " has no " + missing);
  return std::shared_ptr<const Assembler>(std::make_shared<NvJitLink>(call, map->l_name, version, buildIdentity(*map)));
}

} // namespace kiln
