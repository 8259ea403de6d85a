#include "tests/kernels/Bench.h"

#include <cstdio>

int main(int argc, char **argv) {
  // Before GoogleTest: the device decides which tests there are.
  int kept = 1;
  for (int i = 1; i < argc; ++i)
    if (std::string_view(argv[i]) == "--device" && i + 1 < argc)
      kiln::test::setDevice(argv[++i]);
    else
      argv[kept++] = argv[i];
  argc = kept;
  argv[argc] = nullptr;
  testing::InitGoogleTest(&argc, argv);
  if (argc > 1) {
    std::fprintf(stderr, "usage: kiln-kernel-tests [--device NAME] [GoogleTest flags]\n");
    return 2;
  }
  const int status = RUN_ALL_TESTS();
  kiln::test::closeDevices();
  return status;
}
