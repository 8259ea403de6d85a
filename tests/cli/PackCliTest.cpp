// `kiln pack`: a file that another machine's cache takes in place of compiling; no GPU is needed to make or to try it.
#include "tests/cli/Program.h"

#include <fstream>
#include <nlohmann/json.hpp>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class PackCliTest : public CachedCliTest {};

TEST_F(PackCliTest, KernelsOfAPackAreNotCompiled) {
  std::ofstream(file("calls"))
      << "# two calls\nadd --dtype f32\n\nmatmul --dtype bf16 --with a=64x64 --with b=64x64 # small\n";
  const Outcome made = kiln({"pack", "--calls", file("calls"), "--target", "sm_80", "--target", "sm_90a", "-o",
                             file("kernels.pack"), "--json"});
  ASSERT_EQ(made.status, 0) << made.err;
  EXPECT_EQ(Json::parse(made.out)["entries"], 4);
  EXPECT_NE(made.err.find("4/4"), std::string::npos) << made.err;
  // As on another machine, whose assembler is not the pack's.
  Words call = {"bench",       "matmul",      "--dtype",     "bf16",           "--with",
                "a=64x64",     "--with",      "b=64x64",     "--device",       "offline:sm_90a",
                "--resources", "--cache-dir", file("other"), "--cache-shared", file("kernels.pack"),
                "--nvjitlink", "none",        "--ptxas",     "none",           "--log",
                "cache=info"};
  const Outcome hit = kiln(call);
  EXPECT_EQ(hit.status, 0) << hit.err;
  EXPECT_NE(hit.err.find("hit in '" + file("kernels.pack") + "'"), std::string::npos) << hit.err;
  call[5] = "a=64x72"; // the same kernel: sizes are not compiled in
  call[7] = "b=72x64";
  EXPECT_NE(kiln(call).err.find("hit in"), std::string::npos);
  call[9] = "offline:sm_100a";
  EXPECT_EQ(kiln(call).err.find("hit in"), std::string::npos);
}

TEST_F(PackCliTest, WrongWordsAreRefused) {
  const auto refused = [&](Words words, const std::string &part, int status = 2) {
    words.insert(words.begin(), "pack");
    const Outcome o = kiln(words);
    EXPECT_EQ(o.status, status) << o.out << o.err;
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  const std::string out = file("k.pack");
  refused({"add", "--target", "sm_80", "-o", file("k")}, "the name of a pack ends in .pack");
  refused({"--target", "sm_80", "-o", out}, "there is nothing to compile");
  refused({"add", "--dtype", "f32", "--target", "sm_1", "-o", out}, "sm_1");
  refused({"add", "--dtype", "f32", "--target", "sm_80:0", "-o", out}, "is no number of multiprocessors");
  refused({"ad", "--target", "sm_80", "-o", out}, "add");
  refused({"--calls", file("absent"), "--target", "sm_80", "-o", out}, "absent");
  std::ofstream(file("calls")) << "add --dtype f32\nadd --dtype f99\n";
  refused({"--calls", file("calls"), "--target", "sm_80", "-o", out}, "line 2");
  EXPECT_FALSE(std::ifstream(out).good());
  EXPECT_EQ(kiln({"pack", "add", "-o", out}).status, 2);
}

} // namespace
} // namespace kiln::test
