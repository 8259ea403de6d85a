#include "compiler/pipeline/Plugins.h"

#include "compiler/pipeline/PassPluginAbi.inc"
#include "support/Text.h"

#include "mlir/Pass/PassRegistry.h"
#include "mlir/Tools/Plugins/PassPlugin.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Config/llvm-config.h"
#include "llvm/Object/ELFObjectFile.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/xxhash.h"

#include <cerrno>
#include <deque>
#include <dlfcn.h>
#include <map>
#include <mutex>
#include <sys/stat.h>

namespace kiln {
namespace {

using Elf = llvm::object::ELFObjectFile<llvm::object::ELF64LE>;

/// What a plugin's file says of itself.
struct PluginFile {
  bool hasEntry = false;
  bool usesMlir = false;           ///< it takes functions of MLIR from elsewhere
  std::vector<std::string> needed; ///< shared objects that it is linked to
  std::string mark;                ///< of PassPluginMark.cpp; empty: none
};

std::string baseName(llvm::StringRef path) {
  return path.substr(path.rfind('/') + 1).str();
}

/// The bytes from `at` up to the next zero.
std::string textAt(llvm::StringRef bytes, std::uint64_t at) {
  return at < bytes.size() ? bytes.substr(at).take_until([](char c) { return c == '\0'; }).str() : std::string();
}

llvm::Error readNeeded(const Elf &elf, PluginFile &out) {
  llvm::Expected<Elf::Elf_Shdr_Range> sections = elf.getELFFile().sections();
  if (!sections)
    return sections.takeError();
  for (const Elf::Elf_Shdr &section : *sections) {
    if (section.sh_type != llvm::ELF::SHT_DYNAMIC)
      continue;
    llvm::Expected<llvm::StringRef> names = elf.getELFFile().getLinkAsStrtab(section);
    if (!names)
      return names.takeError();
    auto entries = elf.getELFFile().getSectionContentsAsArray<Elf::Elf_Dyn>(section);
    if (!entries)
      return entries.takeError();
    for (const Elf::Elf_Dyn &entry : *entries)
      if (entry.getTag() == llvm::ELF::DT_NEEDED)
        out.needed.push_back(textAt(*names, entry.getVal()));
  }
  return llvm::Error::success();
}

llvm::Error readSymbols(const Elf &elf, llvm::StringRef entry, PluginFile &out) {
  for (const llvm::object::ELFSymbolRef symbol : elf.getDynamicSymbolIterators()) {
    llvm::Expected<llvm::StringRef> name = symbol.getName();
    if (!name)
      return name.takeError();
    llvm::Expected<std::uint32_t> flags = symbol.getFlags();
    if (!flags)
      return flags.takeError();
    if (*flags & llvm::object::SymbolRef::SF_Undefined) {
      out.usesMlir |= name->starts_with("_ZN4mlir") || name->starts_with("_ZNK4mlir");
      continue;
    }
    out.hasEntry |= *name == entry;
    if (*name != "kilnPassPluginMark")
      continue;
    llvm::Expected<llvm::object::section_iterator> section = symbol.getSection();
    if (!section)
      return section.takeError();
    llvm::Expected<std::uint64_t> address = symbol.getAddress();
    if (!address)
      return address.takeError();
    if (*section == elf.section_end())
      continue;
    llvm::Expected<llvm::StringRef> bytes = (*section)->getContents();
    if (!bytes)
      return bytes.takeError();
    out.mark = textAt(*bytes, *address - (*section)->getAddress());
  }
  return llvm::Error::success();
}

/// A file as it was read: its bytes, which the hash is of, and what tells it from another of its name, or from itself
/// after a change.
struct ReadFile {
  std::unique_ptr<llvm::MemoryBuffer> contents;
  struct stat info{};

