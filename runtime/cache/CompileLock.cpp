#include "runtime/cache/CompileLock.h"

#include "runtime/cache/CacheState.h"
#include "runtime/cache/Leftovers.h"

#include <algorithm>
#include <cerrno>
#include <fcntl.h>
#include <sys/file.h>
#include <thread>
#include <unistd.h>

namespace kiln::cache {

class CompileLock::Held {
public:
  Held(FileLayer &files, OwnedFile folder, OwnedFile file, std::string name)
      : files(files), folder(std::move(folder)), file(std::move(file)), name(std::move(name)) {}

  // The name goes while the lock is still held: whoever waits for this file then finds that it has no name any more,
  // and takes the lock of the next one.  Unlocked explicitly: a forked child may still have the file open.
  ~Held() {
    if (::getpid() != owner)
      return;
    files.unlinkAt(folder.get(), name.c_str());
    files.lock(file.get(), LOCK_UN);
  }

private:
  FileLayer &files;
  OwnedFile folder, file;
  std::string name;
  pid_t owner = ::getpid();
};

CompileLock::CompileLock(std::unique_ptr<Held> held, bool waited) : held(std::move(held)), hadToWait(waited) {}
CompileLock::CompileLock(CompileLock &&) noexcept = default;
CompileLock &CompileLock::operator=(CompileLock &&) noexcept = default;
CompileLock::~CompileLock() = default;

void CompileLock::release() {
  held.reset();
}

Result<CompileLock> KernelCache::lockForCompile(const KeyText &key, std::chrono::milliseconds patience) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point start = Clock::now();
  FileLayer &files = impl->files;
  const std::string name = hexText(impl->options.hash(key.serialise())) + std::string(lockSuffix);
  const std::string path = impl->entryPath(std::string(pendingName) + "/" + name);

  bool waited = false;
  std::chrono::milliseconds pause(1);
  for (int attempt = 0;; ++attempt) {
    KILN_ASSIGN(Impl::Pending pending, impl->openPendingFolder());
    OwnedFile file(files, files.openAt(pending.folder.get(), name.c_str(),
                                       O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
    if (!file && file.get() != -ENOENT)
      return systemError("open the lock", path, file.get());
    // flock(2) has no deadline, so ask again and again, ever more rarely.
    while (file) {
      const int locked = files.lock(file.get(), LOCK_EX | LOCK_NB);
      if (locked < 0 && locked != -EWOULDBLOCK)
        return systemError("lock", path, locked);
      if (locked == 0)
        break;
      waited = true;
      if (Clock::now() - start >= patience)
        return Status(StatusCode::IoError, "another process has held '" + path + "' for " +
                                               std::to_string(patience.count()) + " ms: it still compiles this kernel");
      std::this_thread::sleep_for(pause);
      pause = std::min(pause * 2, std::chrono::milliseconds(16));
    }
    if (file && namesFile(files, pending.folder.get(), name.c_str(), file.get()))
      return CompileLock(std::make_unique<CompileLock::Held>(files, std::move(pending.folder), std::move(file), name),
                         waited);
    // Its last holder removed it: there is a new one, or none.
    if (attempt >= 8 && Clock::now() - start >= patience)
      return Status(StatusCode::IoError,
                    "cannot keep hold of '" + path + "' for " + std::to_string(patience.count()) + " ms");
  }
}

} // namespace kiln::cache
