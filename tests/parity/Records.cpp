//===- Records.cpp --------------------------------------------------------===//
#include "tests/parity/Records.h"

#include "support/Text.h"
#include "tests/parity/Generator.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln::parity {

namespace {

constexpr char magic[] = "KILNPAR1";
constexpr std::size_t rawExact = 128, rawApproximate = 8192, rawRandom = 2048;

std::uint64_t hashBlock(const Form &form, const Columns &results, HashedBlock block) {
  std::uint64_t hash = 0xcbf29ce484222325;
  for (std::size_t k = 0; k < results.size(); ++k)
    for (std::size_t i = block.first; i < block.first + block.count; ++i) {
      std::uint64_t bits = normalised(form, k, results[k][i]);
      hash = hashBytes(&bits, sizeof bits, hash);
    }
  return hash;
}

struct Writer {
  std::string bytes;
  void number(std::uint64_t v, unsigned size) {
    for (unsigned i = 0; i < size; ++i)
      bytes += char(v >> (8 * i));
  }
  void text(const std::string &s) {
    number(s.size(), 2);
    bytes += s;
  }
};

struct Reader {
  std::string_view bytes;
  bool bad = false;
  std::uint64_t number(unsigned size) {
    if (bytes.size() < size) {
      bad = true;
      return 0;
    }
    std::uint64_t v = 0;
    for (unsigned i = 0; i < size; ++i)
      v |= std::uint64_t(static_cast<unsigned char>(bytes[i])) << (8 * i);
    bytes.remove_prefix(size);
    return v;
  }
  std::string text() {
    std::size_t size = number(2);
    if (bytes.size() < size) {
      bad = true;
      return {};
    }
    std::string s(bytes.substr(0, size));
    bytes.remove_prefix(size);
    return s;
  }
};

} // namespace

std::vector<HashedBlock> hashedBlocks(const Form &form, const Cases &cases) {
  if (form.approximate())
    return {};
  std::vector<HashedBlock> blocks;
  std::size_t step = cases.edges <= 4096 ? 64 : 1024;
  for (std::size_t at = 0; at < cases.edges; at += step)
    blocks.push_back({at, std::min(step, cases.edges - at)});
  for (std::size_t at = cases.edges; at + 1024 <= cases.count(); at += 1024)
    blocks.push_back({at, 1024});
  return blocks;
}

Record makeRecord(const Form &form, const Cases &cases, const Columns &results) {
  Record record;
  record.recipe = recipeHash(form, cases);
  std::size_t raw = form.approximate() ? std::min({cases.edges + rawRandom, cases.count(), rawApproximate})
                                       : std::min(rawExact, cases.edges);
  for (const auto &column : results)
    record.raw.emplace_back(column.begin(), column.begin() + std::ptrdiff_t(raw));
  for (HashedBlock block : hashedBlocks(form, cases))
    record.hashes.push_back(hashBlock(form, results, block));
  return record;
}

Difference compareRecord(const Form &form, const Cases &cases, const Columns &got, const Record &record) {
  std::size_t raw = record.raw.empty() ? 0 : record.raw.front().size();
  if (form.approximate())
    return compareApproximate(form, cases, got, record.raw, std::min(raw, cases.count()), "GPU");
  Difference d = compareExact(form, cases, got, record.raw, 0, std::min(raw, cases.count()), "GPU");
  std::vector<HashedBlock> blocks = hashedBlocks(form, cases);
  for (std::size_t b = 0; b < blocks.size() && b < record.hashes.size(); ++b) {
    if (blocks[b].first + blocks[b].count <= raw || blocks[b].first + blocks[b].count > cases.count())
      continue;
    d.compared += blocks[b].count;
    if (hashBlock(form, got, blocks[b]) == record.hashes[b])
      continue;
    if (d.cases++ == 0)
      d.first = format("%s: results of cases %zu to %zu differ from the GPU's (stored as a hash), beginning with %s; "
                       "'kiln-parity compare' on a GPU names the case",
                       form.name.c_str(), blocks[b].first, blocks[b].first + blocks[b].count - 1,
                       describeCase(form, cases, blocks[b].first).c_str());
  }
  return d;
}

std::string recordPath(const std::string &directory, const std::string &targetClass, const std::string &opcode) {
  return directory + "/" + targetClass + "/" + opcode + ".kpar";
}

Status writeRecords(const std::string &path, const OpcodeRecords &records) {
  Writer w;
  w.bytes = magic;
  w.text(records.device);
  w.number(records.forms.size(), 4);
  for (const auto &[name, record] : records.forms) {
    w.text(name);
    w.number(record.recipe, 8);
    w.number(record.raw.size(), 1);
    w.number(record.raw.empty() ? 0 : record.raw.front().size(), 4);
    for (const auto &column : record.raw) {
      std::uint64_t all = 0;
      for (std::uint64_t v : column)
        all |= v;
      unsigned bytes = all >> 32 ? 8 : all >> 16 ? 4 : all >> 8 ? 2 : 1;
      w.number(bytes, 1);
      for (std::uint64_t v : column)
        w.number(v, bytes);
    }
    w.number(record.hashes.size(), 4);
    for (std::uint64_t hash : record.hashes)
      w.number(hash, 8);
  }
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(path).parent_path(), error);
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(w.bytes.data(), std::streamsize(w.bytes.size()));
  stream.close();
  if (!stream)
    return Status(StatusCode::IoError, "cannot write " + path);
  return {};
}

Result<OpcodeRecords> readRecords(const std::string &path) {
  std::ifstream stream(path, std::ios::binary);
  if (!stream)
    return Status(StatusCode::NotFound, "no file " + path);
  std::stringstream content;
  content << stream.rdbuf();
  std::string bytes = content.str();
  Reader r{bytes};
  if (!bytes.starts_with(magic))
    return Status::invalid(path + " is not a parity record");
  r.bytes.remove_prefix(std::strlen(magic));
  OpcodeRecords records;
  records.device = r.text();
  std::uint64_t forms = r.number(4);
  for (std::uint64_t i = 0; i < forms && !r.bad; ++i) {
    std::string name = r.text();
    Record record;
    record.recipe = r.number(8);
    std::uint64_t outputs = r.number(1), cases = r.number(4);
    for (std::uint64_t k = 0; k < outputs && !r.bad; ++k) {
      unsigned size = unsigned(r.number(1));
      if (size == 0 || size > 8 || r.bytes.size() < cases * size)
        return Status::invalid(path + " is damaged");
      std::vector<std::uint64_t> column;
      for (std::uint64_t c = 0; c < cases; ++c)
        column.push_back(r.number(size));
      record.raw.push_back(std::move(column));
    }
    std::uint64_t hashes = r.number(4);
    if (r.bytes.size() < hashes * 8)
      return Status::invalid(path + " is damaged");
    for (std::uint64_t h = 0; h < hashes; ++h)
      record.hashes.push_back(r.number(8));
    records.forms[name] = std::move(record);
  }
  if (r.bad || !r.bytes.empty())
    return Status::invalid(path + " is damaged");
  return records;
}

} // namespace kiln::parity
