// `kiln cache`: what the kernel cache on disk holds, whether it is sound, and how to make it smaller.
#include "kiln/Knobs.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/tools/CacheEntry.h"
#include "runtime/tools/Commands.h"
#include "runtime/tools/Report.h"
#include "runtime/tools/TextKernel.h"
#include "support/ParseNumber.h"
#include "support/Text.h"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <map>

namespace kiln::tools {
namespace {

using cache::EntryInfo;
using cache::KernelCache;

struct Options {
  std::string action = "list", entry, output, folder, maxSize, maxIdle;
  bool damaged = false, json = false;
};

/// Folders of the cache that hold no kernels: what files hold (runtime/jit), what text kernels are.
constexpr const char *sideFolders[] = {"identities", descriptionsFolder};

std::string sizeText(std::uint64_t bytes) {
  const auto value = static_cast<double>(bytes);
  return bytes < 1u << 10   ? std::to_string(bytes) + " B"
         : bytes < 1u << 20 ? format("%.1f KiB", value / (1u << 10))
         : bytes < 1u << 30 ? format("%.1f MiB", value / (1u << 20))
                            : format("%.2f GiB", value / (1u << 30));
}

std::string timeText(std::chrono::seconds time) {
  const long long s = time.count();
  return s < 120      ? std::to_string(s) + " s"
         : s < 7200   ? std::to_string(s / 60) + " min"
         : s < 172800 ? std::to_string(s / 3600) + " h"
                      : std::to_string(s / 86400) + " d";
}

std::string field(const EntryInfo &e, std::string_view name) {
  const std::string *text = e.key.find(name);
  return text ? *text : "?";
}

/// The kernel, or the operation whose tuned values it has.
std::string nameOf(const EntryInfo &e) {
  return e.kind == cache::EntryKind::Tuned ? field(e, "operation") + " (tuned)" : field(e, "kernel");
}

/// What tells two entries of one kernel apart.
std::string configuration(const EntryInfo &e) {
  const std::string *settings = e.key.find("configuration");
  return settings && !settings->empty() ? *settings : "-";
}

/// "30m", "12h", "7d", "90s".
Result<std::chrono::seconds> parseTime(const std::string &text) {
  const std::size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  const std::optional<std::int64_t> value = parseNumber<std::int64_t>(std::string_view(text).substr(0, digits));
  const std::string unit = text.substr(digits);
  const std::int64_t scale = unit == "s" ? 1 : unit == "m" ? 60 : unit == "h" ? 3600 : unit == "d" ? 86400 : 0;
  constexpr std::int64_t mostDays = 36500;
  if (!value || !scale || *value > mostDays * 86400 / scale)
    return Status::invalid("--max-idle " + text + ": expected a time", "write it as 90s, 30m, 12h or 7d");
  return std::chrono::seconds(*value * scale);
}

class CacheCommand {
public:
  explicit CacheCommand(const Options &options) : o(options) {}

