// Runs any pass or stage of Kiln on a file: MLIR's opt driver with Kiln's dialects and passes.
#include "compiler/pipeline/Dialects.h"

int main(int argc, char **argv) {
  return kiln::optMain(argc, argv);
}
