#include "runtime/tools/CacheEntry.h"

#include "runtime/io/File.h"
#include "support/Text.h"

#include <filesystem>

namespace kiln::tools {
namespace {

std::string field(const CacheEntry &e, std::string_view name) {
  const std::string *text = e.info.key.find(name);
  return text ? *text : std::string();
}

std::string quoted(const std::string &word) {
  std::string out = "'";
  for (const char c : word)
    out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// Compiles the program again, for the same target and facts.  Plugins are in the key by their contents alone.
std::string commandOf(const CacheEntry &e, const std::string &file) {
  std::string out = "kiln compile " + quoted(file) + " --entry " + quoted(field(e, "kernel")) + " --target " +
                    field(e, "code target");
  const Json facts = Json::parse(field(e, "classes"), nullptr, /*allow_exceptions=*/false);
  if (facts.is_array())
    for (const Json &fact : facts) {
      for (const auto &[option, name] : {std::pair(" --divisible ", "divisibility"), std::pair(" --equals ", "equals")})
        if (fact.is_object() && fact.contains(name))
          out += option + fact.value("argument", Json()).dump() + "=" + fact[name].dump();
      if (fact.is_object() && fact.contains("tensor_maps"))
        out += " --no-tensor-maps";
    }
  if (field(e, "line info") == "on")
    out += " --line-info";
  for (const auto &[option, name] : {std::pair(" --passes ", "passes"), std::pair(" --stress ", "stress")})
    if (const std::string text = field(e, name); !text.empty())
      out += option + quoted(text);
  return out;
}

Json metadataOf(const CacheEntry &e) {
  Json metadata = Json::parse(e.entry.metadata, nullptr, /*allow_exceptions=*/false);
  return metadata.is_discarded() ? Json(e.entry.metadata) : metadata;
}

} // namespace

Result<CacheEntry> findCacheEntry(cache::KernelCache &kernels, const std::string &name) {
  KILN_ASSIGN(const std::vector<cache::EntryInfo> all, kernels.list());
  std::vector<const cache::EntryInfo *> found;
  for (const cache::EntryInfo &e : all)
    if (e.fileName.starts_with(name))
      found.push_back(&e);
  if (found.size() != 1)
    return Status(StatusCode::NotFound,
                  found.empty() ? "the cache has no entry '" + name + "'"
                                : std::to_string(found.size()) + " entries of the cache begin with '" + name + "'",
                  "kiln cache list names the entries; the first letters of a name are enough if they are one's alone");
  if (!found[0]->damage.empty())
    return Status::invalid("the entry '" + found[0]->fileName + "' is not used: " + found[0]->damage,
                           "kiln cache prune --damaged removes those that are damaged");
  KILN_ASSIGN(std::optional<cache::Entry> entry, kernels.lookup(found[0]->key));
  if (!entry)
    return Status::invalid("the entry '" + found[0]->fileName + "' is damaged", "kiln cache verify says how");
  return CacheEntry{*found[0], std::move(*entry)};
}

std::string describeCacheEntry(const CacheEntry &e) {
  std::string out = e.info.fileName + ": " + std::string(cache::entryKindName(e.entry.kind)) + ", " +
                    std::to_string(e.entry.payload.size()) + " bytes\n\nkey\n";
  for (const cache::KeyText::Field &f : e.info.key.fields())
    if (f.name != "program")
      out += "  " + f.name + ": " + f.text + "\n";
  const Json metadata = metadataOf(e);
  if (e.entry.kind == cache::EntryKind::Tuned) {
    out += "\nvalues\n  " + e.entry.payload + "\n\nmeasured\n";
    if (metadata.is_object())
      for (const auto &[name, value] : metadata.items())
        out += "  " + name + ": " + (value.is_string() ? value.get<std::string>() : value.dump()) + "\n";
    return out;
  }
  if (metadata.is_object()) {
    out += "\nresources\n";
    for (const char *name : {"num_warps", "shared_bytes", "ptx_isa", "assembler_level", "reproducible", "guards"})
      if (metadata.contains(name))
        out += "  " + std::string(name) + ": " + metadata[name].dump() + "\n";
    if (metadata.contains("milliseconds"))
      out += "\nmilliseconds of its compile\n  " + metadata["milliseconds"].dump() + "\n";
  }
  return out + "\nprogram\n" + field(e, "program") + (field(e, "program").ends_with('\n') ? "" : "\n");
}

Json cacheEntryJson(const CacheEntry &e) {
  Json out{{"file", e.info.fileName}, {"kind", cache::entryKindName(e.entry.kind)}};
  for (const cache::KeyText::Field &f : e.info.key.fields())
    out["key"][f.name] = f.text;
  if (e.entry.kind == cache::EntryKind::Tuned)
    out["values"] = Json::parse(e.entry.payload, nullptr, /*allow_exceptions=*/false);
  else
    out["codeBytes"] = e.entry.payload.size();
  out["metadata"] = metadataOf(e);
  return out;
}

Result<std::vector<std::string>> extractCacheEntry(const CacheEntry &e, const std::string &folder) {
  if (e.entry.kind == cache::EntryKind::Tuned)
    return Status::invalid("the entry '" + e.info.fileName + "' has tuned values and no program",
                           "kiln cache show prints them");
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error)
    return Status(StatusCode::IoError, "cannot make the folder '" + folder + "': " + error.message(),
                  "name another one with -o");
  const std::string name = field(e, "kernel").empty() ? "kernel" : field(e, "kernel");
  if (name.find('/') != std::string::npos)
    return Status::invalid("the entry's kernel has the name '" + name + "', which is no file's");
  Json described = cacheEntryJson(e);
  described["key"].erase("program");
  const std::pair<std::string, std::string> files[] = {
      {name + ".mlir", "// " + commandOf(e, name + ".mlir") + "\n" + field(e, "program")},
      {name + (e.entry.kind == cache::EntryKind::Cubin ? ".cubin" : ".ptx"), e.entry.payload},
      {name + ".json", described.dump(2, ' ', false, Json::error_handler_t::replace) + "\n"}};
  std::vector<std::string> out;
  for (const auto &[file, text] : files) {
    out.push_back(folder + "/" + file);
    KILN_ASSIGN(OutputFile written, OutputFile::create(out.back()));
    KILN_TRY(written.write(std::as_bytes(std::span(text.data(), text.size()))));
    KILN_TRY(written.commit());
  }
  return out;
}

} // namespace kiln::tools
