#include "runtime/jit/KernelKey.h"

#include <cctype>

namespace kiln {

namespace {

/// The position after a string literal that begins at `at`; npos if it does not end.
std::size_t skipString(std::string_view text, std::size_t at) {
  for (std::size_t i = at + 1; i < text.size(); ++i) {
    if (text[i] == '\\')
      ++i;
    else if (text[i] == '"')
      return i + 1;
    else if (text[i] == '\n')
      return std::string_view::npos;
  }
  return std::string_view::npos;
}

/// The position after the parenthesis that closes the one at `at`; npos if there is none.
std::size_t skipParentheses(std::string_view text, std::size_t at) {
  unsigned depth = 0;
  for (std::size_t i = at; i < text.size();) {
    if (text[i] == '"') {
      i = skipString(text, i);
      if (i == std::string_view::npos)
        return i;
      continue;
    }
    if (text[i] == '(')
      ++depth;
    else if (text[i] == ')' && --depth == 0)
      return i + 1;
    ++i;
  }
  return std::string_view::npos;
}

bool isWord(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '$' || c == '-' || c == '#' ||
         c == '%' || c == '@' || c == '!' || c == '^';
}

/// Whether `line` is "#loc<n> = ".
bool isLocationAlias(std::string_view line) {
  if (!line.starts_with("#loc"))
    return false;
  const std::size_t end = line.find_first_not_of("0123456789", 4);
  return end != std::string_view::npos && line.substr(end) == " = ";
}

} // namespace

std::string withoutLocations(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size();) {
    if (text[i] == '"') {
      const std::size_t end = skipString(text, i);
      if (end == std::string_view::npos)
        return std::string(text);
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    if (text.substr(i, 2) == "//") {
      const std::size_t end = std::min(text.find('\n', i), text.size());
      out += text.substr(i, end - i);
      i = end;
      continue;
    }
    if (text.substr(i, 4) != "loc(" || (i > 0 && isWord(text[i - 1]))) {
      out += text[i++];
      continue;
    }
    i = skipParentheses(text, i + 3);
    if (i == std::string_view::npos)
      return std::string(text);
    const std::size_t line = out.rfind('\n') + 1; // npos + 1 is 0
    if (isLocationAlias(std::string_view(out).substr(line))) {
      out.resize(line);
      if (i < text.size() && text[i] == '\n')
        ++i;
    } else
      while (!out.empty() && out.back() == ' ')
        out.pop_back();
  }
  return out;
}

/// Raised when other code is kept of the same assemblers, so that what an older Kiln stored is not found.  2: none of a
/// part of a program that ran out of registers (RegisterLimit.h).
static constexpr const char *assemblyRules = "2";

cache::KeyText kernelKey(const KeyParts &parts) {
  const KernelSource &source = *parts.source;
  std::string arguments;
  for (const ArgumentSpec &a : source.arguments)
    arguments += (arguments.empty() ? "" : ", ") + a.name + ": " + a.type + " " +
                 std::string(specialiseName(a.specialise)) +
                 (a.elementBytes > 1 ? " of " + std::to_string(a.elementBytes) + " bytes" : "");
  cache::KeyText key;
  key.set("kernel", source.name)
      .set("configuration", source.configuration)
      .set("arguments", arguments)
      .set("warps", std::to_string(source.warps))
      .set("classes", parts.classes)
      .set("code target", parts.codeTarget)
      .set("assembly arch", parts.assemblyArch)
      .set("ptx isa", "lowest") // that the kernel's capabilities need: the compiler picks it
      .set("assembler", parts.assembler)
      .set("assembly", assemblyRules)
      .set("line info", parts.lineInfo ? "on" : "off")
      .set("compiler", parts.compiler)
      .set("plugins", parts.plugins)
      .set("passes", parts.passes);
  if (!parts.stress.empty())
    key.set("stress", parts.stress);
  if (const std::string overrides = parts.overrides.identity(); !overrides.empty())
    key.set("overrides", overrides);
  if (parts.lineInfo)
    key.set("file", source.fileName); // names the text where it has no locations of its own
  key.set("program", parts.lineInfo ? source.programText : withoutLocations(source.programText));
  return key;
}

} // namespace kiln
