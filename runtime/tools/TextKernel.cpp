#include "runtime/tools/TextKernel.h"

#include "runtime/cache/KernelCache.h"
#include "runtime/io/File.h"
#include "runtime/jit/CompileRequest.h"
#include "runtime/jit/CompilerLibrary.h"
#include "runtime/tools/Report.h"

#include <chrono>

namespace kiln::tools {
namespace {

constexpr std::uint64_t maxDescriptionBytes = std::uint64_t(16) << 20;

/// Where descriptions are kept; null where there is no cache, which costs time and nothing else.
std::unique_ptr<cache::KernelCache> openDescriptions(const Knobs &knobs) {
  const Result<std::string> folder = cacheDirectory(knobs);
  if (!folder || folder->empty())
    return nullptr;
  // The kernel cache first: its folder must be private before anything in it is trusted.
  for (const std::string &path : {*folder, *folder + "/" + descriptionsFolder}) {
    cache::CacheOptions how;
    how.directory = path;
    how.maxBytes = maxDescriptionBytes;
    Result<std::unique_ptr<cache::KernelCache>> opened = cache::KernelCache::open(std::move(how));
    if (!opened)
      return nullptr;
    if (path != *folder)
      return std::move(*opened);
  }
  return nullptr;
}

Result<KernelSource> sourceFrom(const std::string &metadata, const std::string &program, const std::string &file) {
  const Json m = Json::parse(metadata, nullptr, /*allow_exceptions=*/false);
  const Status broken(StatusCode::Internal, "the compiler's metadata of '" + file + "' is incomplete",
                      "use the libkiln-compiler of this version");
  if (!m.is_object() || !m.contains("kernel") || !m["kernel"].is_string() || !m.contains("num_warps") ||
      !m["num_warps"].is_number_unsigned() || !m.contains("arguments") || !m["arguments"].is_array())
    return broken;
  KernelSource out;
  out.name = m["kernel"];
  out.programText = program;
  out.fileName = file;
  out.warps = m["num_warps"];
  for (const Json &a : m["arguments"]) {
    if (!a.is_object() || !a.contains("name") || !a["name"].is_string() || !a.contains("type") ||
        !a["type"].is_string())
      return broken;
    ArgumentSpec spec{a["name"], a["type"]};
    Result<ParsedArgumentType> type = parseArgumentType(spec.type);
    if (!type)
      return type.takeStatus().withContext("'" + file + "': argument '" + spec.name + "'");
    spec.specialise = defaultSpecialisation(*type);
    if (const auto how = a.find("specialize"); how != a.end() && how->is_string()) {
      for (const Specialise s : {Specialise::None, Specialise::Divisibility, Specialise::Stride, Specialise::Value})
        if (how->get_ref<const std::string &>() == specialiseName(s))
          spec.specialise = s;
    }
    if (const auto bytes = a.find("element_bytes"); bytes != a.end() && bytes->is_number_unsigned())
      spec.elementBytes = *bytes;
    out.arguments.push_back(std::move(spec));
  }
  return out;
}

} // namespace

Result<TextKernel> readTextKernel(const std::string &file, const std::string &entry, const std::string &codeTarget,
                                  const Knobs &knobs) {
  const auto begin = std::chrono::steady_clock::now();
  KILN_ASSIGN(const std::string program, readTextFile(file, maxTextBytes));
  KILN_ASSIGN(TextKernel out, describeTextKernel(program, file, entry, codeTarget, knobs));
  const auto passed = std::chrono::steady_clock::now() - begin;
  out.milliseconds = std::chrono::duration<double, std::milli>(passed).count();
  return out;
}

Result<TextKernel> describeTextKernel(const std::string &program, const std::string &file, const std::string &entry,
                                      const std::string &codeTarget, const Knobs &knobs) {
  const auto begin = std::chrono::steady_clock::now();
  const auto made = [&](KernelSource source, bool remembered) {
    const auto passed = std::chrono::steady_clock::now() - begin;
    return TextKernel{std::move(source), remembered, std::chrono::duration<double, std::milli>(passed).count()};
  };
  const std::unique_ptr<cache::KernelCache> descriptions = openDescriptions(knobs);
  cache::KeyText key;
  key.set("description of", entry).set("code target", codeTarget).set("version", KILN_VERSION).set("program", program);
  if (descriptions)
    if (const Result<std::optional<cache::Entry>> known = descriptions->lookup(key); known && *known)
      if (Result<KernelSource> source = sourceFrom((*known)->metadata, program, file))
        return made(std::move(*source), true);

  KILN_ASSIGN(const std::shared_ptr<CompilerLibrary> compiler, CompilerLibrary::find(knobs.compiler));
  KILN_ASSIGN(const CompileOptions asked, compileOptions(knobs, {.emit = "tile", .fromFile = true, .plain = true}));
  CompileInput input{program, file, entry, codeTarget, {}, asked.json};
  KILN_ASSIGN(const CompileOutput out, compiler->compile(input, FileHashes(nullptr)));
  KILN_TRY(compileStatus(out, entry.empty() ? file : entry));
  KILN_ASSIGN(KernelSource source, sourceFrom(out.metadata, program, file));
  // Without it the next run asks the compiler again.
  if (descriptions)
    (void)descriptions->store(key, cache::Entry{cache::EntryKind::Ptx, {}, out.metadata});
  return made(std::move(source), false);
}

} // namespace kiln::tools