  /// Whether `path` still is this file, unchanged.
  bool isStill(const std::string &path) const {
    struct stat now{};
    const auto same = [](const timespec &a, const timespec &b) {
      return a.tv_sec == b.tv_sec && a.tv_nsec == b.tv_nsec;
    };
    return ::stat(path.c_str(), &now) == 0 && now.st_dev == info.st_dev && now.st_ino == info.st_ino &&
           now.st_size == info.st_size && same(now.st_mtim, info.st_mtim) && same(now.st_ctim, info.st_ctim);
  }
};

/// Reads the file whole.
Result<ReadFile> readWhole(const std::string &path) {
  const auto failed = [&](std::error_code error) {
    return Status(error == std::errc::no_such_file_or_directory ? StatusCode::NotFound : StatusCode::IoError,
                  "the pass plugin '" + path + "' cannot be read: " + error.message(),
                  "give the path of a shared object built with kiln_add_pass_plugin");
  };
  llvm::Expected<llvm::sys::fs::file_t> file = llvm::sys::fs::openNativeFileForRead(path);
  if (!file)
    return failed(llvm::errorToErrorCode(file.takeError()));
  const auto close = llvm::make_scope_exit([&] { (void)llvm::sys::fs::closeFile(*file); });
  ReadFile out;
  if (::fstat(*file, &out.info) != 0)
    return failed(std::error_code(errno, std::generic_category()));
  auto buffer = llvm::MemoryBuffer::getOpenFile(*file, path, static_cast<std::uint64_t>(out.info.st_size),
                                                /*RequiresNullTerminator=*/false);
  if (!buffer)
    return failed(buffer.getError());
  out.contents = std::move(*buffer);
  return std::move(out);
}

Result<PluginFile> inspect(const std::string &path, const llvm::MemoryBuffer &contents, llvm::StringRef entry) {
  const auto refuse = [&](const std::string &why) {
    return Status::invalid("'" + path + "' is no pass plugin: " + why,
                           "give the path of a shared object built with kiln_add_pass_plugin");
  };
  llvm::Expected<std::unique_ptr<llvm::object::ObjectFile>> object =
      llvm::object::ObjectFile::createELFObjectFile(contents.getMemBufferRef());
  if (!object)
    return refuse("it is no shared object (" + llvm::toString(object.takeError()) + ")");
  const auto *elf = llvm::dyn_cast<Elf>(object->get());
  if (!elf || elf->getELFFile().getHeader().e_type != llvm::ELF::ET_DYN)
    return refuse("it is no shared object");
  PluginFile out;
  llvm::Error error = readNeeded(*elf, out);
  if (!error)
    error = readSymbols(*elf, entry, out);
  if (error)
    return refuse("its tables are damaged (" + llvm::toString(std::move(error)) + ")");
  if (!out.hasEntry)
    return refuse("it has no function " + entry.str());
  return out;
}

/// File name of the shared object that holds `address`.
std::string holderOf(const void *address) {
  Dl_info info{};
  return dladdr(address, &info) && info.dli_fname ? baseName(info.dli_fname) : std::string();
}

Status checkLibraries(const std::string &path, const PluginFile &file) {
  const std::string remedy =
      "build it with find_package(Kiln COMPONENTS compiler) and kiln_add_pass_plugin against this Kiln";
  const std::string version = LLVM_VERSION_STRING;
  const std::string mlir = holderOf(reinterpret_cast<const void *>(&mlir::registerPassPipeline));
  const std::string llvmName = holderOf(reinterpret_cast<const void *>(&llvm::MemoryBuffer::getFile));
  bool usesKiln = false;
  for (const std::string &name : file.needed) {
    const bool foreign = (llvm::StringRef(name).starts_with("libMLIR") && name != mlir) ||
                         (llvm::StringRef(name).starts_with("libLLVM") && name != llvmName);
    if (foreign)
      return Status(StatusCode::Unsupported,
                    "the pass plugin '" + path + "' was built with another LLVM: it needs " + name +
                        ", this compiler is LLVM " + version + " (" + mlir + ")",
                    remedy);
    usesKiln |= llvm::StringRef(name).starts_with("libkiln-compiler");
  }
  if (file.mark.empty() && usesKiln)
    return Status(StatusCode::Unsupported,
                  "the pass plugin '" + path + "' uses libkiln-compiler and does not say of which Kiln", remedy);
  if (!file.mark.empty() && file.mark != KILN_PASS_PLUGIN_ABI)
    return Status(StatusCode::Unsupported,
                  "the pass plugin '" + path + "' was built for another Kiln: for '" + file.mark + "', this is '" +
                      KILN_PASS_PLUGIN_ABI + "'",
                  remedy);
  if (!file.usesMlir)
    return Status(StatusCode::Unsupported,
                  "the pass plugin '" + path + "' holds an MLIR of its own: passes that it registers would not be seen",
                  remedy);
  return {};
}

Result<ReadFile> readChecked(const std::string &path, const std::string &entry) {
  if (KILN_STATIC_LLVM)
    return Status(
        StatusCode::Unsupported,
        "the plugin '" + path +
            "' cannot be loaded: this compiler holds LLVM inside itself (release and bundle builds), where no "
            "plugin can reach it",
        "use a build of the preset dev: its kiln-opt, or KILN_COMPILER=<its libkiln-compiler.so>");
  KILN_ASSIGN(ReadFile read, readWhole(path));
  KILN_ASSIGN(const PluginFile file, inspect(path, *read.contents, entry));
  KILN_TRY(checkLibraries(path, file));
  return std::move(read);
}

std::string hashOf(const llvm::MemoryBuffer &contents) {
  const llvm::XXH128_hash_t h = llvm::xxh3_128bits(llvm::arrayRefFromStringRef(contents.getBuffer()));
  return format("%016llx%016llx", static_cast<unsigned long long>(h.high64), static_cast<unsigned long long>(h.low64));
}

/// `read`: the file that was checked.  No pass of another one is registered.
Status openPlugin(const std::string &path, const ReadFile &read) {
  const std::string what = "the pass plugin '" + path + "' cannot be loaded: ";
  const std::string remedy = "build it with find_package(Kiln COMPONENTS compiler) and kiln_add_pass_plugin";
  // NOW: a function that is missing is an error here, and not the end of the process at its first use.
  if (!dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE)) {
    const char *why = dlerror();
    return {StatusCode::Unsupported, what + (why ? why : "no reason given"), remedy};
  }
  llvm::Expected<mlir::PassPlugin> plugin = mlir::PassPlugin::load(path);
  if (!plugin)
    return {StatusCode::Unsupported, what + llvm::toString(plugin.takeError()), remedy};
  if (!read.isStill(path))
    return {StatusCode::IoError, what + "it changed while it was loaded", "compile again once it is written"};
  plugin->registerPassRegistryCallbacks();
  return {};
}

} // namespace

