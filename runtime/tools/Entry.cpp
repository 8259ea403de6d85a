#include "runtime/tools/Entry.h"

#include "runtime/tools/Commands.h"

int kiln_main(int argc, char **argv) {
  return kiln::tools::runCommandLine(argc, argv);
}
