// Parameters that the launcher makes: tensor maps of the arguments, by the recipes in the metadata.
#include "runtime/jit/HiddenParameters.h"
#include "compiler/target/ArgumentExpression.h"
#include "tests/jit/JitFixture.h"

#include <nlohmann/json.hpp>

#include <random>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

/// A map of `x`, whose rows of `n` floats lie one after the other; `changes` replace fields.
std::string mapText(const std::string &changes = {}, unsigned offset = 64) {
  return R"({"kind": "tensor_map", "offset": )" + std::to_string(offset) +
         R"(, "bytes": 128, "element": "f32", "address": 0, "extents": [{"argument": 3}, 4],
 "strides": [["*", {"argument": 3}, 4]], "box": [16, 4], "swizzle": "none", "interleave": "none", "promotion": "none",
 "fill": "zeros")" +
         (changes.empty() ? "" : ", " + changes) + "}"; // of two equal names the last one counts
}

KernelSource mapped(const std::string &maps) {
  std::string line = "field hidden = [" + maps + "]";
  std::replace(line.begin(), line.end(), '\n', ' ');
  return addSource(line + "\n");
}

class HiddenParametersTest : public NullJitTest {
protected:
  Status launch(const KernelSource &source, std::uint64_t x, int n) {
    return kernelOf(*nullJit, source)->launch({1}, nullptr, x, std::uint64_t(256), std::uint64_t(512), n);
  }
  /// The parameters of the last launch of the class of x/16.
  const std::byte *parametersOf(const KernelSource &source) {
    auto loaded = nullJit->compile(
        source, std::vector<ArgumentFact>{
                    ArgumentFact::divisible(16), ArgumentFact::divisible(16), ArgumentFact::divisible(16), {}});
    EXPECT_TRUE(loaded.ok()) << loaded.status().toString();
    return dynamic_cast<NullKernel &>((*loaded)->function()).lastArguments;
  }
  std::uint64_t wordAt(const std::byte *at) {
    std::uint64_t out;
    std::memcpy(&out, at, 8);
    return out;
  }
};

TEST_F(HiddenParametersTest, AMapIsMadeOfTheArguments) {
  const KernelSource source = mapped(mapText());
  ASSERT_TRUE(launch(source, 4096, 100).ok());
  const std::byte *all = parametersOf(source);
  EXPECT_EQ(wordAt(all), 4096u);
  EXPECT_EQ(wordAt(all + 16), 512u);
  EXPECT_EQ(wordAt(all + 24), 100u); // n, and zeros
  for (unsigned i = 32; i < 64; ++i)
    EXPECT_EQ(all[i], std::byte(0)) << i;
  EXPECT_EQ(wordAt(all + 64), 4096u); // NullDevice: address, extents, strides
  EXPECT_EQ(wordAt(all + 64 + 8), 100u);
  EXPECT_EQ(wordAt(all + 64 + 16), 4u);
  EXPECT_EQ(wordAt(all + 64 + 48), 400u);
}

TEST_F(HiddenParametersTest, ExpressionsOfArguments) {
  const KernelSource source = mapped(mapText(
      R"("extents": [["ceildiv", {"argument": 3}, 7], ["floordiv", {"argument": 3}, 7],
 ["mod", ["+", {"argument": 3}, -1], 7], ["*", {"argument": 3}, {"argument": 3}]], "strides": [16, 32, 64],
 "box": [4, 1, 1, 1])"));
  ASSERT_TRUE(launch(source, 4096, 102).ok());
  const std::byte *map = parametersOf(source) + 64;
  EXPECT_EQ(wordAt(map + 8), 15u);
  EXPECT_EQ(wordAt(map + 16), 14u);
  EXPECT_EQ(wordAt(map + 24), 3u);
  EXPECT_EQ(wordAt(map + 32), 10404u);
}

