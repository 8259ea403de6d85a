// kiln-numbers-ptx TARGET FOLDER: the PTX of every case, a file a group, for kiln-numbers.
#include "tests/numbers/NumbersCases.h"
#include "tests/numbers/NumbersCompile.h"

#include <cstdio>
#include <fstream>
#include <map>

using namespace kiln::test;

int main(int argc, char **argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: kiln-numbers-ptx TARGET FOLDER\n");
    return 2;
  }
  const std::vector<NumbersCase> all = allNumbersCases();
  std::map<std::string, std::vector<const NumbersCase *>> groups;
  for (const NumbersCase &c : all)
    groups[c.group].push_back(&c);
  for (const auto &[group, cases] : groups) {
    const CompiledNumbers compiled = compileNumbers(moduleText(cases, argv[1]));
    if (!compiled.ok) {
      std::fprintf(stderr, "kiln-numbers-ptx: %s: %s\n", group.c_str(), compiled.errors.c_str());
      return 3;
    }
    std::ofstream file(std::string(argv[2]) + "/" + group + "." + argv[1] + ".ptx");
    file << compiled.ptx;
    if (!file.flush()) {
      std::fprintf(stderr, "kiln-numbers-ptx: cannot write to %s\n", argv[2]);
      return 2;
    }
  }
  return 0;
}
