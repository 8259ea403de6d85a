// A compiler that holds LLVM inside itself (release and bundle builds) refuses plugins, by name and with what to do.
#include "tests/package/Shell.h"

using namespace kiln::test;

namespace {

TEST(StaticPlugin, IsRefused) {
  const std::string text = KILN_SOURCE_DIR "/docs/examples/scale.mlir", bin = KILN_BINARY_DIR "/bin/";
  for (const std::string &command : {bin + "kiln-opt " + text + " --load-pass-plugin=/bin/true",
                                     bin + "kiln-opt " + text + " --load-dialect-plugin /bin/true",
                                     "KILN_CACHE_DIR=off KILN_PLUGINS=/bin/true KILN_PASSES=tile=cse " + bin +
                                         "kiln compile " + text + " --target sm_80"}) {
    const Outcome got = shell(command);
    EXPECT_NE(got.status, 0) << got.out;
    EXPECT_NE(got.out.find("'/bin/true' cannot be loaded: this compiler holds LLVM inside itself"), std::string::npos)
        << got.out;
    EXPECT_NE(got.out.find("preset dev"), std::string::npos) << got.out;
  }
  // Passes of Kiln's own can be added all the same.
  const Outcome added =
      shell("KILN_CACHE_DIR=off KILN_PASSES=tile=cse " + bin + "kiln compile " + text + " --target sm_80");
  EXPECT_EQ(added.status, 0) << added.out;
}

} // namespace
