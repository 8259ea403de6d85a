// kiln-pipeline-child PROGRAM FACTS lines|plain ISOLATION OUTPUT: one compile for sm_90a, under the environment's
// locale.
#include "PipelineHarness.h"

#include "support/Text.h"

#include <clocale>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <sstream>

using namespace kiln;
using namespace kiln::test;

int main(int argc, char **argv) {
  if (argc != 6)
    return 2;
  const char *wanted = std::getenv("LC_ALL");
  const char *locale = std::setlocale(LC_ALL, "");
  if (wanted && *wanted && !locale) {
    std::fprintf(stderr, "no locale %s\n", wanted);
    return 3;
  }
  std::ostringstream program;
  program << std::ifstream(argv[1]).rdbuf();
  const std::string text = program.str();
  const Compiled c = compile(
      text,
      {.target = "sm_90a", .facts = argv[2], .lineInfo = std::strcmp(argv[3], "lines") == 0, .isolation = argv[4]});
  std::ofstream(argv[5]) << format("status %d\n", c.status) << c.metadata << "\n" << c.output << "\n" << c.diagnostics;
  return 0;
}
