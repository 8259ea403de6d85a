#include "runtime/cache/Pack.h"

#include "runtime/cache/LittleEndian.h"
#include "runtime/cache/OwnedFile.h"
#include "runtime/cache/TrustedFile.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <vector>

namespace kiln::cache {
namespace {

constexpr std::string_view magic("\x89KPAK\r\n\x1a", 8);
constexpr std::uint32_t formatVersion = 1;
constexpr std::uint64_t headerBytes = 16, rowBytes = 32, checksumBytes = 16;
/// More are no pack: bounds what opening one allocates.
constexpr std::uint64_t mostEntries = std::uint64_t(1) << 20;

struct Row {
  std::uint64_t low = 0, high = 0, offset = 0, bytes = 0;
  std::pair<std::uint64_t, std::uint64_t> hash() const { return {low, high}; }
};

class Pack final : public Layer {
public:
  Pack(std::string path, FileLayer &files) : path(std::move(path)), shown("'" + this->path + "'"), files(files) {}

  const std::string &name() const override { return shown; }
  bool isRemote() const override { return false; }
  void offer(const KeyText &, const Entry &) override {}

  Result<std::optional<Entry>> lookup(const KeyText &key) override {
    using Out = std::optional<Entry>;
    {
      const std::lock_guard lock(mutex);
      if (!file)
        if (Status s = open(); !s.ok())
          return s.code() == StatusCode::NotFound ? Result<Out>(Out()) : Result<Out>(std::move(s));
    }
    // What was opened stays as it is: no lock.
    const KeyText wanted = packKey(key);
    const Hash128 hash = hash128(wanted.serialise());
    const std::pair sought(hash.low, hash.high);
    for (auto row = std::lower_bound(rows.begin(), rows.end(), sought,
                                     [](const Row &r, const auto &h) { return r.hash() < h; });
         row != rows.end() && row->hash() == sought; ++row) {
      std::string bytes(row->bytes, '\0');
      KILN_TRY(read(bytes, row->offset));
      Result<EntryView> view = decodeEntry(bytes);
      if (!view)
        return view.takeStatus().withContext("an entry of the pack " + shown);
      const std::optional<KeyText> its = KeyText::parse(view->keyText);
      if (its && packKey(*its) == wanted)
        return Out(Entry{view->kind, std::string(view->payload), std::string(view->metadata)});
    }
    return Out();
  }

private:
  Status damaged(const std::string &why) const {
    return Status::invalid("the pack " + shown + " is damaged: " + why, "copy it again, or make it anew (kiln pack)");
  }

  /// All of it.
  Status read(std::string &into, std::uint64_t offset) const {
    for (std::size_t done = 0; done < into.size();) {
      const ssize_t got =
          files.readAt(file.get(), into.data() + done, into.size() - done, static_cast<std::int64_t>(offset + done));
      if (got < 0)
        return systemError("read", path, static_cast<int>(got));
      if (got == 0)
        return damaged("it ends before its entries do");
      done += static_cast<std::size_t>(got);
    }
    return {};
  }

  Status open() {
    KILN_ASSIGN(OpenedFile opened, openTrusted(files, path, "the pack"));
    if (!opened.isRegular)
      return damaged("it is no file");
    file = std::move(opened.file);
    if (Status s = readIndex(opened.bytes); !s.ok()) {
      file = OwnedFile();
      rows.clear();
      return s;
    }
    return {};
  }

  Status readIndex(std::uint64_t size) {
    if (size < headerBytes + checksumBytes)
      return damaged("it has " + std::to_string(size) + " bytes");
    std::string head(headerBytes, '\0');
    KILN_TRY(read(head, 0));
    if (head.substr(0, magic.size()) != magic)
      return damaged("it does not begin like a pack");
    if (const std::uint64_t version = number(head, 8, 4); version != formatVersion)
      return Status::invalid("the pack " + shown + " has format version " + std::to_string(version) +
                                 ", this program reads version " + std::to_string(formatVersion),
                             "make it anew with this version (kiln pack)");
    const std::uint64_t count = number(head, 12, 4), indexBytes = headerBytes + count * rowBytes;
    if (count > mostEntries || indexBytes + checksumBytes > size)
      return damaged("it has no room for its " + std::to_string(count) + " entries");
    std::string index(indexBytes + checksumBytes, '\0');
    KILN_TRY(read(index, 0));
    if (hash128(std::string_view(index).substr(0, indexBytes)) != hashAt(index, indexBytes))
      return damaged("the checksum of its index is wrong");
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t at = headerBytes + i * rowBytes;
      const Row row{number(index, at, 8), number(index, at + 8, 8), number(index, at + 16, 8),
                    number(index, at + 24, 8)};
      if (row.bytes > maxEntryFileBytes || row.offset > size || row.bytes > size - row.offset)
        return damaged("an entry lies outside of it");
      if (!rows.empty() && row.hash() < rows.back().hash())
        return damaged("its entries are out of order");
      rows.push_back(row);
    }
    return {};
  }

  const std::string path, shown;
  FileLayer &files;
  std::mutex mutex;      ///< of opening
  OwnedFile file;        ///< once it was opened
  std::vector<Row> rows; ///< then constant
};

} // namespace

KeyText packKey(const KeyText &key) {
  KeyText out;
  for (const KeyText::Field &f : key.fields())
    if (f.name != "assembler")
      out.set(f.name, f.text);
  return out;
}

std::string encodePack(std::span<const std::pair<KeyText, Entry>> entries) {
  std::map<std::string, std::size_t> first; // by pack key
  for (std::size_t i = 0; i < entries.size(); ++i)
    first.emplace(packKey(entries[i].first).serialise(), i);
  struct Placed {
    Row row;
    std::size_t entry;
  };
  std::vector<Placed> all;
  for (const auto &[key, i] : first) {
    const Hash128 hash = hash128(key);
    all.push_back({{hash.low, hash.high}, i});
  }
  std::sort(all.begin(), all.end(), [](const Placed &a, const Placed &b) { return a.row.hash() < b.row.hash(); });
  std::string data, index(magic);
  append(index, formatVersion, 4);
  append(index, all.size(), 4);
  const std::uint64_t begin = headerBytes + all.size() * rowBytes + checksumBytes;
  for (Placed &p : all) {
    const std::string bytes = encodeEntry(entries[p.entry].first.serialise(), entries[p.entry].second);
    p.row.offset = begin + data.size(), p.row.bytes = bytes.size();
    data += bytes;
    for (const std::uint64_t value : {p.row.low, p.row.high, p.row.offset, p.row.bytes})
      append(index, value, 8);
  }
  append(index, hash128(index));
  return index + data;
}

std::unique_ptr<Layer> packLayer(std::string path, FileLayer *files) {
  return std::make_unique<Pack>(std::move(path), files ? *files : systemFileLayer());
}

} // namespace kiln::cache
