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

std::string oneLine(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  return text;
}

KernelSource mapped(const std::string &maps) {
  return addSource(oneLine("field hidden = [" + maps + "]") + "\n");
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
  Status failure;
  ASSERT_EQ((*hidden)->write(nullJit->device(), *layout, arguments.data(), written.data(), failure),
            HiddenParameters::Outcome::Written)
      << failure.toString();
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

/// As if passes had made the maps, which are not where the request wants none.
KernelSource mappedByPasses(const std::string &maps, const std::string &extra = {}) {
  KernelSource out = mapped(maps);
  const std::string field = "field hidden";
  out.programText.replace(out.programText.find(field), field.size(), extra + "mapped hidden");
  return out;
}

class WithoutMapsTest : public HiddenParametersTest {
protected:
  /// The variants whose first calls there were.
  void SetUp() override {
    HiddenParametersTest::SetUp();
    JitOptions options = jitOptions();
    options.onFirstCall = [&](const LoadedKernel &loaded) { variants.push_back(&loaded); };
    options.knobs.log = "launch=info";
    options.log = [&](std::string_view line) { lines.emplace_back(line); };
    nullJit = makeNullJit(std::move(options));
  }
  std::unique_ptr<Jit> makeNullJit(JitOptions options) {
    auto made = Jit::create(null, std::move(options));
    EXPECT_TRUE(made.ok());
    return std::move(*made);
  }
  static std::uint64_t launchesOf(const LoadedKernel &loaded) {
    return dynamic_cast<NullKernel &>(loaded.function()).launches;
  }
  std::vector<const LoadedKernel *> variants;
  std::vector<std::string> lines;
};

TEST_F(WithoutMapsTest, RunWhereAMapThatPassesMadeBreaksARule) {
  const KernelSource source = mappedByPasses(mapText());
  ASSERT_TRUE(launch(source, 4096, 16).ok());
  ASSERT_EQ(variants.size(), 1u);
  for (const int n : {0, -4, 3, 0, 16}) {
    const Status s = launch(source, 4096, n);
    ASSERT_TRUE(s.ok()) << s.toString();
  }
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(variants[0]->variant(), "x/16 y/16 out/16");
  EXPECT_EQ(variants[1]->variant(), "x/16 y/16 out/16, no tensor maps");
  EXPECT_NE(variants[0]->key(), variants[1]->key());
  EXPECT_NE(variants[1]->key().find("{\"tensor_maps\": false}"), std::string::npos) << variants[1]->key();
  EXPECT_EQ(launchesOf(*variants[0]), 2u);
  EXPECT_EQ(launchesOf(*variants[1]), 4u);
  EXPECT_EQ(variants[1]->guards().size(), 3u);
  EXPECT_EQ(null.tensorMaps, 1u); // the device was not asked for the others
  ASSERT_EQ(lines.size(), 1u);
  EXPECT_NE(lines[0].find("add [x/16 y/16 out/16] runs without tensor maps where they cannot be made, as here (said "
                          "once): the tensor map of argument 0 'x' (extents 'n' = 0, 4; strides 'n' * 4 = 0 bytes): "
                          "tensor map: dims[0] = 0 is not in 1..2^32"),
            std::string::npos)
      << lines[0];
  // On disk they are two entries.
  const std::unique_ptr<Jit> other = makeNullJit(jitOptions());
  ASSERT_TRUE(kernelOf(*other, source)->launch({1}, nullptr, 4096ull, 256ull, 512ull, 0).ok());
  EXPECT_EQ(other->counters().diskHits, 2u);
  EXPECT_EQ(other->counters().compiles, 0u);
}

/// Extents and strides beyond what a map holds, in arguments and in products of them.
TEST_F(WithoutMapsTest, RunForTensorsThatAreTooLarge) {
  for (const char *change :
       {R"("strides": [["*", {"argument": 3}, 1099511627776]])", R"("strides": [["*", {"argument": 3}, -16]])",
        R"("extents": [["*", {"argument": 3}, 4294967296], 4])", R"("extents": [["*", {"argument": 3}, 134217728], 4])",
        R"("strides": [["*", {"argument": 3}, 4611686018427387904]])"}) {
    const Status s = launch(mappedByPasses(mapText(change)), 4096, 16);
    EXPECT_TRUE(s.ok()) << change << s.toString();
  }
  EXPECT_EQ(variants.size(), 10u);
}

TEST_F(WithoutMapsTest, MapsOfTheTextBreakRulesAsEver) {
  // None of passes: the text alone decides, and no other code is made.
  const KernelSource written = mapped(mapText());
  EXPECT_NE(launch(written, 4096, 0).message().find("kernel 'add' [x/16 y/16 out/16]: the tensor map of argument 0"),
            std::string::npos);
  EXPECT_EQ(variants.size(), 1u);
  // Of both: without those of passes, the text's own is left.
  const std::string own = mapText(R"("address": 2, "extents": [["+", {"argument": 3}, 8], 4], "strides": [64])", 64);
  const KernelSource both = mappedByPasses(own + ", " + mapText({}, 192), "field hidden = [" + oneLine(own) + "]\n");
  ASSERT_TRUE(launch(both, 4096, 16).ok());
  ASSERT_TRUE(launch(both, 4096, 0).ok());
  ASSERT_EQ(variants.size(), 3u);
  const auto &kernel = dynamic_cast<NullKernel &>(variants[2]->function());
  EXPECT_EQ(kernel.launches, 1u);
  EXPECT_EQ(wordAt(kernel.lastArguments + 64), 512u);
  const Status s = launch(both, 4096, -8);
  EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
  EXPECT_EQ(s.message(), "kernel 'add' [x/16 y/16 out/16, no tensor maps]: the tensor map of argument 2 'out' (extents "
                         "'n' + 8 = 0, 4; strides 64 bytes): tensor map: dims[0] = 0 is not in 1..2^32");
  EXPECT_EQ(variants.size(), 3u);
}

TEST_F(WithoutMapsTest, AreMadeByPrepareToo) {
  JitKernel *kernel = kernelOf(*nullJit, mappedByPasses(mapText()));
  LaunchArguments arguments;
  for (const std::uint64_t address : {4096, 256, 512})
    arguments.add(address);
  arguments.add(0);
  const auto prepared = kernel->prepare(arguments.view());
  ASSERT_TRUE(prepared.ok()) << prepared.status().toString();
  ASSERT_EQ(variants.size(), 2u);
  EXPECT_EQ(*prepared, variants[1]);
  null.stream.capturing = true;
  EXPECT_TRUE(kernel->launch({1}, nullptr, arguments).ok());
  EXPECT_EQ(launchesOf(*variants[1]), 1u);
}

TEST_F(WithoutMapsTest, AreAFirstCallOfTheirOwn) {
  const KernelSource source = mappedByPasses(mapText());
  ASSERT_TRUE(launch(source, 4096, 16).ok());
  null.stream.capturing = true;
  const Status refused = launch(source, 4096, 0);
  EXPECT_EQ(refused.code(), StatusCode::NotReady);
  EXPECT_NE(refused.message().find("[x/16 y/16 out/16, no tensor maps] was not called before"), std::string::npos)
      << refused.message();
  EXPECT_TRUE(launch(source, 4096, 16).ok()); // with maps, as ever
  null.stream.capturing = false;
  struct Counting final : MissHandler {
    void missed() override { ++misses; }
    unsigned misses = 0;
  } counting;
  LaunchArguments arguments;
  for (const std::uint64_t address : {4096, 256, 512})
    arguments.add(address);
  arguments.add(0);
  MissHandler *const onMiss = &counting;
  for (unsigned i = 0; i < 2; ++i)
    ASSERT_TRUE(kernelOf(*nullJit, source)->launch({1}, nullptr, arguments.view(), onMiss).ok());
  EXPECT_EQ(counting.misses, 1u);
}

/// A device that fails is no reason to run other code.
TEST_F(WithoutMapsTest, DoNotHideADeviceThatFails) {
  const KernelSource source = mappedByPasses(mapText());
  null.failTensorMaps = 1;
  const Status s = launch(source, 4096, 16);
  EXPECT_EQ(s.code(), StatusCode::DeviceError);
  EXPECT_TRUE(s.message().starts_with("kernel 'add' [x/16 y/16 out/16]: the tensor map of argument 0 'x'"))
      << s.message();
  EXPECT_EQ(variants.size(), 1u);
  EXPECT_TRUE(launch(source, 4096, 16).ok());
}

/// Facts that the code without maps relies on are its own.
TEST_F(WithoutMapsTest, HaveGuardsOfTheirOwn) {
  const KernelSource source = mappedByPasses(mapText(), R"(guard {"argument": 3, "divisibility": 4})"
                                                        "\n");
  EXPECT_TRUE(launch(source, 4096, 0).ok());
  const Status s = launch(source, 4096, -2);
  EXPECT_NE(s.message().find("argument 3 'n' is"), std::string::npos) << s.message();
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
