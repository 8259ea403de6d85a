// The program `kiln`.
#include "runtime/tools/Entry.h"

int main(int argc, char **argv) {
  return kiln_main(argc, argv);
}