  int operator()() {
    Result<int> status = run();
    if (!status)
      return fail("cache", status.status(), o.json, std::move(report));
    report["status"] = *status;
    if (o.json)
      printJson(report);
    return *status;
  }

private:
  Result<int> run() {
    if (o.action != "prune" && (!o.maxSize.empty() || !o.maxIdle.empty() || o.damaged))
      return Status::invalid(
          "--max-size, --max-idle and --damaged are options of kiln cache prune, not of kiln cache " + o.action);
    const bool ofOne = o.action == "show" || o.action == "extract" || o.action == "why";
    if (ofOne == o.entry.empty())
      return Status::invalid(ofOne ? "kiln cache " + o.action + " needs the name of an entry"
                                   : "kiln cache " + o.action + " takes no entry: " + o.entry,
                             "kiln cache list names the entries; show, why and extract take one");
    if ((o.action == "extract") == o.output.empty())
      return Status::invalid("-o FOLDER is where kiln cache extract writes, and an option of that alone");
    KILN_ASSIGN(const Knobs knobs, Knobs::fromEnvironment());
    limit = knobs.cacheMaxBytes;
    if (!o.maxSize.empty()) {
      Knobs parsed;
      if (Status s = parsed.set("KILN_CACHE_MAX_BYTES", o.maxSize); !s.ok())
        return Status::invalid("--max-size '" + o.maxSize + "' is no number of bytes",
                               "use a number, or one with K, M or G");
      limit = parsed.cacheMaxBytes;
    }
    folder = o.folder;
    if (folder.empty()) {
      KILN_ASSIGN(folder, cacheDirectory(knobs));
    }
    if (folder.empty())
      return Status::invalid("the kernel cache is switched off (KILN_CACHE_DIR=off)", "name a folder with --cache-dir");
    KILN_ASSIGN(const std::unique_ptr<KernelCache> kernels, open(folder));
    if (!kernels && !o.folder.empty())
      return Status(StatusCode::NotFound, "there is no folder '" + folder + "'", "name the cache's folder");
    report["folder"] = kernels ? kernels->directory() : folder;
    report["exists"] = kernels != nullptr;
    if (!kernels) {
      if (!o.json)
        std::printf("%s: no kernel was cached yet\n", folder.c_str());
      return 0;
    }
    folder = kernels->directory();
    if (ofOne)
      return one(*kernels);
    return o.action == "list"     ? list(*kernels)
           : o.action == "stats"  ? stats(*kernels)
           : o.action == "verify" ? verify(*kernels)
                                  : shrink(*kernels);
  }

  /// Null if there is none.
  static Result<std::unique_ptr<KernelCache>> open(const std::string &path) {
    cache::CacheOptions how;
    how.directory = path;
    how.create = false;
    Result<std::unique_ptr<KernelCache>> opened = KernelCache::open(std::move(how));
    if (!opened && opened.status().code() == StatusCode::NotFound)
      return std::unique_ptr<KernelCache>();
    return opened;
  }

  static Json describe(const EntryInfo &e) {
    Json out{{"file", e.fileName}, {"bytes", e.bytes}, {"idleSeconds", e.idle.count()}};
    if (e.age)
      out["ageSeconds"] = e.age->count();
    if (!e.damage.empty()) {
      out[e.unreadable ? "unreadable" : "damage"] = e.damage;
      return out;
    }
    out["kind"] = cache::entryKindName(e.kind);
    for (const cache::KeyText::Field &f : e.key.fields())
      if (f.name != "program")
        out["key"][f.name] = f.text;
    return out;
  }

  Result<int> list(KernelCache &kernels) {
    KILN_ASSIGN(const std::vector<EntryInfo> all, kernels.list());
    report["entries"] = Json::array();
    std::vector<std::vector<std::string>> rows{
        {"kernel", "target", "assembled", "size", "age", "last use", "configuration", "file"}};
    std::uint64_t bytes = 0;
    for (const EntryInfo &e : all) {
      bytes += e.bytes;
      report["entries"].push_back(describe(e));
      const std::string age = e.age ? timeText(*e.age) : "unknown";
      if (e.damage.empty())
        rows.push_back({nameOf(e), field(e, "code target"),
                        e.kind == cache::EntryKind::Cubin   ? field(e, "assembly arch")
                        : e.kind == cache::EntryKind::Tuned ? "-"
                                                            : "no (PTX)",
                        sizeText(e.bytes), age, timeText(e.idle), configuration(e), e.fileName});
      else
        rows.push_back(
            {"(not used: " + e.damage + ")", "", "", sizeText(e.bytes), age, timeText(e.idle), "", e.fileName});
    }
    report["bytes"] = bytes;
    if (o.json)
      return 0;
    if (!all.empty())
      printTable(rows);
    std::printf("%zu entr%s, %s, in %s\n", all.size(), all.size() == 1 ? "y" : "ies", sizeText(bytes).c_str(),
                folder.c_str());
    return 0;
  }

