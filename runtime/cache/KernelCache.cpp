#include "runtime/cache/KernelCache.h"

#include "runtime/cache/CacheState.h"
#include "runtime/cache/Leftovers.h"
#include "runtime/cache/PrivateDirectory.h"

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <ctime>
#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

namespace kiln::cache {

Result<std::string> defaultCacheDirectory(const std::function<const char *(const char *)> &environment) {
  const auto value = [&](const char *name) {
    const char *text = environment(name);
    return std::string(text ? text : "");
  };
  if (std::string own = value("KILN_CACHE_DIR"); !own.empty())
    return own;
  // The XDG specification: a relative path is to be ignored.
  if (const std::string xdg = value("XDG_CACHE_HOME"); xdg.starts_with('/'))
    return xdg + "/kiln";
  if (const std::string home = value("HOME"); home.starts_with('/'))
    return home + "/.cache/kiln";
  return Status(StatusCode::NotFound,
                "no place for the kernel cache: KILN_CACHE_DIR, XDG_CACHE_HOME and HOME name none",
                "set KILN_CACHE_DIR to a directory of your own");
}

KernelCache::KernelCache(std::unique_ptr<Impl> impl) : impl(std::move(impl)) {}
KernelCache::~KernelCache() = default;

Result<std::unique_ptr<KernelCache>> KernelCache::open(CacheOptions options) {
  FileLayer &files = options.files ? *options.files : systemFileLayer();
  if (options.directory.empty())
    return Status::invalid("the cache directory has no name", "set KILN_CACHE_DIR to a directory of your own");
  if (options.directory[0] != '/') {
    std::string here(4096, '\0');
    if (!::getcwd(here.data(), here.size()))
      return systemError("find the current directory for the cache directory", options.directory, -errno);
    here.resize(here.find('\0'));
    options.directory = here + "/" + options.directory;
  }
  KILN_ASSIGN(OwnedFile directory, openPrivateDirectory(files, options.directory, options.create));
  removeLeftovers(files, directory.get());
  return std::unique_ptr<KernelCache>(
      new KernelCache(std::make_unique<Impl>(std::move(options), files, std::move(directory))));
}

const std::string &KernelCache::directory() const {
  return impl->options.directory;
}

CacheCounters KernelCache::counters() const {
  return {impl->hits,           impl->misses, impl->damaged,       impl->collisions,
          impl->lookupFailures, impl->stores, impl->storeFailures, impl->evicted};
}

//===----------------------------------------------------------------------===//
// The directory
//===----------------------------------------------------------------------===//

Result<KernelCache::Impl::Root> KernelCache::Impl::openRoot() {
  Root out;
  {
    std::lock_guard guard(rootMutex);
    out = root;
  }
  KILN_TRY(checkPrivateDirectory(files, out->get(), options.directory));
  return out;
}

Result<KernelCache::Impl::Root> KernelCache::Impl::reopenRoot(const Root &lost) {
  std::lock_guard guard(rootMutex);
  if (root == lost) {
    KILN_ASSIGN(OwnedFile directory, openPrivateDirectory(files, options.directory, options.create));
    root = std::make_shared<const OwnedFile>(std::move(directory));
  }
  return root;
}

Result<KernelCache::Impl::Pending> KernelCache::Impl::openPendingFolder() {
  KILN_ASSIGN(Root at, openRoot());
  OwnedFile folder = openPending(files, at->get(), true);
  if (folder.get() == -ENOENT || folder.get() == -ESTALE) {
    KILN_ASSIGN(at, reopenRoot(at));
    folder = openPending(files, at->get(), true);
  }
  if (folder.get() == -EPERM)
    return Status(StatusCode::IoError, "'" + entryPath(pendingName) + "' is not private to this process's user",
                  "remove it");
  if (!folder)
    return systemError("use", entryPath(pendingName), folder.get());
  return Pending{std::move(at), std::move(folder)};
}

//===----------------------------------------------------------------------===//
// Lookup
//===----------------------------------------------------------------------===//

Status KernelCache::Impl::load(int directory, const std::string &name, bool whole, Loaded &out) {
  const auto readFailed = [&](ssize_t error) { return systemError("read", entryPath(name), static_cast<int>(error)); };
  // Non-blocking: a named pipe would wait for a writer.
  out.file = OwnedFile(files, files.openAt(directory, name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
  if (out.file.get() == -ELOOP)
    return Status::invalid("it is a symbolic link");
  if (!out.file)
    return readFailed(out.file.get());
  struct stat info;
  if (const int error = files.status(out.file.get(), info); error < 0)
    return readFailed(error);
  if (std::string why = entryFileObjection(info); !why.empty())
    return Status::invalid(std::move(why));
  out.usedNanoseconds = info.st_mtim.tv_sec * 1'000'000'000 + info.st_mtim.tv_nsec;

  // A hit is one read of the whole file, after its size was found to be sane.
  const auto bytes = static_cast<std::uint64_t>(info.st_size);
  std::string &text = out.fileText;
  text.resize(bytes > maxEntryFileBytes ? 0 : whole ? bytes : std::min(bytes, entryHeaderBytes));
  ssize_t got = out.file.readAll(text.data(), text.size());
  if (got < 0)
    return readFailed(got);
  text.resize(static_cast<std::size_t>(got));
  KILN_ASSIGN(const EntryHeader header, decodeEntryHeader(text, bytes));
  if (whole) {
    KILN_ASSIGN(out.view, decodeEntry(text));
    return {};
  }
  const std::uint64_t front = header.keyBytes + header.metadataBytes;
  text.resize(front);
  got = out.file.readAll(text.data(), front);
  if (got < 0)
    return readFailed(got);
  if (static_cast<std::uint64_t>(got) != front)
    return Status::invalid("it is cut short");
  out.view = {header.kind,
              std::string_view(text).substr(0, header.keyBytes),
              std::string_view(text).substr(header.keyBytes),
              {}};
  return {};
}

static std::int64_t nowNanoseconds() {
  timespec now;
  ::clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec * 1'000'000'000 + now.tv_nsec;
}

std::string_view missReasonText(MissReason reason) {
  switch (reason) {
  case MissReason::None:
    return "hit";
  case MissReason::Absent:
    return "no entry of this key";
  case MissReason::Damaged:
    return "the entry is damaged";
  case MissReason::OtherKey:
    return "the entry is of another key with the same hash";
  case MissReason::Failed:
    return "the cache could not be read";
  }
  return "";
}

Result<std::optional<Entry>> KernelCache::lookup(const KeyText &key, MissReason *why) {
  const auto miss = [&](MissReason reason) {
    ++impl->misses;
    if (why)
      *why = reason;
    return std::optional<Entry>();
  };
  const auto failure = [&](Status status) {
    ++impl->lookupFailures;
    (void)miss(MissReason::Failed);
    return status;
  };

  const std::string text = key.serialise();
  const std::string name = hexText(impl->options.hash(text)) + std::string(entrySuffix);
  Result<Impl::Root> root = impl->openRoot();
  if (!root)
    return failure(root.takeStatus());
  Impl::Loaded loaded;
  if (Status status = impl->load((*root)->get(), name, true, loaded); status.code() == StatusCode::NotFound) {
    return miss(MissReason::Absent);
  } else if (status.code() == StatusCode::InvalidArgument) {
    ++impl->damaged;
    return miss(MissReason::Damaged);
  } else if (!status.ok()) {
    return failure(std::move(status));
  }
  if (loaded.view.keyText != text) {
    ++impl->collisions;
    return miss(MissReason::OtherKey);
  }

  // Of a time in the future too: a clock was wrong.
  const std::chrono::nanoseconds idle(std::abs(nowNanoseconds() - loaded.usedNanoseconds));
  if (idle >= impl->options.touchInterval)
    impl->files.touch(loaded.file.get()); // a read-only cache has no order of use
  ++impl->hits;
  if (why)
    *why = MissReason::None;
  return std::optional<Entry>(
      Entry{loaded.view.kind, std::string(loaded.view.payload), std::string(loaded.view.metadata)});
}

//===----------------------------------------------------------------------===//
// Store
//===----------------------------------------------------------------------===//

/// Unique enough for O_EXCL not to fail twice: processes of different hosts and containers may share their numbers.
static std::string temporaryName(const std::string &hex) {
  static std::atomic<std::uint64_t> serial = 0;
  const std::string seed =
      std::to_string(::getpid()) + " " + std::to_string(++serial) + " " + std::to_string(nowNanoseconds());
  return hex + "." + hexText(hash128(seed)) + std::string(temporarySuffix);
}

Status KernelCache::Impl::storeOnce(const std::string &hex, const std::string &encoded, bool &lost) {
  KILN_ASSIGN(const Pending pending, openPendingFolder());
  const std::string temporary = temporaryName(hex), name = hex + std::string(entrySuffix);
  OwnedFile file(files, files.openAt(pending.folder.get(), temporary.c_str(),
                                     O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) {
    lost = file.get() == -ENOENT || file.get() == -ESTALE || file.get() == -EEXIST;
    return systemError("create a file in", entryPath(pendingName), file.get());
  }
  const auto giveUp = [&](const char *what, int error) {
    lost = error == -ENOENT || error == -ESTALE;
    files.unlinkAt(pending.folder.get(), temporary.c_str());
    return systemError(what, entryPath(name), error);
  };
  // So that no one takes it for a leftover.  Where there are no locks its age says so; if someone else has it, it goes.
  if (files.lock(file.get(), LOCK_EX | LOCK_NB) == -EWOULDBLOCK)
    return giveUp("lock a file for", -ESTALE);
  if (const int error = file.writeAll(encoded); error < 0)
    return giveUp("write", error);
  // No fsync: after a power cut the checksum tells, and the kernel is compiled again.
  if (const int error = files.renameAt(pending.folder.get(), temporary.c_str(), pending.root->get(), name.c_str());
      error < 0)
    return giveUp("store", error);
  // Some file systems report a full disk only now.
  if (const int error = file.close(); error < 0) {
    files.unlinkAt(pending.root->get(), name.c_str());
    return systemError("write", entryPath(name), error);
  }
  return {};
}

Status KernelCache::Impl::storeCounted(const KeyText &key, const Entry &entry) {
  const std::string text = key.serialise();
  const std::string encoded = encodeEntry(text, entry);
  if (encoded.size() > maxEntryFileBytes)
    return Status::invalid("the kernel has " + std::to_string(encoded.size()) + " bytes, the cache takes at most " +
                           std::to_string(maxEntryFileBytes));
  if (options.maxBytes && encoded.size() > options.maxBytes)
    return Status::invalid("the kernel has " + std::to_string(encoded.size()) + " bytes, the whole cache at most " +
                               std::to_string(options.maxBytes),
                           "raise the size cap of the cache");
  const Hash128 hash = options.hash(text);
  const std::string hex = hexText(hash);
  bool lost = false;
  Status status = storeOnce(hex, encoded, lost);
  if (!status.ok() && lost)
    status = storeOnce(hex, encoded, lost);
  KILN_TRY(std::move(status));
  limitSize(hash, encoded.size(), hex + std::string(entrySuffix));
  return {};
}

Status KernelCache::store(const KeyText &key, const Entry &entry) {
  Status status = impl->storeCounted(key, entry);
  ++(status.ok() ? impl->stores : impl->storeFailures);
  return status;
}

} // namespace kiln::cache
