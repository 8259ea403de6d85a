#include "runtime/cache/SharedFolder.h"

#include "runtime/cache/CacheState.h"
#include "runtime/cache/TrustedFile.h"

#include <fcntl.h>

namespace kiln::cache {
namespace {

class SharedFolder final : public Layer {
public:
  SharedFolder(std::string path, FileLayer &files)
      : path(std::move(path)), shown("'" + this->path + "'"), files(files) {}

  const std::string &name() const override { return shown; }
  bool isRemote() const override { return false; }
  void offer(const KeyText &, const Entry &) override {}

  Result<std::optional<Entry>> lookup(const KeyText &key) override {
    using Out = std::optional<Entry>;
    const std::string text = key.serialise();
    Result<std::string> trusted =
        trustedFile(path + "/" + hexText(hash128(text)) + std::string(entrySuffix), "the shared kernel");
    if (!trusted)
      return trusted.status().code() == StatusCode::NotFound ? Result<Out>(Out()) : Result<Out>(trusted.takeStatus());
    OwnedFile file(files, files.openAt(AT_FDCWD, trusted->c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0));
    if (!file)
      return systemError("read", *trusted, file.get());
    struct stat info;
    if (const int error = files.status(file.get(), info); error < 0)
      return systemError("read", *trusted, error);
    const auto bytes = static_cast<std::uint64_t>(info.st_size);
    if (!S_ISREG(info.st_mode) || bytes > maxEntryFileBytes)
      return Status::invalid("'" + *trusted + "' is no entry of a cache");
    std::string all(bytes, '\0');
    const ssize_t got = file.readAll(all.data(), all.size());
    if (got < 0)
      return systemError("read", *trusted, static_cast<int>(got));
    all.resize(static_cast<std::size_t>(got));
    Result<EntryView> view = decodeEntry(all);
    if (!view)
      return view.takeStatus().withContext("'" + *trusted + "'");
    if (view->keyText != text)
      return Out(); // another key of the same hash
    return Out(Entry{view->kind, std::string(view->payload), std::string(view->metadata)});
  }

private:
  const std::string path, shown;
  FileLayer &files;
};

} // namespace

std::unique_ptr<Layer> sharedFolder(std::string path, FileLayer *files) {
  return std::make_unique<SharedFolder>(std::move(path), files ? *files : systemFileLayer());
}

} // namespace kiln::cache