TEST_F(HiddenParametersTest, MapsAreMadeOnceForTheSameTensor) {
  const KernelSource source = mapped(mapText() + ", " + mapText(R"("address": 2)", 192));
  for (unsigned i = 0; i < 5; ++i) {
    ASSERT_TRUE(launch(source, 4096, 100).ok());
    EXPECT_EQ(null.tensorMaps, 2u);
  }
  ASSERT_TRUE(launch(source, 8192, 100).ok()); // another address: one more
  EXPECT_EQ(null.tensorMaps, 3u);
  EXPECT_EQ(wordAt(parametersOf(source) + 64), 8192u);
  ASSERT_TRUE(launch(source, 8192, 96).ok()); // other extents: both
  EXPECT_EQ(null.tensorMaps, 5u);
  ASSERT_TRUE(launch(source, 4096, 100).ok()); // known still
  EXPECT_EQ(null.tensorMaps, 5u);
  EXPECT_EQ(wordAt(parametersOf(source) + 64), 4096u);
  EXPECT_EQ(wordAt(parametersOf(source) + 192), 512u);
  // Rounds of more tensors than are kept find none, and are right all the same.
  for (unsigned i = 0; i < 3 * TensorMapCache::slots; ++i) {
    const std::uint64_t x = 65536 + 4096 * (i % (TensorMapCache::slots + 1));
    ASSERT_TRUE(launch(source, x, 100).ok());
    EXPECT_EQ(wordAt(parametersOf(source) + 64), x);
  }
}

TEST_F(HiddenParametersTest, BrokenRulesNameTheArgumentsAndTheRemedy) {
  const KernelSource source = mapped(mapText());
  const auto refused = [&](std::uint64_t x, int n, const std::string &message, const std::string &remedy) {
    const Status s = launch(source, x, n);
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(s.message(), message);
    EXPECT_EQ(s.remedy(), remedy);
  };
  refused(4096, 3,
          "kernel 'add' [x/16 y/16 out/16]: the tensor map of argument 0 'x' (extents 'n' = 3, 4; strides 'n' * 4 = 12 "
          "bytes): tensor map: strides[0] = 12 bytes is not a multiple of 16",
          "pad the rows of the tensor");
  refused(4100, 16,
          "kernel 'add' [y/16 out/16]: the tensor map of argument 0 'x' (extents 'n' = 16, 4; strides 'n' * 4 = 64 "
          "bytes): tensor map: address 0x1004 is not a multiple of 16",
          "start the tensor at an aligned element");
  refused(4096, 0,
          "kernel 'add' [x/16 y/16 out/16]: the tensor map of argument 0 'x' (extents 'n' = 0, 4; strides 'n' * 4 = 0 "
          "bytes): tensor map: dims[0] = 0 is not in 1..2^32",
          "do not launch for an empty tensor");
  refused(4096, -4,
          "kernel 'add' [x/16 y/16 out/16]: the tensor map of argument 0 'x' (extents 'n' = -4, 4; strides 'n' * 4 = "
          "-16 bytes): extents[0] is -4",
          "pass extents of at least 1");
  EXPECT_TRUE(launch(source, 4096, 16).ok()); // the kernel is none the worse

  const Status wide = launch(mapped(mapText(R"("strides": [["*", {"argument": 3}, 1099511627776]])")), 4096, 16);
  EXPECT_NE(wide.message().find("strides[0] = 17592186044416 bytes is not below 2^40"), std::string::npos)
      << wide.message();
  const Status large = launch(mapped(mapText(R"("strides": [["*", {"argument": 3}, 4611686018427387904]])")), 4096, 16);
  EXPECT_NE(large.message().find("'n' * 4611686018427387904 = no number bytes): strides[0] is not a 64-bit number"),
            std::string::npos)
      << large.message();
  const Status zero = launch(mapped(mapText(R"("extents": [["floordiv", 8, {"argument": 3}], 4])")), 4096, 0);
  EXPECT_NE(zero.message().find("extents[0] is not a 64-bit number"), std::string::npos) << zero.message();
}

/// NumPy and others leave any number there.
TEST_F(HiddenParametersTest, TheStrideOfOneRowDoesNotMatter) {
  for (const char *stride : {"12", "-4", "1099511627777"}) {
    SCOPED_TRACE(stride);
    const std::string strides = std::string(R"("strides": [)") + stride + "]";
    const KernelSource one = mapped(mapText(strides + R"(, "extents": [64, 1])"));
    const Status s = launch(one, 4096, 16);
    EXPECT_TRUE(s.ok()) << s.toString();
    EXPECT_EQ(wordAt(parametersOf(one) + 64 + 8), 64u);
    EXPECT_EQ(wordAt(parametersOf(one) + 64 + 16), 1u);
    EXPECT_FALSE(launch(mapped(mapText(strides + R"(, "extents": [64, 2])")), 4096, 16).ok());
  }
}