Status checkPlugin(const std::string &path, const std::string &entry) {
  return readChecked(path, entry).takeStatus();
}

/// A name without a slash would be looked for in the loader's folders.
static std::string inThisFolder(const std::string &given) {
  return given.find('/') == std::string::npos ? "./" + given : given;
}

Status loadPlugin(const std::string &given) {
  const std::string path = inThisFolder(given);
  static std::mutex mutex;
  static std::map<std::string, std::string>
      loaded; // path -> hash of what was loaded: part of the process, as the passes are
  const std::lock_guard lock(mutex);
  KILN_ASSIGN(const ReadFile read, readChecked(path, "mlirGetPassPluginInfo"));
  const std::string hash = hashOf(*read.contents);
  if (const auto known = loaded.find(path); known != loaded.end()) {
    if (known->second == hash)
      return {};
    return {
        StatusCode::Unsupported,
        "the pass plugin '" + path + "' was built anew since this process loaded it, and passes cannot be unloaded",
        "start a new process, or compile with isolation = thread or child, which loads plugins in a helper process"};
  }
  KILN_TRY(openPlugin(path, read));
  loaded[path] = hash;
  return {};
}

Status loadPluginsOf(int argc, char **argv) {
  for (int i = 1; i < argc; ++i) {
    llvm::StringRef word = argv[i];
    if (!word.consume_front("--") && !word.consume_front("-"))
      continue;
    auto [option, path] = word.split('=');
    const bool passes = option == "load-pass-plugin";
    if (!passes && option != "load-dialect-plugin")
      continue;
    const bool separate = !word.contains('=') && i + 1 < argc;
    if (separate)
      path = argv[++i];
    const std::string file = inThisFolder(path.str());
    KILN_TRY(passes ? loadPlugin(file) : checkPlugin(file, "mlirGetDialectPluginInfo"));
    // MLIR loads what the words say once more: the same file.
    if (file != path) {
      static std::deque<std::string> words; // main's arguments live as long as the process
      argv[i] = words.emplace_back(separate ? file : "--" + option.str() + "=" + file).data();
    }
  }
  return {};
}

} // namespace kiln
