#include "compiler/pipeline/Nesting.h"

#include <algorithm>

namespace kiln {

NestingError checkNesting(std::string_view text) {
  unsigned depth = 0, prefixes = 0, line = 1;
  std::size_t lineBegin = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i], next = i + 1 < text.size() ? text[i + 1] : '\0';
    if (c == '\n') {
      ++line;
      lineBegin = i + 1;
      continue;
    }
    if (c == '/' && next == '/') {
      i = std::min(text.find('\n', i), text.size()) - 1;
      continue;
    }
    if (c == '"') { // a string ends on its line
      while (++i < text.size() && text[i] != '"' && text[i] != '\n')
        i += text[i] == '\\';
      if (i < text.size() && text[i] == '\n')
        --i;
      prefixes = 0;
      continue;
    }
    if (c == ' ' || c == '\t' || c == '\r')
      continue;
    if (c == '-' && next == '>') { // an arrow closes nothing
      ++i;
      prefixes = 0;
      continue;
    }
    // "- - - x" in affine maps; a type's "->" was skipped.
    prefixes = c == '-' ? prefixes + 1 : 0;
    if (c == '(' || c == '[' || c == '{' || c == '<')
      ++depth;
    else if ((c == ')' || c == ']' || c == '}' || c == '>') && depth)
      --depth;
    if (depth > maxNesting || prefixes > maxNesting)
      return {line, static_cast<unsigned>(i - lineBegin + 1)};
  }
  return {};
}

} // namespace kiln