TEST_F(HiddenParametersTest, RecipesThatThisRuntimeDoesNotKnowAreRefused) {
  std::string deep = R"({"argument": 3})";
  for (unsigned i = 0; i < maxExpressionDepth; ++i)
    deep = R"(["+", )" + deep + ", 1]";
  for (const std::string &maps : {std::string("7"),
                                  std::string("{}"),
                                  mapText(R"("kind": "scratch")"),
                                  mapText(R"("element": "f31")"),
                                  mapText(R"("swizzle": "96B")"),
                                  mapText(R"("offset": 32)"),
                                  mapText(R"("offset": 0)"),
                                  mapText(R"("bytes": 64)"),
                                  mapText(R"("address": 3)"),
                                  mapText(R"("address": 4)"),
                                  mapText(R"("address": -1)"),
                                  mapText(R"("extents": [{"argument": 4}, 4])"),
                                  mapText(R"("extents": [{"argument": 0}, 4])"),
                                  mapText(R"("extents": [{"argument": 3, "of": 1}, 4])"),
                                  mapText(R"("extents": [["-", 8, 1], 4])"),
                                  mapText(R"("extents": [["+", 8], 4])"),
                                  mapText(R"("extents": ["8", 4])"),
                                  mapText(R"("extents": [8])"),
                                  mapText(R"("extents": [8, 8, 8])"),
                                  mapText(R"("strides": [])"),
                                  mapText(R"("box": [16])"),
                                  mapText(R"("box": [16, -4])"),
                                  mapText(R"("box": [16, 257])"),
                                  mapText(R"("box": [3, 4])"),
                                  mapText(R"("element_strides": [1])"),
                                  mapText(R"("element_strides": [1, 9])"),
                                  mapText(R"("extents": [)" + deep + ", 4]"),
                                  mapText() + ", " + mapText(),
                                  mapText() + ", " + mapText({}, 128)}) {
    const Status s = launch(mapped(maps), 4096, 16);
    EXPECT_FALSE(s.ok()) << maps;
    EXPECT_TRUE(s.message().starts_with("kernel 'add'")) << s.message();
  }
  std::string many;
  for (unsigned i = 0; i < 32; ++i)
    many += (i ? ", " : "") + mapText({}, 64 + 128 * i);
  const Status large = launch(mapped(many), 4096, 16);
  EXPECT_NE(large.message().find("its parameters take 4160 bytes, 28 of them its arguments, the rest tensor maps; a "
                                 "launch passes at most 4096"),
            std::string::npos)
      << large.message();
}

/// A GPU aligns maps to 64 bytes where it keeps parameters; the first parameter does not lie at a multiple of that.
TEST_F(HiddenParametersTest, ParametersLieWhereTheLoadedCodeHasThem) {
  const auto layout = ArgumentLayout::create(mapped(mapText()));
  ASSERT_TRUE(layout.ok()) << layout.status().toString();
  const auto hidden =
      HiddenParameters::parse(nlohmann::ordered_json::parse("[" + mapText() + ", " + mapText({}, 192) + "]"), *layout);
  ASSERT_TRUE(hidden.ok()) << hidden.status().toString();
  using Place = std::pair<std::uint32_t, std::uint32_t>; // offset and bytes
  const auto place = [&](const std::vector<Place> &places) {
    std::vector<ParameterInfo> parameters(places.size());
    for (std::size_t i = 0; i < places.size(); ++i)
      parameters[i].offset = places[i].first, parameters[i].size = places[i].second;
    return (*hidden)->place(parameters, *layout);
  };
  EXPECT_FALSE(place({}));
  EXPECT_FALSE(place({{48, 128}}));
  EXPECT_FALSE(place({{16, 128}, {144, 128}})); // over an argument
  EXPECT_FALSE(place({{48, 128}, {112, 128}})); // over the other
  EXPECT_FALSE(place({{48, 64}, {176, 128}}));
  EXPECT_FALSE(place({{48, 128}, {4000, 128}}));
  ASSERT_TRUE(place({{48, 128}, {176, 128}}));
  EXPECT_EQ((*hidden)->bytes(), 304u);
  std::array<std::byte, 28> arguments{};
  const std::uint64_t x = 4096;
  const std::uint32_t n = 100;
  std::memcpy(arguments.data(), &x, 8);
  std::memcpy(arguments.data() + 24, &n, 4);
  std::vector<std::byte> written(304, std::byte(0xCD));
  const Status s = (*hidden)->write(nullJit->device(), *layout, arguments.data(), written.data());
  ASSERT_TRUE(s.ok()) << s.toString();
  EXPECT_EQ(wordAt(written.data()), 4096u);
  EXPECT_EQ(wordAt(written.data() + 24), 100u);
  for (const std::size_t at : {48u, 176u}) {
    EXPECT_EQ(wordAt(written.data() + at), 4096u); // NullDevice: address, extents
    EXPECT_EQ(wordAt(written.data() + at + 8), 100u);
  }
}

