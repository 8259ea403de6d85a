// The library's kernels record in every variant, name their own file in every operation, and are accepted.
#include "tests/language/LanguageTesting.h"

#include "kernels/add/Add.h"
#include "kernels/copy/Copy.h"
#include "kernels/cumsum/Cumsum.h"
#include "kernels/layer_norm/LayerNorm.h"
#include "kernels/reduce_sum/ReduceSum.h"
#include "kernels/softmax/Softmax.h"
#include "kernels/transpose/Transpose.h"

#include <gtest/gtest.h>

#include <set>

using kiln::DType;
using kiln::language::Kernel;
using namespace kiln::kernels;

namespace {

struct Variant {
  Kernel kernel;
  std::string file;
};

std::vector<Variant> variants() {
  std::vector<Variant> out;
  for (const DType e : {DType::F32, DType::F16, DType::BF16}) {
    for (const bool flag : {false, true}) {
      const int rows = flag ? 4 : 1;
      out.push_back({add(e, {.strided = flag}), "kernels/add/Add.cpp"});
      out.push_back({copy(e, {.strided = flag}), "kernels/copy/Copy.cpp"});
      out.push_back({cumsum(e, {.rowsPerProgram = rows, .adjacent = flag}), "kernels/cumsum/Cumsum.cpp"});
      out.push_back({reduceSumPartial(e, {.adjacent = flag}), "kernels/reduce_sum/ReduceSum.cpp"});
      for (const int unit : {-1, 0, 1})
        out.push_back(
            {transpose(e, {.tileRows = 32, .xUnit = unit, .outUnit = flag}), "kernels/transpose/Transpose.cpp"});
      for (const bool looping : {false, true})
        for (const bool adjacent : {false, true}) {
          out.push_back({softmax(e, {.rowsPerProgram = rows, .looping = looping, .adjacent = adjacent}),
                         "kernels/softmax/Softmax.cpp"});
          out.push_back(
              {layerNorm(e, {.rowsPerProgram = rows, .looping = looping, .adjacent = adjacent, .affine = !flag}),
               "kernels/layer_norm/LayerNorm.cpp"});
        }
    }
    out.push_back({reduceSumFinal(e), "kernels/reduce_sum/ReduceSum.cpp"});
  }
  for (const DType e : {DType::F64, DType::I8, DType::I16, DType::I32, DType::I64}) {
    out.push_back({copy(e), "kernels/copy/Copy.cpp"});
    out.push_back({transpose(e), "kernels/transpose/Transpose.cpp"});
  }
  return out;
}

TEST(LibraryKernels, RecordAndNameTheirFile) {
  std::set<std::string> texts;
  for (const Variant &v : variants()) {
    ASSERT_TRUE(v.kernel.ok()) << v.kernel.status().toString();
    texts.insert(v.kernel.text());
    const std::string own = "loc(\"" + v.file + "\":";
    for (const std::string &line : kiln::test::linesOf(v.kernel.text()))
      if (const auto at = line.find("loc("); at != std::string::npos)
        EXPECT_EQ(line.compare(at, own.size(), own), 0) << line;
  }
  EXPECT_EQ(texts.size(), variants().size()); // each variant is a program of its own
}

TEST(LibraryKernels, TheDialectsAcceptThem) {
  if (kiln::test::kilnOpt().empty())
    GTEST_SKIP() << "kiln-opt was not built";
  std::vector<std::string> modules;
  for (const Variant &v : variants())
    modules.push_back(v.kernel.text());
  EXPECT_EQ(kiln::test::complaintsOfKilnOpt(modules), "");
}

TEST(LibraryKernels, RefuseTypesThatTheyDoNotHave) {
  for (const Kernel &k : {add(DType::I32), softmax(DType::I8), layerNorm(DType::F64), cumsum(DType::I32),
                          reduceSumFinal(DType::I1), copy(DType::U32)}) {
    EXPECT_FALSE(k.ok());
    EXPECT_FALSE(k.status().remedy().empty());
  }
}

TEST(LibraryKernels, RefuseTilesThatDoNotExist) {
  EXPECT_NE(add(DType::F32, {.block = 1000}).status().message().find("Add.cpp"), std::string::npos);
  EXPECT_FALSE(softmax(DType::F32, {.block = 0}).ok());
  EXPECT_FALSE(softmax(DType::F32, {.rowsPerProgram = -1}).ok());
  EXPECT_FALSE(transpose(DType::F32, {.tileRows = 1 << 12, .tileColumns = 1 << 12}).ok());
  EXPECT_FALSE(transpose(DType::F32, {.xUnit = 7}).ok());
  EXPECT_FALSE(cumsum(DType::F32, {.warps = 0}).ok());
}

} // namespace
