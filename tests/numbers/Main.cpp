// kiln-numbers: the cases of NumbersCases.h on any device, from PTX that kiln-numbers-ptx wrote.  Needs no MLIR.
//
//   kiln-numbers --device cuda:0 --ptx FOLDER --target sm_90a [--count N] [--only TEXT]
//
// Prints a line a case, its worst error in ulp; exit status 0 if every result was right, 1 if not, 2 for other
// problems.
#include "tests/numbers/NumbersSweep.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

int main(int argc, char **argv) {
  std::string deviceName = "emulator:sm_80", folder = ".", target = "sm_80", only;
  std::size_t count = 1 << 16;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--device")
      deviceName = argv[i + 1];
    else if (flag == "--ptx")
      folder = argv[i + 1];
    else if (flag == "--target")
      target = argv[i + 1];
    else if (flag == "--only")
      only = argv[i + 1];
    else if (flag == "--count")
      count = std::strtoull(argv[i + 1], nullptr, 10);
    else {
      std::fprintf(stderr, "kiln-numbers: unknown flag %s\n", argv[i]);
      return 2;
    }
  }
  const auto device = openDevice(deviceName);
  if (!device.ok()) {
    std::fprintf(stderr, "kiln-numbers: %s\n", device.status().toString().c_str());
    return 2;
  }
  std::map<std::string, std::unique_ptr<Module>> modules;
  std::size_t wrong = 0, cases = 0;
  for (const NumbersCase &c : allNumbersCases()) {
    if (c.name.find(only) == std::string::npos)
      continue;
    std::unique_ptr<Module> &module = modules[c.group];
    if (!module) {
      const std::string path = folder + "/" + c.group + "." + target + ".ptx";
      std::ifstream file(path);
      std::ostringstream text;
      text << file.rdbuf();
      if (!file) {
        std::fprintf(stderr, "kiln-numbers: %s does not exist; kiln-numbers-ptx %s %s writes it\n", path.c_str(),
                     target.c_str(), folder.c_str());
        return 2;
      }
      auto loaded = (*device)->loadPtx(text.str(), path);
      if (!loaded.ok()) {
        std::fprintf(stderr, "kiln-numbers: %s\n", loaded.status().toString().c_str());
        return 2;
      }
      module = std::move(*loaded);
    }
    const Result<SweepResult> result = sweep(**device, *module, c, count);
    if (!result.ok()) {
      std::fprintf(stderr, "kiln-numbers: %s: %s\n", c.name.c_str(), result.status().toString().c_str());
      return 2;
    }
    ++cases;
    wrong += result->wrong != 0;
    std::printf("%-32s %10zu checked  %8zu wrong  worst %.4g ulp at %s %s\n", c.name.c_str(), result->checked,
                result->wrong, result->worstUlps, result->worst.c_str(), result->first.c_str());
  }
  std::printf("%zu cases, %zu wrong\n", cases, wrong);
  modules.clear();
  return wrong != 0;
}
