//===- Markup.h - Text in HTML and SVG ------------------------------------------===//
#ifndef KILN_SUPPORT_MARKUP_H
#define KILN_SUPPORT_MARKUP_H

#include <string>
#include <string_view>

namespace kiln {

/// Nothing in it is markup.  `shown`: the character that stands for one that is none anyway; each page has its own
/// rules for controls and bytes above 127.
template <typename F> std::string escapedMarkup(std::string_view text, const F &shown) {
  std::string out;
  for (const char c : text)
    switch (c) {
    case '&':
      out += "&amp;";
      break;
    case '<':
      out += "&lt;";
      break;
    case '>':
      out += "&gt;";
      break;
    case '"':
      out += "&quot;";
      break;
    default:
      out += shown(c);
    }
  return out;
}

} // namespace kiln

#endif // KILN_SUPPORT_MARKUP_H
