//===- Names.h - Names of kernels in messages -----------------------------===//
//
// Compilers mangle names of C++ templates to a thousand characters and more.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_SUPPORT_NAMES_H
#define KILN_SUPPORT_NAMES_H

#include <string>
#include <string_view>
#include <vector>

namespace kiln {

/// `name`, or if it is longer than `most` characters its start and its end with "..." between.
std::string shortName(std::string_view name, std::size_t most = 60);

template <typename Names> std::vector<std::string> shortNames(const Names &names) {
  std::vector<std::string> out;
  for (const std::string &name : names)
    out.push_back(shortName(name));
  return out;
}

/// A C++ name as it was written, "f<int>(float)"; what is no mangled name stays as it is.
std::string demangled(const std::string &name);

} // namespace kiln

#endif // KILN_SUPPORT_NAMES_H
