#include "runtime/cache/CacheState.h"
#include "runtime/cache/KernelCache.h"
#include "runtime/cache/Leftovers.h"
#include "runtime/cache/PrivateDirectory.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <tuple>

namespace kiln::cache {

static bool isEntryName(std::string_view name) {
  return name.size() == 32 + entrySuffix.size() && name.ends_with(entrySuffix) &&
         name.find_first_not_of("0123456789abcdef") == 32;
}

Result<std::vector<EntryFile>> KernelCache::Impl::scan(int directory) {
  std::vector<std::string> names;
  if (const int error = files.list(directory, names); error < 0)
    return systemError("list", options.directory, error);
  std::vector<EntryFile> out;
  for (std::string &name : names) {
    struct stat info;
    // One that another process has removed by now is none.
    if (isEntryName(name) && files.statusAt(directory, name.c_str(), info) == 0)
      out.push_back({std::move(name), static_cast<std::uint64_t>(info.st_size),
                     info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec});
  }
  std::sort(out.begin(), out.end(), [](const EntryFile &a, const EntryFile &b) {
    return std::tie(a.usedNanoseconds, a.name) < std::tie(b.usedNanoseconds, b.name);
  });
  return out;
}

void KernelCache::Impl::limitSize(const Hash128 &hash, std::uint64_t stored, const std::string &newest) {
  if (!options.maxBytes)
    return;
  {
    // Measuring costs a call an entry.  Entries above a thousandth of the cap are few, so each one that is stored
    // pays for it.  Smaller ones: a process measures after every 32nd part of the cap; of the many short processes that
    // store one kernel only one in sixteen does.  So the cap is exceeded by less than a twentieth.
    std::lock_guard guard(sizeMutex);
    storedSinceScan += stored;
    if (stored <= options.maxBytes / 1000 && storedSinceScan <= options.maxBytes / 32 && hash.low % 16 != 0)
      return;
    storedSinceScan = 0;
  }
  const Result<Root> at = openRoot();
  if (!at)
    return;
  removeLeftovers(files, (*at)->get());
  const Result<std::vector<EntryFile>> all = scan((*at)->get());
  if (!all)
    return;
  std::uint64_t total = 0;
  for (const EntryFile &f : *all)
    total += f.bytes;
  if (total <= options.maxBytes)
    return;
  // A tenth more than needed, or the next store would have to do it again.
  const std::uint64_t goal = options.maxBytes - options.maxBytes / 10;
  for (const EntryFile &f : *all) {
    if (total <= goal)
      break;
    if (f.name == newest)
      continue;
    const int error = files.unlinkAt((*at)->get(), f.name.c_str());
    if (error == 0)
      ++evicted;
    if (error == 0 || error == -ENOENT) // another process was faster
      total -= f.bytes;
  }
}

static std::chrono::seconds timeSince(std::int64_t nanoseconds) {
  const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
  const std::chrono::nanoseconds passed = now - std::chrono::nanoseconds(nanoseconds);
  return std::chrono::duration_cast<std::chrono::seconds>(std::max(passed, std::chrono::nanoseconds(0)));
}

static std::chrono::seconds idleTime(const EntryFile &file) {
  return timeSince(file.usedNanoseconds);
}

std::optional<EntryInfo> KernelCache::Impl::inspect(int directory, const EntryFile &file, bool whole) {
  EntryInfo out;
  out.fileName = file.name;
  out.bytes = file.bytes;
  out.idle = idleTime(file);
  if (std::int64_t born = 0; files.bornAt(directory, file.name.c_str(), born) == 0)
    out.age = timeSince(born);
  Loaded loaded;
  if (const Status status = load(directory, file.name, whole, loaded); !status.ok()) {
    if (status.code() == StatusCode::NotFound)
      return std::nullopt;
    out.damage = status.message();
    out.unreadable = status.code() != StatusCode::InvalidArgument;
    return out;
  }
  out.kind = loaded.view.kind;
  out.metadata = loaded.view.metadata;
  if (std::optional<KeyText> key = KeyText::parse(loaded.view.keyText))
    out.key = std::move(*key);
  else
    out.damage = "its key text is malformed";
  if (out.damage.empty() && hexText(options.hash(loaded.view.keyText)) + std::string(entrySuffix) != file.name)
    out.damage = "its name is not the one of its key";
  return out;
}

Result<std::vector<EntryInfo>> KernelCache::Impl::inspectAll(bool whole) {
  KILN_ASSIGN(const Root at, openRoot());
  KILN_ASSIGN(const std::vector<EntryFile> all, scan(at->get()));
  std::vector<EntryInfo> out;
  for (auto f = all.rbegin(); f != all.rend(); ++f)
    if (std::optional<EntryInfo> info = inspect(at->get(), *f, whole))
      out.push_back(std::move(*info));
  return out;
}

Result<std::vector<EntryInfo>> KernelCache::list() {
  return impl->inspectAll(false);
}

Result<std::vector<EntryInfo>> KernelCache::verify() {
  return impl->inspectAll(true);
}

Result<PruneReport> KernelCache::prune(const PruneOptions &options) {
  KILN_ASSIGN(const Impl::Root at, impl->openRoot());
  PruneReport report;
  report.leftovers = removeLeftovers(impl->files, at->get());
  KILN_ASSIGN(const std::vector<EntryFile> all, impl->scan(at->get()));
  for (const EntryFile &f : all)
    report.keptBytes += f.bytes;
  report.kept = all.size();
  // The least recently used come first, so what is left shrinks from that end.
  for (const EntryFile &f : all) {
    bool remove = options.all || (options.maxBytes && report.keptBytes > *options.maxBytes) ||
                  (options.maxIdle && idleTime(f) > *options.maxIdle);
    if (!remove && options.damaged) {
      const std::optional<EntryInfo> info = impl->inspect(at->get(), f, true);
      remove = info && !info->damage.empty() && !info->unreadable;
    }
    if (!remove)
      continue;
    const int error = impl->files.unlinkAt(at->get(), f.name.c_str());
    if (error < 0 && error != -ENOENT) {
      report.failures.push_back(systemError("remove", impl->entryPath(f.name), error).message());
      continue;
    }
    if (error == 0) {
      ++report.removed;
      report.removedBytes += f.bytes;
    }
    --report.kept;
    report.keptBytes -= f.bytes;
  }
  return report;
}

} // namespace kiln::cache
