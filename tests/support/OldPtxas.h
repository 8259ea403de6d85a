//===- OldPtxas.h - A ptxas that came before what it is given -------------------===//
#ifndef KILN_TESTS_SUPPORT_OLDPTXAS_H
#define KILN_TESTS_SUPPORT_OLDPTXAS_H

#include <filesystem>
#include <fstream>
#include <string>

namespace kiln::test {

/// A program of release 9.0 that fails with this complaint, without quotes, whatever it is to assemble.
inline void writeOldPtxas(const std::string &path, const std::string &complaint) {
  std::ofstream(path) << "#!/bin/sh\n[ \"$1\" = --version ] && echo 'release 9.0, V9.0.1' && exit 0\n"
                         "echo \"ptxas fatal   : "
                      << complaint << "\"\nexit 1\n";
  std::filesystem::permissions(path, std::filesystem::perms::owner_all);
}

} // namespace kiln::test

#endif // KILN_TESTS_SUPPORT_OLDPTXAS_H
