#include "runtime/jit/ArgumentClass.h"

#include "kiln/Language.h"
#include "kiln/Tensor.h"
#include "runtime/jit/Metadata.h"
#include "runtime/jit/VariantTable.h"

#include <gtest/gtest.h>

#include <random>

using namespace kiln;

namespace {

KernelSource sourceOf(std::vector<ArgumentSpec> arguments) {
  KernelSource out;
  out.name = "k";
  out.arguments = std::move(arguments);
  return out;
}
ArgumentLayout layoutOf(std::vector<ArgumentSpec> arguments) {
  auto layout = ArgumentLayout::create(sourceOf(std::move(arguments)));
  EXPECT_TRUE(layout.ok()) << layout.status().toString();
  return std::move(*layout);
}

TEST(Arguments, TypedAndBuiltPacksAreTheStructThatAHostCompilerLaysOut) {
  struct Expected {
    bool a;
    std::int16_t b;
    std::int32_t c;
    std::int8_t d;
    double e;
    float f;
    std::int64_t g;
    std::uint8_t h;
  } expected{};
  std::memset(static_cast<void *>(&expected), 0, sizeof expected);
  expected.a = true, expected.b = -2, expected.c = 3, expected.d = -4, expected.e = 5.5, expected.f = 6.25f;
  expected.g = -7, expected.h = 200;
  const ArgumentPack<bool, std::int16_t, std::int32_t, std::int8_t, double, float, std::int64_t, std::uint8_t> pack(
      expected.a, expected.b, expected.c, expected.d, expected.e, expected.f, expected.g, expected.h);
  LaunchArguments built;
  built.add(true).add(std::int16_t(-2)).add(3).add(std::int8_t(-4)).add(5.5).add(6.25f).add(std::int64_t(-7));
  built.add(std::uint8_t(200));
  const ArgumentLayout layout = layoutOf(
      {{"a", "i1"}, {"b", "i16"}, {"c", "i32"}, {"d", "i8"}, {"e", "f64"}, {"f", "f32"}, {"g", "i64"}, {"h", "i8"}});
  const std::size_t offsets[] = {offsetof(Expected, a), offsetof(Expected, b), offsetof(Expected, c),
                                 offsetof(Expected, d), offsetof(Expected, e), offsetof(Expected, f),
                                 offsetof(Expected, g), offsetof(Expected, h)};
  const unsigned sizes[] = {1, 2, 4, 1, 8, 4, 8, 1};
  for (const ArgumentView &view : {pack.view(), built.view()}) {
    EXPECT_EQ(view.count, 8u);
    EXPECT_EQ(view.bytes, offsetof(Expected, h) + 1); // no padding at the end
    EXPECT_TRUE(layout.accepts(view));
    for (unsigned i = 0; i < 8; ++i) {
      EXPECT_EQ(layout.offset(i), offsets[i]);
      EXPECT_EQ(std::memcmp(view.data + offsets[i], reinterpret_cast<const char *>(&expected) + offsets[i], sizes[i]),
                0)
          << i;
    }
  }
  EXPECT_EQ(layout.bytes(), built.view().bytes);
}

TEST(Arguments, AWrongTypeOrNumberNamesTheArgument) {
  const ArgumentLayout layout = layoutOf({{"x", "ptr<f32>"}, {"n", "i64"}, {"scale", "f32"}});
  const auto message = [&](const LaunchArguments &a) {
    EXPECT_FALSE(layout.accepts(a.view()));
    return layout.checkTypes(a.view()).toString();
  };
  LaunchArguments narrow;
  narrow.add(std::uint64_t(16)).add(5).add(1.0f);
  EXPECT_NE(message(narrow).find("argument 1 'n' has type i64, a value of type i32 was given"), std::string::npos);
  LaunchArguments few;
  few.add(std::uint64_t(16)).add(std::int64_t(5));
  EXPECT_NE(message(few).find("it has 3 arguments (x, n, scale), 2 were given ('scale' is the first"),
            std::string::npos)
      << message(few);
  LaunchArguments notAPointer;
  notAPointer.add(std::int64_t(16)).add(std::int64_t(5)).add(1.0f);
  EXPECT_NE(message(notAPointer).find("argument 0 'x' has type ptr"), std::string::npos);
  LaunchArguments words; // an address without a type is taken for a pointer and for an i64
  words.add(std::uint64_t(16)).add(std::uint64_t(5)).add(1.0f);
  EXPECT_TRUE(layout.checkTypes(words.view()).ok());
}

/// A Tensor knows what it points to; a Buffer and an address do not, and are taken for any pointer.
TEST(Arguments, ATensorOfAnotherElementTypeIsRefused) {
  const ArgumentLayout layout =
      layoutOf({{"x", "ptr<bf16>"}, {"n", "i32"}, {"mask", "ptr<i1>"}, {"y", "ptr<f8E4M3FN>"}, {"z", "ptr<i32>"}});
  const auto tensorOf = [](DType type) {
    Tensor t;
    t.address = 256, t.dtype = type;
    return t;
  };
  // The message, or "" if both ways to pack take it.
  const auto given = [&](DType x, DType mask, DType y, DType z) {
    const Tensor tx = tensorOf(x), tm = tensorOf(mask), ty = tensorOf(y), tz = tensorOf(z);
    const ArgumentPack<Tensor, int, Tensor, Tensor, Tensor> pack(tx, 5, tm, ty, tz);
    LaunchArguments built;
    built.add(tx).add(5).add(tm).add(ty).add(tz);
    const Status typed = layout.checkTypes(pack.view()), packed = layout.checkTypes(built.view());
    EXPECT_EQ(typed.toString(), packed.toString());
    EXPECT_EQ(layout.accepts(pack.view()), typed.ok());
    EXPECT_EQ(layout.accepts(built.view()), typed.ok());
    return typed.toString();
  };
  EXPECT_EQ(given(DType::BF16, DType::I1, DType::F8E4M3, DType::I32), "");
  EXPECT_EQ(given(DType::BF16, DType::U8, DType::F8E4M3, DType::U32), ""); // integers by their size
  EXPECT_EQ(given(DType::F32, DType::I1, DType::F8E4M3, DType::I32),
            "argument 0 'x' is a pointer to bf16, a tensor of f32 was given (convert the tensor to bf16, or record the "
            "kernel for f32)");
  EXPECT_NE(given(DType::F16, DType::I1, DType::F8E4M3, DType::I32).find("a tensor of f16 was given"),
            std::string::npos);
  EXPECT_NE(given(DType::BF16, DType::I32, DType::F8E4M3, DType::I32).find("argument 2 'mask' is a pointer to i1"),
            std::string::npos);
  EXPECT_NE(given(DType::BF16, DType::I1, DType::F8E5M2, DType::I32).find("argument 3 'y'"), std::string::npos);
  EXPECT_NE(given(DType::BF16, DType::I1, DType::F8E4M3, DType::F32).find("argument 4 'z'"), std::string::npos);
  EXPECT_NE(given(DType::BF16, DType::I1, DType::F8E4M3, DType::I64).find("argument 4 'z'"), std::string::npos);
  LaunchArguments addresses;
  addresses.add(std::uint64_t(256)).add(5).add(std::uint64_t(256)).add(std::uint64_t(256)).add(tensorOf(DType::I32));
  EXPECT_TRUE(layout.checkTypes(addresses.view()).ok());
  // An element that the runtime has no name for says nothing.
  const ArgumentLayout unknown = layoutOf({{"p", "ptr<ptr<f32>>"}});
  EXPECT_TRUE(unknown.accepts(ArgumentPack<Tensor>(tensorOf(DType::F64)).view()));
}

TEST(Arguments, TooManyAreRefusedNotWritten) {
  LaunchArguments many;
  for (unsigned i = 0; i < 2 * LaunchArguments::maxCount; ++i)
    many.add(1.0);
  EXPECT_FALSE(many.fits());
  const ArgumentLayout layout = layoutOf({{"x", "f64"}});
  EXPECT_NE(layout.checkTypes(many.view()).message().find("more arguments were given"), std::string::npos);
}

TEST(Arguments, SourcesThatCannotBeSpecialisedAreRefused) {
  const struct {
    ArgumentSpec spec;
    const char *message;
  } rows[] = {
      {{"x", "float", Specialise::None}, "argument 0 'x': 'float' is no type"},
      {{"x", "ptr<>", Specialise::None}, "is no type"},
      {{"x", "f32", Specialise::Divisibility}, "cannot be specialised by divisibility"},
      {{"x", "ptr<f32>", Specialise::Stride}, "cannot be specialised by stride"},
      {{"x", "f32", Specialise::Value}, "cannot be specialised by value"},
  };
  for (const auto &row : rows) {
    auto layout = ArgumentLayout::create(sourceOf({row.spec}));
    ASSERT_FALSE(layout.ok());
    EXPECT_NE(layout.status().message().find(row.message), std::string::npos) << layout.status().message();
  }
  EXPECT_FALSE(ArgumentLayout::create(sourceOf(std::vector<ArgumentSpec>(7, {"n", "i32", Specialise::Value}))).ok());
  EXPECT_FALSE(ArgumentLayout::create(sourceOf(std::vector<ArgumentSpec>(257, {"n", "i32"}))).ok());
}

/// Random kernels and values against the definition of the classes, written down once more.
TEST(Arguments, ClassesAreWhatTheHeaderSays) {
  std::mt19937_64 random(7);
  for (unsigned round = 0; round < 300; ++round) {
    std::vector<ArgumentSpec> specs;
    LaunchArguments values;
    std::vector<ArgumentFact> expected;
    unsigned byValue = 0;
    const unsigned n = 1 + random() % 256;
    for (unsigned i = 0; i < n; ++i) {
      const unsigned kind = random() % 5;
      const auto value = static_cast<std::int64_t>(random() % 3 ? (random() % 16) * 4 : random() % 5) - 32;
      ArgumentFact fact;
      const auto divisible = [&](bool stride, unsigned bytes) {
        if (stride && value == 1)
          fact = ArgumentFact::equals(1);
        else if (value * bytes % 16 == 0)
          fact = ArgumentFact::divisible(16 / bytes);
      };
      const std::string name = "a" + std::to_string(i);
      if (kind == 0) {
        specs.push_back({name, "ptr<i8>", Specialise::Divisibility});
        values.add(static_cast<std::uint64_t>(value));
        divisible(false, 1);
      } else if (kind == 1) {
        const unsigned bytes = 1u << random() % 4;
        specs.push_back({name, "i64", Specialise::Stride, bytes});
        values.add(value);
        divisible(true, bytes);
      } else if (kind == 2) {
        specs.push_back({name, "i32", Specialise::Stride});
        values.add(static_cast<std::int32_t>(value));
        divisible(true, 1);
      } else if (kind == 3 && byValue < ClassKey::maxValues) {
        ++byValue;
        specs.push_back({name, "i16", Specialise::Value});
        values.add(static_cast<std::int16_t>(value));
        fact = {ArgumentFact::Kind::Equals, value};
      } else {
        specs.push_back({name, "i32", Specialise::None});
        values.add(static_cast<std::int32_t>(value));
      }
      expected.push_back(fact);
    }
    const ArgumentLayout layout = layoutOf(specs);
    ClassKey key;
    ASSERT_TRUE(layout.classify(values.view().data, key));
    EXPECT_EQ(layout.facts(key), expected);
    auto back = layout.keyOf(expected, "k");
    ASSERT_TRUE(back.ok()) << back.status().toString();
    EXPECT_EQ(*back, key);
  }
}

TEST(Arguments, MisalignedPointersAreNamed) {
  const ArgumentLayout layout = layoutOf({{"x", "ptr<bf16>"}, {"y", "ptr<f64>"}});
  LaunchArguments a;
  a.add(std::uint64_t(0x1002)).add(std::uint64_t(0x1004));
  ClassKey key;
  EXPECT_FALSE(layout.classify(a.view().data, key));
  EXPECT_EQ(layout.checkPointers(a.view().data, "k").message(),
            "kernel 'k': argument 1 'y' is 0x1004, which is no multiple of the 8 bytes of f64");
}

TEST(Arguments, FactsThatTheKernelDoesNotSpecialiseByAreRefused) {
  const ArgumentLayout layout =
      layoutOf({{"x", "ptr<f32>", Specialise::Divisibility}, {"n", "i32"}, {"d", "i32", Specialise::Value}});
  using Kind = ArgumentFact::Kind;
  const ArgumentFact any, sixteen = ArgumentFact::divisible(16), seven{Kind::Equals, 7};
  EXPECT_TRUE(layout.keyOf(std::vector{sixteen, any, seven}, "k").ok());
  EXPECT_EQ(layout.variantText(*layout.keyOf(std::vector{sixteen, any, seven}, "k")), "x/16 d=7");
  EXPECT_NE(layout.keyOf(std::vector{any, sixteen, seven}, "k").status().message().find("argument 1 'n'"),
            std::string::npos);
  EXPECT_FALSE(layout.keyOf(std::vector{seven, any, seven}, "k").ok());
  EXPECT_NE(layout.keyOf({}, "k").status().message().find("'d' is specialised by value"), std::string::npos);
  EXPECT_FALSE(layout.keyOf(std::vector{any}, "k").ok());
}

TEST(Arguments, CodeWithoutMapsIsAnotherVariantOfTheClass) {
  const ArgumentLayout layout =
      layoutOf({{"x", "ptr<f32>", Specialise::Divisibility}, {"row_stride", "i64", Specialise::Stride}});
  const std::vector facts{ArgumentFact::divisible(16), ArgumentFact::equals(1)};
  ClassKey with = *layout.keyOf(facts, "k"), without = with;
  EXPECT_FALSE(with.withoutMaps);
  without.withoutMaps = true;
  EXPECT_FALSE(with == without);
  EXPECT_EQ(layout.variantText(with), "x/16 row_stride=1");
  EXPECT_EQ(layout.variantText(without), "x/16 row_stride=1, no tensor maps");
  EXPECT_EQ(layout.facts(without), facts);
  ClassKey nothing = *layout.keyOf({}, "k");
  nothing.withoutMaps = true;
  EXPECT_EQ(layout.variantText(nothing), "general, no tensor maps");
  EXPECT_EQ(specializationText(facts, true), "[{\"argument\": 0, \"divisibility\": 16}, {\"argument\": 1, "
                                             "\"equals\": 1}, {\"tensor_maps\": false}]");
  EXPECT_EQ(specializationText({}, true), "[{\"tensor_maps\": false}]");
  VariantTable table;
  LoadedKernel first, second;
  table.insert(with, &first);
  EXPECT_EQ(table.find(without), nullptr);
  table.insert(without, &second);
  EXPECT_EQ(table.find(with), &first);
  EXPECT_EQ(table.find(without), &second);
}

TEST(Arguments, TypesSayHowArgumentsAreSpecialisedAndNamesDoNot) {
  const auto how = [](const char *type) { return defaultSpecialisation(*parseArgumentType(type)); };
  EXPECT_EQ(how("ptr<f32>"), Specialise::Divisibility);
  EXPECT_EQ(how("i64"), Specialise::None);
  EXPECT_EQ(how("f32"), Specialise::None);

  using namespace language;
  const auto recorded = kiln::sourceOf(kernel(
      "k", {},
      [](Arg<Pointer<bf16>, "x">, Arg<Stride<bf16>, "row">, Arg<Stride<f32, i32>, "column">, Arg<i64, "stride">,
         Arg<i64, "n", byDivisibility>, Arg<i32, "w", byValue>, Arg<Stride<f8e4m3>, "byte_stride">,
         Arg<Extent<f16>, "columns">, Arg<Pointer<f32>, "y", unspecialized>, Arg<Stride<f32>, "z", unspecialized>) {}));
  ASSERT_TRUE(recorded.ok()) << recorded.status().toString();
  EXPECT_EQ(recorded->arguments, (std::vector<ArgumentSpec>{{"x", "ptr<bf16>", Specialise::Divisibility},
                                                            {"row", "i64", Specialise::Stride, 2},
                                                            {"column", "i32", Specialise::Stride, 4},
                                                            {"stride", "i64", Specialise::None},
                                                            {"n", "i64", Specialise::Divisibility},
                                                            {"w", "i32", Specialise::Value},
                                                            {"byte_stride", "i64", Specialise::Stride, 1},
                                                            {"columns", "i64", Specialise::Divisibility, 2},
                                                            {"y", "ptr<f32>", Specialise::None},
                                                            {"z", "i64", Specialise::None}}));
}

/// 112 and 240 bytes are whole 16 bytes, as 128 are: one class, where there were two.
TEST(Arguments, StridesAreClassedInBytes) {
  const auto classOf = [](unsigned bytes, std::int64_t stride) {
    const ArgumentLayout layout = layoutOf({{"s", "i64", Specialise::Stride, bytes}});
    LaunchArguments a;
    a.add(stride);
    ClassKey key;
    EXPECT_TRUE(layout.classify(a.view().data, key));
    return layout.variantText(key);
  };
  for (const std::int64_t stride : {0, 8, 56, 64, 120, -56})
    EXPECT_EQ(classOf(2, stride), "s/8") << stride;
  for (const std::int64_t stride : {2, 4, 12, 60})
    EXPECT_EQ(classOf(2, stride), "general") << stride;
  EXPECT_EQ(classOf(2, 1), "s=1");
  EXPECT_EQ(classOf(4, 12), "s/4");
  EXPECT_EQ(classOf(8, 6), "s/2");
  EXPECT_EQ(classOf(1, 56), "general");
  const auto odd = ArgumentLayout::create(sourceOf({{"s", "i64", Specialise::Stride, 3}}));
  EXPECT_NE(odd.status().message().find("counts elements of 3 bytes"), std::string::npos);
}

} // namespace
