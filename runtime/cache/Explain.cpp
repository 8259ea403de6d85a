#include "runtime/cache/CacheState.h"
#include "runtime/cache/KernelCache.h"
#include "support/Text.h"

#include <algorithm>

namespace kiln::cache {

/// Up to 80 characters of a line from a little before `column`, in quotes and printable.
static std::string quoted(std::string_view line, std::size_t column) {
  constexpr std::size_t width = 80, before = 30;
  const std::size_t from =
      line.size() <= width || column <= before ? 0 : std::min(column - before, line.size() - width);
  std::string out = from ? "...'" : "'";
  for (const char c : line.substr(from, width)) {
    const auto code = static_cast<unsigned char>(c);
    if (code < 0x20 || code >= 0x7f)
      out += format("\\x%02x", code);
    else
      out += c;
  }
  return out + (from + width < line.size() ? "'..." : "'");
}

/// Both pieces side by side around the first character that differs.
static std::string sideBySide(std::string_view wanted, std::string_view found) {
  const auto shorter = std::min(wanted.size(), found.size());
  const auto column = static_cast<std::size_t>(
      std::mismatch(wanted.begin(), wanted.begin() + static_cast<std::ptrdiff_t>(shorter), found.begin()).first -
      wanted.begin());
  return quoted(wanted, column) + ", the entry has " + quoted(found, column);
}

static std::string difference(std::string_view wanted, std::string_view found) {
  const std::vector<std::string_view> ours = split(wanted, '\n'), theirs = split(found, '\n');
  if (ours.size() == 1 && theirs.size() == 1)
    return sideBySide(wanted, found);
  std::size_t line = 0;
  while (line < ours.size() && line < theirs.size() && ours[line] == theirs[line])
    ++line;
  const std::string at = "line " + std::to_string(line + 1) + ": ";
  if (line == ours.size())
    return at + "ends before it, the entry has " + quoted(theirs[line], 0);
  if (line == theirs.size())
    return at + quoted(ours[line], 0) + ", the entry ends before it";
  return at + sideBySide(ours[line], theirs[line]);
}

static std::uint64_t equalFields(const KeyText &wanted, const KeyText &found) {
  std::uint64_t equal = 0;
  for (const KeyText::Field &f : wanted.fields())
    if (const std::string *text = found.find(f.name); text && *text == f.text)
      ++equal;
  return equal;
}

static void compare(const KeyText &wanted, const KeyText &found, Explanation &out) {
  out.totalFields = wanted.fields().size();
  for (const KeyText::Field &f : wanted.fields()) {
    const std::string *text = found.find(f.name);
    if (!text)
      out.differences.push_back({f.name, "the entry has no such field"});
    else if (*text != f.text)
      out.differences.push_back({f.name, difference(f.text, *text)});
  }
  for (const KeyText::Field &f : found.fields()) {
    if (wanted.find(f.name))
      continue;
    ++out.totalFields;
    out.differences.push_back({f.name, "only the entry has this field"});
  }
  if (out.differences.empty() && wanted != found)
    out.differences.push_back({"", "the same fields in another order"});
}

Result<Explanation> KernelCache::nearest(const KeyText &key) {
  KILN_ASSIGN(const std::vector<EntryInfo> all, list());
  Explanation out;
  out.entries = all.size();
  const EntryInfo *best = nullptr;
  // Of several equally near ones the most recently used, which `list` gives first.
  for (const EntryInfo &entry : all) {
    if (!entry.damage.empty() || entry.key == key)
      continue;
    if (const std::uint64_t equal = equalFields(key, entry.key); equal > out.equalFields) {
      out.equalFields = equal;
      best = &entry;
    }
  }

  out.totalFields = key.fields().size();
  if (best) {
    out.nearest = best->fileName;
    compare(key, best->key, out);
  }
  return out;
}

Result<Explanation> KernelCache::explain(const KeyText &key) {
  KILN_ASSIGN(Explanation out, nearest(key));
  const std::string text = key.serialise();
  const std::string name = hexText(impl->options.hash(text)) + std::string(entrySuffix);
  KILN_ASSIGN(const Impl::Root at, impl->openRoot());
  Impl::Loaded own;
  if (const Status status = impl->load(at->get(), name, true, own); status.ok())
    out.present = own.view.keyText == text;
  else if (status.code() != StatusCode::NotFound)
    out.damage = status.message();

  if (out.present) {
    out.totalFields = out.equalFields = key.fields().size();
    out.nearest = name;
    out.differences.clear();
  }
  return out;
}

std::string Explanation::toString() const {
  if (present)
    return "in the cache: " + nearest + "\n";
  std::string out = damage.empty() ? "no entry of this key" : "the entry of this key is not used: " + damage;
  out += "; the cache holds " + std::to_string(entries) + (entries == 1 ? " entry\n" : " entries\n");
  return out + differencesText();
}

std::string Explanation::differencesText() const {
  if (nearest.empty())
    return {};
  std::string out = "nearest: " + nearest + ", " + std::to_string(equalFields) + " of " + std::to_string(totalFields) +
                    " fields equal\n";
  for (const FieldDifference &d : differences)
    out += "  " + (d.field.empty() ? d.text : d.field + ": " + d.text) + "\n";
  return out;
}

} // namespace kiln::cache
