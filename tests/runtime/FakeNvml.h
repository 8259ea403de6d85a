//===- FakeNvml.h - NVML without a GPU, for tests ------------------------------===//
//
// kiln-fake-nvml.so exports the functions of NVML that Kiln calls.  Tests reach what it says through the exported
// `fakeNvml`.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_RUNTIME_FAKENVML_H
#define KILN_TESTS_RUNTIME_FAKENVML_H

#include <map>
#include <string>
#include <vector>

namespace kiln::test {

struct FakeNvml {
  std::map<std::string, int> failures; ///< function name -> error it returns
  std::string pciBusId = "0000:19:00.0";
  unsigned long long reasons = 1; ///< idle
  unsigned smMegahertz = 1980, memoryMegahertz = 3201, utilisation = 0;
  std::vector<unsigned> processes;
};

} // namespace kiln::test

#endif // KILN_TESTS_RUNTIME_FAKENVML_H
