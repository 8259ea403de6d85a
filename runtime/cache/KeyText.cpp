#include "runtime/cache/KeyText.h"

#include <algorithm>
#include <charconv>

namespace kiln::cache {

KeyText &KeyText::set(std::string_view name, std::string_view text) {
  const auto at = std::find_if(all.begin(), all.end(), [&](const Field &f) { return f.name == name; });
  if (at != all.end())
    at->text = text;
  else
    all.push_back({std::string(name), std::string(text)});
  return *this;
}

const std::string *KeyText::find(std::string_view name) const {
  for (const Field &f : all)
    if (f.name == name)
      return &f.text;
  return nullptr;
}

// std::to_string of an integer does not depend on the locale.
std::string KeyText::serialise() const {
  std::string out;
  std::size_t bytes = 0;
  for (const Field &f : all)
    bytes += f.name.size() + f.text.size() + 48;
  out.reserve(bytes);
  for (const Field &f : all) {
    out += std::to_string(f.name.size());
    out += ' ';
    out += std::to_string(f.text.size());
    out += '\n';
    out += f.name;
    out += '\n';
    out += f.text;
    out += '\n';
  }
  return out;
}

/// Takes a number and the `end` after it off the front.
static std::optional<std::size_t> takeNumber(std::string_view &text, char end) {
  std::size_t value = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::size_t digits = static_cast<std::size_t>(after - text.data());
  if (error != std::errc() || digits == text.size() || *after != end || (digits > 1 && text[0] == '0'))
    return std::nullopt;
  text.remove_prefix(digits + 1);
  return value;
}

/// Takes `bytes` bytes and the newline after them off the front.
static std::optional<std::string_view> takeBytes(std::string_view &text, std::size_t bytes) {
  if (text.size() <= bytes || text[bytes] != '\n')
    return std::nullopt;
  const std::string_view out = text.substr(0, bytes);
  text.remove_prefix(bytes + 1);
  return out;
}

std::optional<KeyText> KeyText::parse(std::string_view text) {
  KeyText key;
  while (!text.empty()) {
    const auto nameBytes = takeNumber(text, ' ');
    if (!nameBytes)
      return std::nullopt;
    const auto textBytes = takeNumber(text, '\n');
    if (!textBytes)
      return std::nullopt;
    const auto name = takeBytes(text, *nameBytes);
    if (!name || key.find(*name))
      return std::nullopt;
    const auto fieldText = takeBytes(text, *textBytes);
    if (!fieldText)
      return std::nullopt;
    key.all.push_back({std::string(*name), std::string(*fieldText)});
  }
  return key;
}

} // namespace kiln::cache
