#include "runtime/cache/SharedFolder.h"

#include "runtime/cache/CacheState.h"
#include "runtime/cache/TrustedFile.h"

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
    Result<OpenedFile> opened =
        openTrusted(files, path + "/" + hexText(hash128(text)) + std::string(entrySuffix), "the shared kernel");
    if (!opened)
      return opened.status().code() == StatusCode::NotFound ? Result<Out>(Out()) : Result<Out>(opened.takeStatus());
    if (!opened->isRegular || opened->bytes > maxEntryFileBytes)
      return Status::invalid("'" + opened->path + "' is no entry of a cache");
    std::string all(opened->bytes, '\0');
    const ssize_t got = opened->file.readAll(all.data(), all.size());
    if (got < 0)
      return systemError("read", opened->path, static_cast<int>(got));
    all.resize(static_cast<std::size_t>(got));
    Result<EntryView> view = decodeEntry(all);
    if (!view)
      return view.takeStatus().withContext("'" + opened->path + "'");
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
