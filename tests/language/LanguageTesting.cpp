#include "tests/language/LanguageTesting.h"

#include "tests/support/TestTier.h"

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace kiln::test {

std::string withoutLocations(const std::string &text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    if (text.compare(i, 6, " loc(\"") == 0) {
      i += 6;
      while (i < text.size() && text[i] != '"')
        i += text[i] == '\\' ? 2 : 1;
      i = text.find(')', i) + 1;
      continue;
    }
    out += text[i++];
  }
  return out;
}

std::vector<std::string> linesOf(const std::string &text) {
  std::vector<std::string> out;
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);)
    out.push_back(line);
  return out;
}

std::string bodyOf(const language::Kernel &kernel) {
  std::string out;
  bool inside = false;
  for (const std::string &line : linesOf(withoutLocations(kernel.text()))) {
    if (line == "    return")
      break;
    if (inside)
      out += line.substr(4) + "\n";
    inside = inside || line.find("attributes {tile.kernel") != std::string::npos;
  }
  return out;
}

std::string kilnOpt() {
  const std::string path = KILN_BINARY_DIR "/bin/kiln-opt";
  return std::filesystem::exists(path) ? path : "";
}

std::string complaintsOfKilnOpt(const std::vector<std::string> &modules) {
  TemporaryDirectory directory;
  const std::string file = directory.path() + "/kernels.mlir", log = directory.path() + "/log";
  {
    std::ofstream out(file);
    for (std::size_t i = 0; i < modules.size(); ++i)
      out << (i ? "// -----\n" : "") << modules[i];
  }
  const std::string command = kilnOpt() + " --split-input-file " + file + " -o " + directory.path() + "/out 2> " + log;
  const int status = std::system(command.c_str());
  std::ifstream in(log);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  return status && text.empty() ? "kiln-opt ended with status " + std::to_string(status) : text;
}

} // namespace kiln::test
