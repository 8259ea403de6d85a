// Tensors as arguments: what they are in the text, and what is cut out of them.
#include "tests/language/LanguageTesting.h"

#include <gtest/gtest.h>

using namespace kiln::language;

namespace kiln::test {
namespace {

TEST(TensorArgument, IsAnAddressExtentsAndStrides) {
  const Kernel k =
      kernel("k", {},
             [](Arg<i32, "n"> n, TensorArg<bf16, 2, "x"> x,
                TensorArg<f32, 1, "y", TensorTraits{.noalias = true, .wholeRows = true, .optional = true}> y) {
               when(n > 0, [&] { store(y.pointer(), cast<f32>(load(x.pointer()))); });
             });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  struct {
    const char *name, *type;
    Specialization how;
    TensorPart::Role role;
    int dim;
  } const wanted[] = {{"x", "ptr<bf16>", Specialization::Divisibility, TensorPart::Role::Pointer, 0},
                      {"x_extent_0", "i64", Specialization::None, TensorPart::Role::Extent, 0},
                      {"x_extent_1", "i64", Specialization::None, TensorPart::Role::Extent, 1},
                      {"x_stride_0", "i64", Specialization::Stride, TensorPart::Role::Stride, 0},
                      {"x_stride_1", "i64", Specialization::Stride, TensorPart::Role::Stride, 1},
                      {"y", "ptr<f32>", Specialization::Divisibility, TensorPart::Role::Pointer, 0},
                      {"y_extent_0", "i64", Specialization::Divisibility, TensorPart::Role::Extent, 0},
                      {"y_stride_0", "i64", Specialization::Stride, TensorPart::Role::Stride, 0}};
  ASSERT_EQ(k.arguments().size(), 1 + std::size(wanted));
  EXPECT_FALSE(k.arguments()[0].part);
  for (std::size_t i = 0; i < std::size(wanted); ++i) {
    const KernelArgument &a = k.arguments()[1 + i];
    SCOPED_TRACE(a.name);
    EXPECT_EQ(a.name, wanted[i].name);
    EXPECT_EQ(a.typeText(), wanted[i].type);
    EXPECT_EQ(a.traits.specialization, wanted[i].how);
    ASSERT_TRUE(a.part);
    EXPECT_EQ(a.part->tensor, a.name.substr(0, 1));
    EXPECT_EQ(a.part->role, wanted[i].role);
    EXPECT_EQ(a.part->dim, wanted[i].dim);
    EXPECT_EQ(a.part->rank, a.name[0] == 'x' ? 2 : 1);
    EXPECT_EQ(a.part->optional, a.name[0] == 'y');
    EXPECT_EQ(a.traits.noalias, a.name == "y");
    if (wanted[i].role == TensorPart::Role::Stride)
      EXPECT_EQ(a.counts, a.name[0] == 'x' ? DType::BF16 : DType::F32);
  }
}

/// After the parameters, of types that are known when the kernel is recorded.
TEST(TensorArgument, DeclaredTensorsAreFoundByName) {
  const auto recorded = [](std::vector<TensorDeclaration> tensors, auto body) {
    return kernel("k", {.tensors = std::move(tensors)}, [&](Arg<Pointer<f32>, "out"> out) { body(out); });
  };
  const Kernel k =
      recorded({{"rows", DType::I32, 2}, {"sizes", DType::F16, 1, /*noalias=*/true}}, [](const Pointer<f32> &out) {
        const auto row = load(declaredTensor<i32, 2>("rows").at(1, 2).pointer());
        store(out + row, cast<f32>(load(declaredTensor<f16, 1>("sizes").at(row).pointer())));
      });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  std::vector<std::string> names;
  for (const KernelArgument &a : k.arguments())
    names.push_back(a.name);
  EXPECT_EQ(names, (std::vector<std::string>{"out", "rows", "rows_extent_0", "rows_extent_1", "rows_stride_0",
                                             "rows_stride_1", "sizes", "sizes_extent_0", "sizes_stride_0"}));
  EXPECT_EQ(k.arguments()[1].part->rank, 2);
  EXPECT_FALSE(k.arguments()[1].part->optional);
  EXPECT_FALSE(k.arguments()[1].traits.noalias);
  EXPECT_TRUE(k.arguments()[6].traits.noalias);

  const auto refused = [](const Kernel &kernel, const char *words) {
    ASSERT_FALSE(kernel.ok()) << words;
    EXPECT_NE(kernel.status().toString().find(words), std::string::npos) << kernel.status().toString();
  };
  const auto reading = [](const Pointer<f32> &out) { store(out, load(declaredTensor<f32, 1>("x").pointer())); };
  refused(recorded({}, reading), "there is no tensor 'x'");
  refused(recorded({{"x", DType::F32, 2}}, reading), "'x' is f32 of 2 dimensions, f32 of 1 dimensions was asked for");
  refused(recorded({{"x", DType::I32, 1}}, reading), "'x' is i32 of 1 dimensions, f32 of 1 dimensions was asked for");
  refused(recorded({{"x y", DType::F32, 1}}, reading), "a name is letters");
  refused(recorded({{"x", DType::F32, 6}}, reading), "1 to 5 dimensions");
  refused(recorded({{"out", DType::F32, 1}}, reading), "both called 'out'");
}

TEST(TensorArgument, DimensionsThatAreNotLeftAreRefused) {
  const auto refused = [](const char *what, auto use) {
    const Kernel k = kernel("k", {}, [&](TensorArg<f16, 3, "x"> x, Arg<i32, "n"> n) { use(x.at(n, all, all), n); });
    ASSERT_FALSE(k.ok()) << what;
    EXPECT_NE(k.status().toString().find(std::string(what) + ": the dimension"), std::string::npos)
        << k.status().toString();
    EXPECT_NE(k.status().toString().find("is not in 0 .. 1"), std::string::npos) << k.status().toString();
  };
  refused("extent", [](const auto &x, const auto &n) { store(x.pointer(), cast<f16>(cast<f32>(x.extent(2)))); });
  refused("stride", [](const auto &x, const auto &n) { store(x.pointer(), cast<f16>(cast<f32>(x.stride(-1)))); });
  refused("narrow", [](const auto &x, const auto &n) {
    storeView(x.narrow(along(2), n, n).tiles({8, 8}), {0, 0}, zeros<f16>({8, 8}));
  });
}

TEST(TensorArgument, TilesAreCutOutOfTheWholeTensor) {
  const Kernel k = kernel("k", {},
                          [](TensorArg<f16, 4, "k"> k, Arg<i32, "batch"> batch, Arg<i64, "head"> head,
                             Arg<i32, "begin"> begin, Arg<i32, "length"> length) {
                            const auto rows = k.at(batch, all, head, all).narrow(along(0), begin, length);
                            static_assert(rows.rank == 2);
                            storeView(rows.tiles({64, 32}), {0, 0}, zeros<f16>({64, 32}));
                            storeView(k.at(0, all, 1, all).tiles({8, 16}, unitDim(0)), {0, 0}, zeros<f16>({8, 16}));
                          });
  ASSERT_TRUE(k.ok()) << k.status().toString();
  const std::string body = bodyOf(k);
  for (const char *line :
       {"tile.make_view %k, extents [%k_extent_0, %k_extent_1, %k_extent_2, %k_extent_3], strides [%k_stride_0, "
        "%k_stride_1, %k_stride_2, %k_stride_3] : !tile.view<1x64x1x32xf16>, i64",
        "[%begin, %length] {dim = 1 : i32} : !tile.view<1x64x1x32xf16>, i32",
        "{dims = array<i32: 0, 2>} : !tile.view<1x64x1x32xf16>, i64 -> !tile.view<64x32xf16>",
        "!tile.view<1x8x1x16xf16, unit = 1>, i32 -> !tile.view<8x16xf16, unit = 0>"})
    EXPECT_NE(body.find(line), std::string::npos) << line << "\n" << body;
  EXPECT_EQ(complaintsOfKilnOpt({k.text()}), "");
}

TEST(TensorArgument, TilesOfAnotherRankAreRefused) {
  const Kernel k = kernel(
      "k", {}, [](TensorArg<f16, 3, "k"> k) { storeView(k.at(0, all, all).tiles({64}), {0}, zeros<f16>({64})); });
  EXPECT_NE(k.status().message().find("a tile with 1 dimensions fewer than are left of the tensor"), std::string::npos)
      << k.status().toString();
}

TEST(TensorArgument, NamesAreOnesOfTheKernel) {
  const Kernel k = kernel("k", {}, [](TensorArg<f16, 1, "x"> x, Arg<i64, "x_stride_0"> other) {
    storeView(x.tiles({64}), {other}, zeros<f16>({64}));
  });
  EXPECT_NE(k.status().message().find("are both called 'x_stride_0'"), std::string::npos) << k.status().toString();
}

} // namespace
} // namespace kiln::test
