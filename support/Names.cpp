#include "support/Names.h"

#include <cstdlib>
#include <cxxabi.h>

namespace kiln {

std::string shortName(std::string_view name, std::size_t most) {
  constexpr std::string_view dots = "...";
  if (name.size() <= most || most < 3 * dots.size())
    return std::string(name);
  const std::size_t kept = most - dots.size(), end = kept / 3;
  return std::string(name.substr(0, kept - end)).append(dots).append(name.substr(name.size() - end));
}

std::string demangled(const std::string &name) {
  if (!name.starts_with("_Z")) // else "a" is "signed char", the name of a type
    return name;
  int status = 0;
  char *const text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string out = status == 0 && text ? text : name;
  std::free(text);
  return out;
}

} // namespace kiln