  /// show, why and extract.
  Result<int> one(KernelCache &kernels) {
    KILN_ASSIGN(const CacheEntry entry, findCacheEntry(kernels, o.entry));
    if (o.action == "show") {
      report["entry"] = cacheEntryJson(entry);
      if (!o.json)
        std::fputs(describeCacheEntry(entry).c_str(), stdout);
      return 0;
    }
    if (o.action == "why")
      return why(kernels, entry);
    KILN_ASSIGN(const std::vector<std::string> files, extractCacheEntry(entry, o.output));
    report["files"] = files;
    for (const std::string &file : files)
      if (!o.json)
        std::printf("%s\n", file.c_str());
    return 0;
  }

  /// What its key has that no other entry's has: so it had to be compiled.
  Result<int> why(KernelCache &kernels, const CacheEntry &entry) {
    KILN_ASSIGN(const cache::Explanation e, kernels.nearest(entry.info.key));
    Json differences = Json::array();
    for (const cache::FieldDifference &d : e.differences)
      differences.push_back({{"field", d.field}, {"text", d.text}});
    report["entry"] = entry.info.fileName;
    report["nearest"] = e.nearest;
    report["equalFields"] = e.equalFields;
    report["totalFields"] = e.totalFields;
    report["differences"] = std::move(differences);
    if (!o.json)
      std::fputs(e.nearest.empty() ? "no other entry has anything in common with it\n" : e.differencesText().c_str(),
                 stdout);
    return 0;
  }

  Result<int> stats(KernelCache &kernels) {
    KILN_ASSIGN(const std::vector<EntryInfo> all, kernels.list());
    struct Group {
      std::uint64_t entries = 0, bytes = 0;
    };
    std::map<std::string, Group> byKernel, byTarget;
    Group total, bad;
    std::chrono::seconds longest{0};
    const auto add = [](Group &group, const EntryInfo &e) {
      ++group.entries;
      group.bytes += e.bytes;
    };
    for (const EntryInfo &e : all) {
      add(total, e);
      longest = std::max(longest, e.idle);
      if (!e.damage.empty()) {
        add(bad, e);
        continue;
      }
      add(byKernel[nameOf(e)], e);
      add(byTarget[field(e, "code target")], e);
    }
    report["entries"] = total.entries;
    report["bytes"] = total.bytes;
    report["maxBytes"] = limit;
    report["notUsed"] = bad.entries;
    report["longestIdleSeconds"] = longest.count();
    std::vector<std::vector<std::string>> rows{{"", "entries", "size"}};
    for (const auto &[name, groups] : {std::pair("kernels", &byKernel), std::pair("targets", &byTarget)}) {
      report[name] = Json::object();
      for (const auto &[key, group] : *groups) {
        report[name][key] = {{"entries", group.entries}, {"bytes", group.bytes}};
        rows.push_back({key, std::to_string(group.entries), sizeText(group.bytes)});
      }
    }
    if (o.json)
      return 0;
    std::printf("%s\n%llu entries, %s of at most %s; unused for at most %s\n", folder.c_str(),
                static_cast<unsigned long long>(total.entries), sizeText(total.bytes).c_str(),
                limit ? sizeText(limit).c_str() : "any size", timeText(longest).c_str());
    if (bad.entries)
      std::printf("%llu of them are not used: kiln cache verify says why\n",
                  static_cast<unsigned long long>(bad.entries));
    if (rows.size() > 1)
      printTable(rows);
    return 0;
  }

  Result<int> verify(KernelCache &kernels) {
    KILN_ASSIGN(const std::vector<EntryInfo> all, kernels.verify());
    report["entries"] = all.size();
    report["damaged"] = Json::array();
    std::size_t bad = 0;
    for (const EntryInfo &e : all) {
      if (e.damage.empty())
        continue;
      ++bad;
      report["damaged"].push_back(describe(e));
      if (!o.json)
        std::printf("%s/%s: %s%s\n", folder.c_str(), e.fileName.c_str(), e.unreadable ? "cannot be read: " : "",
                    e.damage.c_str());
    }
    if (!o.json)
      std::printf("%zu of %zu entries are good%s\n", all.size() - bad, all.size(),
                  bad ? "; the others are never used; kiln cache prune --damaged removes those that are damaged" : "");
    return bad ? 1 : 0;
  }