/// The code must declare exactly the parameters that the metadata describes.
TEST_F(HiddenParametersTest, CodeWithOtherParametersIsRefused) {
  const auto compiled = [&](const std::string &parameter, const std::string &maps) {
    std::string ptx = addPtx;
    ptx.replace(ptx.find(".param .u32 n"), 13, ".param .u32 n" + parameter);
    KernelSource source = maps.empty() ? addSource() : mapped(maps);
    source.programText.replace(source.programText.find("ptx\n"), std::string::npos, "ptx\n" + ptx);
    return jit->compile(source).status();
  };
  const std::string map = ", .param .align 64 .b8 map[128]";
  EXPECT_TRUE(compiled("", "").ok());
  EXPECT_TRUE(compiled(map, mapText()).ok());
  EXPECT_TRUE(compiled(map, mapText({}, 128)).ok()); // the code says where
  for (const Status &s : {compiled(map, ""), compiled("", mapText()), compiled(map + ", .param .u64 more", mapText()),
                          compiled(", .param .u64 more", mapText())}) {
    EXPECT_EQ(s.code(), StatusCode::Internal);
    EXPECT_NE(s.message().find("disagree on the block or the parameters"), std::string::npos) << s.message();
  }
}

TEST_F(HiddenParametersTest, TheClusterGoesToTheDevice) {
  const KernelSource source = addSource("field cluster = [2, 1, 4]\n");
  ASSERT_TRUE(launch(source, 4096, 5).ok());
  const std::vector<ArgumentFact> facts{
      ArgumentFact::divisible(16), ArgumentFact::divisible(16), ArgumentFact::divisible(16), {}};
  auto loaded = nullJit->compile(source, facts);
  ASSERT_TRUE(loaded.ok()) << loaded.status().toString();
  EXPECT_EQ((*loaded)->cluster(), (Dim3{2, 1, 4}));
  EXPECT_EQ(dynamic_cast<NullKernel &>((*loaded)->function()).last.cluster, (Dim3{2, 1, 4}));
  for (const char *cluster : {"2", "[2, 1]", "[0, 1, 1]", "[2, 1, -1]", "[2, 1, 65536]", "[2, 1, \"1\"]"}) {
    const Status s = launch(addSource(std::string("field cluster = ") + cluster + "\n"), 4096, 5);
    EXPECT_EQ(s.code(), StatusCode::Internal) << cluster;
    EXPECT_NE(s.message().find("the compiler's metadata has a wrong 'cluster'"), std::string::npos) << s.message();
  }
}

/// Each map that is found belongs to its key, whatever other threads write meanwhile.
TEST(TensorMapCache, ReadersAndWritersShareIt) {
  TensorMapCache cache;
  const auto keyOf = [](std::uint64_t i) {
    TensorMapCache::Key key;
    key.fill(i);
    return key;
  };
  std::atomic<std::uint64_t> found{0}, wrong{0};
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      std::mt19937_64 random(t);
      alignas(64) std::byte bytes[TensorMap::size];
      for (unsigned n = 0; n < 20000; ++n) {
        const std::uint64_t i = random() % 12;
        if (cache.find(keyOf(i), bytes)) {
          ++found;
          for (const std::byte b : bytes)
            wrong += b != static_cast<std::byte>(i);
          continue;
        }
        TensorMap map;
        map.bytes.fill(static_cast<std::byte>(i));
        cache.insert(keyOf(i), map);
      }
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(wrong, 0u);
  EXPECT_GT(found, 1000u);
}

} // namespace
