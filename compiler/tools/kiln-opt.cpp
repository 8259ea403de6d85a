// Runs any pass or stage of Kiln on a file: MLIR's opt driver with Kiln's dialects and passes, which are in
// libkiln-compiler.
#include "compiler/pipeline/CompilerTable.h"

int main(int argc, char **argv) {
  return kilnCompilerTable()->optMain(argc, argv);
}