  /// clear and prune.
  Result<int> shrink(KernelCache &kernels) {
    cache::PruneOptions how;
    how.all = o.action == "clear";
    how.damaged = o.damaged;
    if (!o.maxIdle.empty()) {
      KILN_ASSIGN(how.maxIdle, parseTime(o.maxIdle));
    }
    // A limit of 0 is no limit in the knob; as an option it says what it says.
    if (!how.all && (!o.maxSize.empty() || (limit && !o.damaged && o.maxIdle.empty())))
      how.maxBytes = limit;
    KILN_ASSIGN(cache::PruneReport done, kernels.prune(how));
    if (how.all)
      for (const char *name : sideFolders) {
        KILN_ASSIGN(const std::unique_ptr<KernelCache> side, open(folder + "/" + name));
        if (!side)
          continue;
        KILN_ASSIGN(const cache::PruneReport more, side->prune(how));
        done.leftovers += more.leftovers;
        done.failures.insert(done.failures.end(), more.failures.begin(), more.failures.end());
      }
    report["removed"] = done.removed;
    report["removedBytes"] = done.removedBytes;
    report["kept"] = done.kept;
    report["keptBytes"] = done.keptBytes;
    report["leftovers"] = done.leftovers;
    report["failures"] = done.failures;
    if (!o.json)
      std::printf("%llu entr%s removed (%s), %llu kept (%s), in %s\n", static_cast<unsigned long long>(done.removed),
                  done.removed == 1 ? "y" : "ies", sizeText(done.removedBytes).c_str(),
                  static_cast<unsigned long long>(done.kept), sizeText(done.keptBytes).c_str(), folder.c_str());
    if (!done.failures.empty())
      return Status(StatusCode::IoError, join(done.failures, "; "), "see who owns the folder and its files");
    return 0;
  }

  const Options &o;
  std::string folder;
  std::uint64_t limit = 0;
  Json report = Json::object();
};

} // namespace

void addCacheCommand(CLI::App &app, int &exitStatus) {
  auto o = std::make_shared<Options>();
  CLI::App *c = app.add_subcommand("cache", "List, check, empty or shrink the cache of compiled kernels");
  c->add_option("action", o->action,
                "list (default): every entry; show ENTRY: its program, key, resources and times; extract ENTRY -o "
                "FOLDER: the same "
                "and its code as files; why ENTRY: what its key has that the nearest other entry has not, so that it "
                "was compiled; "
                "stats: sums; verify: read every entry whole; clear: remove all; prune: "
                "remove those used least recently")
      ->type_name("ACTION")
      ->check(CLI::IsMember({"list", "show", "why", "extract", "stats", "verify", "clear", "prune"}));
  c->add_option("entry", o->entry, "show, why, extract: the entry's file as list names it, or its first letters")
      ->type_name("ENTRY");
  c->add_option("-o,--output", o->output, "extract: the folder to write to")->type_name("FOLDER");
  c->add_option("--max-size", o->maxSize,
                "prune: until no more is left; a number of bytes, or with K, M, G (default: "
                "the setting KILN_CACHE_MAX_BYTES)")
      ->type_name("SIZE");
  c->add_option("--max-idle", o->maxIdle, "prune: entries not used for longer: 90s, 30m, 12h, 7d")->type_name("TIME");
  c->add_flag("--damaged", o->damaged, "prune: the damaged entries");
  c->add_option("--cache-dir", o->folder, "the cache's folder (default: the one that kernels use; docs/knobs.md)")
      ->type_name("FOLDER");
  c->add_flag("--json", o->json, "one JSON object on standard output");
  c->footer("Only what the cache itself wrote is ever removed; other files in the folder stay.\n"
            "Examples:\n"
            "  kiln cache\n"
            "  kiln cache stats --json\n"
            "  kiln cache why 3f9a\n"
            "  kiln cache verify\n"
            "  kiln cache prune --max-size 100M --max-idle 30d\n"
            "  kiln cache clear\n"
            "Exit status: 0 good, 1 verify found entries that are not used, 2 input: a folder that is not private, a "
            "file that cannot be removed.");
  c->callback([o, &exitStatus] { exitStatus = CacheCommand(*o)(); });
}

} // namespace kiln::tools
