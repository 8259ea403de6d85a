//===- KeyText.h - Everything that decides what a kernel compiles to ------===//
//
// An ordered list of (field name, text).  Two kernels are the same entry exactly if their serialised key texts are
// equal: the order of the fields counts, names are unique, any bytes may stand in names and texts.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_CACHE_KEYTEXT_H
#define KILN_RUNTIME_CACHE_KEYTEXT_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::cache {

class KeyText {
public:
  struct Field {
    std::string name, text;
    bool operator==(const Field &) const = default;
  };

  /// Appends a field; a field of that name that is already there keeps its place and gets the new text.
  KeyText &set(std::string_view name, std::string_view text);

  const std::vector<Field> &fields() const { return all; }
  /// nullptr if there is no such field.
  const std::string *find(std::string_view name) const;

  /// For each field "<bytes of name> <bytes of text>\n<name>\n<text>\n": readable, and no two keys share one.
  std::string serialise() const;
  /// The key that serialises to exactly `text`; nothing if there is none.
  static std::optional<KeyText> parse(std::string_view text);

  bool operator==(const KeyText &) const = default;

private:
  std::vector<Field> all;
};

} // namespace kiln::cache

#endif // KILN_RUNTIME_CACHE_KEYTEXT_H
