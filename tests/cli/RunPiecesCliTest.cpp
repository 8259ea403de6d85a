// `kiln run` with arguments that are built of pieces: pointers into other buffers, tensor maps, structs; and --entry.
#include "runtime/io/Npy.h"
#include "tests/cli/Program.h"

#include <nlohmann/json.hpp>

#include <cstring>

namespace kiln::test {
namespace {

using Json = nlohmann::json;
using Words = std::vector<std::string>;

class RunPiecesCliTest : public CliTest {
protected:
  void SetUp() override { x = floats("x.npy", 512); }
  static Words with(Words words, const Words &more) {
    words.insert(words.end(), more.begin(), more.end());
    return words;
  }
  Words view(const Words &more) const { return with({"run", pieces, "--entry", "view"}, with(launch, more)); }
  Words box(const std::string &map, const Words &more = {}) const {
    return with({"run", pieces, "--entry", "box", "--grid", "1", "--block", "32", "--target", "sm_90a", "--buffer",
                 "t=" + x, "--arg", map, "--arg", "out:f32:8x32", "--arg", "i32:0"},
                more);
  }
  std::vector<float> read(const std::string &name) const {
    const auto array = readNpy(file(name));
    EXPECT_TRUE(array.ok()) << array.status().toString();
    std::vector<float> out(array.ok() ? array->data.size() / 4 : 0);
    if (!out.empty())
      std::memcpy(out.data(), array->data.data(), 4 * out.size());
    return out;
  }
  static void good(const Words &line) {
    const Outcome o = kiln(line);
    ASSERT_EQ(o.status, 0) << o.out << o.err;
  }
  static void refused(const Words &line, const std::string &part) {
    const Outcome o = kiln(line);
    EXPECT_EQ(o.status, 2) << o.out << o.err;
    EXPECT_EQ(o.out, "");
    EXPECT_NE(o.err.find(part), std::string::npos) << "expected: " << part << "\nin: " << o.err;
  }
  const std::string pieces = KILN_SOURCE_DIR "/docs/examples/pieces.ptx";
  const Words launch = {"--grid", "2", "--block", "128", "--target", "sm_90a"};
  std::string x;
};

TEST_F(RunPiecesCliTest, AStructPointsToBuffersThatAreNoArguments) {
  const Words line =
      view({"--buffer", "in=" + x, "--buffer", "y=zeros:f32:2x150", "--arg",
            "struct:zeros:24@0=arg:in@8=arg:y+8@16=f32:2@0x14=i32:200", "--output", "y:" + file("y.npy"), "--json"});
  const Outcome o = kiln(line);
  ASSERT_EQ(o.status, 0) << o.out << o.err;
  EXPECT_EQ(Json::parse(o.out)["outputs"][0]["buffer"], "y");
  EXPECT_EQ(Json::parse(o.out)["outputs"][0]["shape"], (Json{2, 150}));
  const std::vector<float> y = read("y.npy");
  ASSERT_EQ(y.size(), 300u);
  for (unsigned i = 0; i < 300; ++i)
    EXPECT_EQ(y[i], i >= 2 && i < 202 ? 2.f * static_cast<float>(i - 2) : 0.f) << i;
  // The same in kiln check; and a buffer that is not written at all stays unwritten.
  EXPECT_EQ(kiln({"check", pieces, "--entry", "view", "--grid", "2", "--block", "128", "--buffer", "in=" + x,
                  "--buffer", "y=zeros:f32:300", "--arg", "struct:zeros:24@0=arg:in@8=arg:y@16=f32:2@20=i32:200"})
                .status,
            0);
  const Outcome unwritten = kiln(view({"--buffer", "in=out:f32:300", "--buffer", "y=zeros:f32:300", "--arg",
                                       "struct:zeros:24@0=arg:in@8=arg:y@16=f32:2@20=i32:200"}));
  EXPECT_EQ(unwritten.status, 1);
  EXPECT_NE(unwritten.out.find("uninit.global"), std::string::npos) << unwritten.out;
}

TEST_F(RunPiecesCliTest, AStructMayStartFromAFile) {
  // 0, 1, .. 5 as fp32: the factor is element 4, bits of n come in at 20.
  const std::string base = floats("base.npy", 6);
  good(view({"--buffer", "b=" + x, "--arg", "struct:" + base + "@0=arg:b+1024@8=arg:b@20=i32:100", "--output",
             "b:" + file("b.npy")}));
  const std::vector<float> b = read("b.npy");
  for (unsigned i = 0; i < 512; ++i)
    EXPECT_EQ(b[i], i < 100 ? 4.f * static_cast<float>(i + 256) : static_cast<float>(i)) << i;
}

TEST_F(RunPiecesCliTest, PointersIntoOneBuffer) {
  const std::string add = write("add.ptx", addPtx);
  const Words line = {"run", add, "--grid", "1", "--block", "64", "--target", "sm_80"};
  good(with(line, {"--arg", x + "+1024", "--arg", "arg:0+16", "--arg", "u32:32", "--output", "0:" + file("a.npy")}));
  std::vector<float> a = read("a.npy");
  for (unsigned i = 0; i < 512; ++i)
    EXPECT_EQ(a[i], i >= 4 && i < 36 ? 2.f * static_cast<float>(i - 4 + 256) : static_cast<float>(i)) << i;
  good(with(line, {"--arg", x, "--arg", "zeros:f32:80+64", "--arg", "u32:32", "--output", "1:" + file("a.npy")}));
  a = read("a.npy");
  for (unsigned i = 0; i < 80; ++i)
    EXPECT_EQ(a[i], i >= 16 && i < 48 ? 2.f * static_cast<float>(i - 16) : 0.f) << i;
}

TEST_F(RunPiecesCliTest, TensorMaps) {
  const std::string out = "1:" + file("out.npy");
  // 16 rows of 32: from row 0; of a tensor 128 bytes further; of every second row; of 20 columns, the rest zeros.
  const auto rows = [&](const std::string &map, auto expected) {
    good(box(map, {"--output", out}));
    const std::vector<float> values = read("out.npy");
    ASSERT_EQ(values.size(), 256u) << map;
    for (unsigned i = 0; i < 256; ++i)
      ASSERT_EQ(values[i], static_cast<float>(expected(i / 32, i % 32))) << map << " " << i;
  };
  rows("tmap:t:f32:8x32:dims=16x32", [](unsigned r, unsigned c) { return 32 * r + c; });
  rows("tmap:t+128:f32:8x32:dims=15x32:fill=nan", [](unsigned r, unsigned c) { return 32 * r + 32 + c; });
  rows("tmap:t:f32:8x32:dims=8x32:strides=256", [](unsigned r, unsigned c) { return 64 * r + c; });
  rows("tmap:t:f32:8x32:dims=16x20", [](unsigned r, unsigned c) { return c < 20 ? 20 * r + c : 0; });
  rows("tmap:t:f32:8x32:dims=6x32:swizzle=128B:promotion=256B", [](unsigned r, unsigned c) {
    const unsigned from = (c / 4 ^ r) * 4 + c % 4; // 16-byte chunks by row
    return r < 6 ? 32 * r + from : 0;
  });
}

TEST_F(RunPiecesCliTest, TheShapeOfABufferIsThatOfItsTensor) {
  const Words fill = {"run",      KILN_SOURCE_DIR "/docs/examples/vector.ptx",
                      "--entry",  "iota",
                      "--grid",   "4",
                      "--block",  "128",
                      "--arg",    "out:f32:16x32",
                      "--arg",    "u32:512",
                      "--target", "sm_90a",
                      "--output"};
  good(with(fill, {"0:" + file("t.npy")}));
  x = file("t.npy");
  good(box("tmap:t:f32:8x32", {"--output", "1:" + file("out.npy")}));
  EXPECT_EQ(read("out.npy")[255], 255.f);
  refused(box("tmap:t:f16:8x32"), "the box has 2 dimensions of elements of 2 bytes, buffer 't' ('" + x +
                                      "') has 2 of 4 (say the tensor's extents: dims=");
  refused(box("tmap:t:f32:256"), "the box has 1 dimensions");
}

TEST_F(RunPiecesCliTest, WrongPieces) {
  const auto map = [&](const std::string &text, const std::string &part) { refused(box(text), part); };
  map("tmap:t", "is not tmap:BUFFER:TYPE:BOX");
  map("tmap:q:f32:8x32", "there is no buffer 'q' (buffers: 1, t)");
  map("tmap:2:f32:8x32", "argument 2 ('i32:0') is not a buffer");
  map("tmap:t:f33:8x32", "f33");
  map("tmap:t:f32:8xq", "the box 'q' is not a number");
  map("tmap:t:f32:1x1x1x1x1x1", "a tensor map has at most 5");
  map("tmap:t:f32:8x32:swizzle=7B", "7B");
  map("tmap:t:f32:8x32:color=red", "'color' is nothing that a tensor map has");
  map("tmap:t:f32:8x32:dims=16", "dims has 1 numbers, the box has 2 dimensions (give 2 numbers");
  map("tmap:t:f32:8x32:dims=16x32:strides=128x4", "the innermost has no stride");
  map("tmap:t:f32:8x32:dims=16x32:strides=100", "stride");
  map("tmap:t+2049:f32:8x32:dims=1x32", "byte 2049 is past the end of buffer 't' ('" + x + "'), which has 2048 bytes");
  map("tmap:t+4:f32:8x32:dims=15x32", "address");
  map("arg:t", "is a pointer (8 bytes); parameter 0 'map' of kernel 'box' is b8[128]");
  const auto structure = [&](const std::string &text, const std::string &part) {
    refused(view({"--buffer", "in=" + x, "--arg", text}), part);
  };
  structure("struct:24", "'24' is neither FILE.npy nor zeros:BYTES");
  structure("struct:zeros:0", "a struct of 0 bytes");
  structure("struct:zeros:99999999", "1 to 32764 bytes");
  structure("struct:zeros:16", "is a struct of 16 bytes; parameter 0 'params' of kernel 'view' is b8[24]");
  structure("struct:zeros:24@0", "'@0' has no value");
  structure("struct:zeros:24@20=arg:in", "'arg:in' takes 8 bytes at 20, the struct has 24");
  structure("struct:zeros:24@0=arg:in@4=i32:1", "'i32:1' at 4 overlaps 'arg:in' at 0");
  structure("struct:zeros:24@0=out:f32:4", "cannot lie in a struct");
  structure("struct:zeros:24@0=i32:x", "at byte 0: argument 0 ('i32:x'): 'x' is not an integer");
  structure("struct:zeros:24@0=arg:out", "at byte 0: argument 0 ('arg:out'): there is no buffer 'out' (buffers: in)");
  structure("struct:zeros:192@8=tmap:in:f32:8x32:dims=16x32", "is a struct of 192 bytes");
  refused(view({"--buffer", "2=" + x}), "is not NAME=VALUE");
  refused(view({"--buffer", "b=i32:4"}), "is not a whole buffer");
  refused(view({"--buffer", "b=" + x, "--buffer", "b=" + x}), "--buffer b is given twice");
  refused(view({"--buffer", "b=" + x, "--arg", "struct:zeros:24", "--output", "c:" + file("c.npy")}),
          "there is no buffer c");
  refused({"run", KILN_SOURCE_DIR "/docs/examples/scale.mlir", "--grid", "1", "--target", "sm_80", "--arg", x, "--arg",
           "out:f32:512", "--arg", "struct:zeros:4", "--arg", "i32:512"},
          "is no number");
}

TEST_F(RunPiecesCliTest, CooperativeLaunchesHaveAWorkspace) {
  const std::string ptx = write("grid.ptx", R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry k() { .reg .b32 %r<3>; .reg .pred %p<2>;
  mov.u32 %r1, %envreg1; mov.u32 %r2, %envreg2; or.b32 %r1, %r1, %r2; setp.eq.u32 %p1, %r1, 0; @%p1 trap; ret; }
)");
  const Words line = {"run", ptx, "--grid", "4", "--block", "32", "--target", "sm_80"};
  EXPECT_EQ(kiln(line).status, 1);
  EXPECT_EQ(kiln(with(line, {"--cooperative"})).status, 0);
  EXPECT_EQ(kiln({"check", ptx, "--grid", "4", "--block", "32", "--cooperative"}).status, 0);
  refused({"run", ptx, "--grid", "100000", "--block", "32", "--target", "sm_80", "--cooperative"},
          "a cooperative launch of 100000 blocks, of which emulator:sm_80 holds ");
  refused({"run", KILN_SOURCE_DIR "/docs/examples/scale.mlir", "--grid", "1", "--target", "sm_80", "--cooperative"},
          "--cooperative: the kernel of a text file says this itself");
}

/// Two instances of a template and a function, as a C++ compiler names them.
constexpr const char *mangledPtx = R"(.version 8.0
.target sm_80
.address_size 64
.visible .entry _Z5scaleIfLi64EEvPT_i() { ret; }
.visible .entry _Z5scaleIfLi128EEvPT_i() { ret; }
.visible .entry _Z4copyPKfPf(.param .u64 a, .param .u64 b) { ret; }
)";

TEST_F(RunPiecesCliTest, APartOfANameIsEnough) {
  const std::string ptx = write("mangled.ptx", mangledPtx);
  const auto of = [&](const std::string &entry) {
    return Words{"run", ptx, "--grid", "1", "--block", "1", "--target", "sm_80", "--json", "--entry", entry};
  };
  for (const char *entry : {"_Z5scaleIfLi128EEvPT_i", "Li128", "scale<float, 128>", "2"}) {
    const Outcome o = kiln(of(entry));
    ASSERT_EQ(o.status, 0) << entry << o.err;
    EXPECT_EQ(Json::parse(o.out)["kernel"], "_Z5scaleIfLi128EEvPT_i") << entry;
  }
  const auto error = [&](const std::string &entry, const std::string &part) {
    const Outcome o = kiln(of(entry));
    EXPECT_EQ(o.status, 2);
    EXPECT_NE(o.err.find(part), std::string::npos) << o.err;
  };
  error("scale", "--entry scale is a part of the names of 2 kernels of '" + ptx +
                     "': 1: void scale<float, 64>(float*, int), 2: void scale<float, 128>(float*, int) (give more of "
                     "the name, or the number)");
  error("4", "has kernels 1 to 3");
  error("0", "has kernels 1 to 3");
  error("sale", "has no kernel 'sale'");
  error("copy", "takes 2 arguments, 0 were given");
  const Outcome lines = kiln({"check", ptx, "--decode"});
  EXPECT_EQ(lines.status, 0) << lines.err;
  EXPECT_NE(lines.out.find("3: copy(float const*, float*) on sm_80: decoded\n"), std::string::npos) << lines.out;
}

TEST_F(RunPiecesCliTest, LongNamesAreCut) {
  // Names that differ at their end only.
  const std::string name = "k" + std::string(1400, 'x');
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (const char *tail : {"_first", "_second"})
    text += ".visible .entry " + name + tail +
            "(.param .u64 p) { .reg .b64 %rd<2>; .reg .b32 %r<2>; ld.param.u64 %rd1, "
            "[p]; ld.global.u32 %r1, [%rd1]; ret; }\n";
  const std::string ptx = write("long.ptx", text);
  const Words line = {"run", ptx, "--grid", "1", "--block", "1", "--target", "sm_80", "--arg", "out:f32:1", "--entry"};
  const Outcome both = kiln(with(line, {"xxx"}));
  EXPECT_EQ(both.status, 2);
  EXPECT_NE(both.err.find("1: ..." + std::string(19, 'x') + "_first, 2: ..." + std::string(19, 'x') + "_second"),
            std::string::npos)
      << both.err;
  const Outcome one = kiln(with(line, {"second"}));
  EXPECT_EQ(one.status, 1) << one.err;
  EXPECT_LT(one.out.size() + one.err.size(), 700u) << one.out;
  EXPECT_NE(one.out.find("finding uninit.global: kernel kxxx"), std::string::npos) << one.out;
  const Outcome wrong = kiln(with(line, {"second", "--cluster", "2"}));
  EXPECT_EQ(wrong.status, 2) << wrong.out;
  EXPECT_LT(wrong.err.size(), 400u) << wrong.err;
}

/// Race on one source line by pairs of instructions: four stores of warps that differ.
TEST_F(RunPiecesCliTest, FindingsAreGroupedBySourceLines) {
  std::string stores;
  for (int i = 0; i < 4; ++i)
    stores += "st.shared.u32 [t+" + std::to_string(4 * i) + "], %r1;\n";
  const std::string ptx = write("race.ptx", ".version 8.0\n.target sm_80\n.address_size 64\n.file 1 \"r.cu\"\n"
                                            ".visible .entry k() { .reg .b32 %r<2>; .shared .align 4 .b8 t[16];\n"
                                            "mov.u32 %r1, %tid.x; shr.u32 %r1, %r1, 5;\n.loc 1 7 1\n" +
                                                stores + "ret; }\n");
  const Words line = {"run", ptx, "--grid", "1", "--block", "64", "--target", "sm_80"};
  const Outcome text = kiln(line);
  EXPECT_EQ(text.status, 1);
  EXPECT_NE(text.out.find("[4 times by 4 pairs of instructions]\n"), std::string::npos) << text.out;
  EXPECT_NE(text.out.find("kernel 'k': 1 finding\n"), std::string::npos) << text.out;
  const Json j = Json::parse(kiln(with(line, {"--json"})).out);
  ASSERT_EQ(j["findings"].size(), 1u) << j.dump();
  EXPECT_EQ(j["findings"][0]["count"], 4);
  EXPECT_EQ(j["findings"][0]["places"], 4);
  EXPECT_EQ(j["findings"][0]["id"], "race.shared");
}

} // namespace
} // namespace kiln::test
