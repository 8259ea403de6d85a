// Messages that name what the caller wrote and what to write instead: one row each.
#include "tests/cli/Arrays.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <sys/stat.h>

namespace kiln::test {
namespace {

using Words = std::vector<std::string>;

class MessagesCliTest : public CachedCliTest {
protected:
  std::string save(const std::string &name, DType type, const Shape &shape, const std::vector<double> &values = {}) {
    std::size_t n = 1;
    for (const std::uint64_t e : shape)
      n *= e;
    EXPECT_TRUE(writeNpy(file(name), arrayFrom(type, shape, values.empty() ? std::vector<double>(n) : values)).ok());
    return file(name);
  }
  static Words with(const Words &first, const Words &more) {
    Words out = first;
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
};

TEST_F(MessagesCliTest, SayWhatToWrite) {
  const std::string f32 = save("f32.npy", DType::F32, {16, 16}), f16 = save("f16.npy", DType::F16, {16, 16}),
                    u16 = save("u16.npy", DType::U16, {1, 16, 1, 16}), long64 = save("i64.npy", DType::I64, {16, 16}),
                    q = save("q.npy", DType::F16, {1, 16, 1, 16}), q32 = save("q32.npy", DType::F32, {1, 16, 1, 16}),
                    packed = save("packed.npy", DType::F16, {16, 1, 16}),
                    cu = save("cu.npy", DType::I32, {3}, {0, 8, 16}), cuOne = save("cu1.npy", DType::I32, {1}, {0}),
                    cuWide = save("cu2.npy", DType::I32, {1, 3}, {0, 8, 16});
  const Words attention = {"run", "attention", "--output", file("o.npy"), "--target", "sm_80"};
  const Words dense = with(attention, {"--q", q, "--k", q, "--v", q});
  const Words thd = with(attention, {"--q", packed, "--k", packed, "--v", packed});
  const Words matmul = {"run", "matmul", "--a", f32, "--b", f32, "--output", file("o.npy"), "--target", "sm_80"};
  const Words softmax = {"run", "softmax", "--input", f32, "--target", "sm_80"};
  const struct {
    Words words;
    std::string part;
  } rows[] = {
      {with(attention, {"--q", q32, "--k", q32, "--v", q32}),
       "--q " + q32 +
           ": the file holds f32; kernel 'attention' takes bf16, f16, e4m3 (--dtype bf16 or --dtype f16 or --dtype "
           "e4m3 rounds it)"},
      {with(attention, {"--q", u16, "--k", u16, "--v", u16}), "(--dtype bf16 or --dtype f16 takes its bits)"},
      {with(dense, {"--dtype", "f32"}), "--dtype f32; kernel 'attention' takes bf16, f16, e4m3 (name one of these)"},
      {{"run", "softmax", "--input", long64, "--target", "sm_80"},
       "the file holds i64; kernel 'softmax' takes f32, f16, bf16 (save it as one of these)"},
      {with(matmul, {"--out-dtype", "bf16"}),
       "argument 'out' has dtype bf16, of operands of f32 it is f32 (ask for f32"},
      {with(matmul, {"--scale", "1e39"}), "matmul: scale = 1e+39 (give a number that fp32 holds"},
      {with(thd, {"--cu-seqlens-q", cuWide, "--cu-seqlens-k", cu}),
       "argument 'cu_seqlens_q' has rank 2, it must be 1: batch + 1 offsets (reshape it)"},
      {with(thd, {"--cu-seqlens-q", cuOne, "--cu-seqlens-k", cu}),
       "arguments 'cu_seqlens_q' and 'cu_seqlens_k' have 1 and 3 offsets (give both one for each sequence"},
      {with(dense, {"--scale", "1e-50"}), "attention: scale = 1e-50 (give a number that fp32 holds"},
      {with(dense, {"--scale", "1e39"}), "attention: scale = 1e+39 (give a number that fp32 holds"},
      {with(dense, {"--scale", "3e38"}), "attention: scale = 3e+38 (give a number above 0, at most 2e38)"},
      {with(dense, {"--softcap", "1e39"}), "attention: softcap = 1e+39"},
      {with(softmax, {"--output", file("o.npy"), "--timeout", "-1"}), "--timeout -1 is not between 0 and 10^9 seconds"},
      {with(softmax, {"--output", file("o.npy"), "--threads", "100000"}), "--threads 100000 is more than 1024"},
      {{"check", "add", "--timeout", "-1"}, "--timeout -1 is not between 0 and 10^9 seconds"},
      {{"check", "add", "--threads", "100000"}, "--threads 100000 is more than 1024"},
      {with(dense, {"--cu-seqlens-q", cu}),
       "layout thd_thd_thd, which cu_seqlens_q stands for, needs cu_seqlens_k (give it,"},
      {with(dense, {"--layout", "bshd_bshd_bshd", "--cu-seqlens-q", cu}),
       "layout bshd_bshd_bshd takes no cu_seqlens_q"},
      {with(dense, {"--layout", ""}),
       "--layout '': there is no such choice (such as bshd_bshd_bshd, sbhd_sbhd_sbhd, bhsd_bhsd_bhsd; docs/commands.md "
       "lists all "},
      {with(dense, {"--layout", "bshd_bshd_bhsd"}), "--layout bshd_bshd_bhsd: there is no such choice (did you mean "},
      {with(dense, {"--layout", "bs3hd"}), "layout bs3hd takes 1 tensor, 3 were given"},
      {{"run", "layer_norm", "--x", f32, "--weight", f32, "--target", "sm_80"},
       "kernel 'layer_norm' needs --bias FILE.npy too where --weight is given (give both or neither)"},
      {{"run", "softmax", "--input", file("none.npy"), "--target", "sm_80"},
       "none.npy': No such file or directory (check the name and the folder)"},
      {with(softmax, {"--output", file("none/o.npy")}),
       "none/o.npy': No such file or directory (the folder must exist and be writable)"},
      {{"compile", "add", "--target", "sm_80", "-o", file("none/a.ptx")}, "(the folder must exist and be writable)"},
      {with(softmax, {"--output", "/dev/full"}), "cannot write '/dev/full': No space left on device (make room there,"},
  };
  for (const auto &row : rows)
    expectRefused(row.words, row.part);
}

TEST_F(MessagesCliTest, JsonHasTheRemedyToo) {
  const Outcome o = kiln({"run", "softmax", "--input", file("none.npy"), "--target", "sm_80", "--json"});
  EXPECT_EQ(o.status, 2);
  EXPECT_EQ(nlohmann::json::parse(o.out)["error"]["remedy"], "check the name and the folder");
}

/// The command rounds a bias to out's type, not to that of the operands.
TEST_F(MessagesCliTest, ABiasHasTheTypeOfOut) {
  const std::string a = save("a.npy", DType::F32, {16, 16}, std::vector<double>(256, 1.0)),
                    bias = save("bias.npy", DType::F32, {16}, std::vector<double>(16, 0.3));
  const Outcome o = kiln({"run", "matmul", "--a", a, "--b", a, "--bias", bias, "--dtype", "e4m3", "--output",
                          file("o.npy"), "--target", "sm_80"});
  ASSERT_EQ(o.status, 0) << o.err;
  const auto out = readNpy(file("o.npy"));
  ASSERT_TRUE(out.ok());
  for (std::size_t i = 0; i < out->elements(); ++i)
    EXPECT_EQ(loadElement(&out->data[4 * i], DType::F32), static_cast<double>(16.0f + 0.3f));
}

/// Where only hashes cannot be remembered, the cache is used all the same, and the line says so.
TEST_F(MessagesCliTest, WithoutRememberedHashesThereIsACache) {
  const std::string x = floats("x.npy", 64);
  const Words words = {"run", "add", "--x", x, "--y", x, "--target", "sm_80"};
  ASSERT_EQ(kiln(words).status, 0);
  ASSERT_EQ(chmod(file("cache/identities").c_str(), 0777), 0);
  const Outcome o = kiln(words);
  EXPECT_EQ(o.status, 0) << o.err;
  EXPECT_NE(o.out.find("0 compiled, 1 from the cache on disk"), std::string::npos) << o.out;
  EXPECT_NE(o.err.find("the cache on disk is used, but hashes of files are not remembered in it: "), std::string::npos)
      << o.err;
  EXPECT_EQ(o.err.find("no cache on disk"), std::string::npos) << o.err;
}

} // namespace
} // namespace kiln::test
