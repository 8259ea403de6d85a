// The list of a configuration's fields: what follows from it, for every configuration of the library.
#include "kernels/add/Add.h"
#include "kernels/attention/Attention.h"
#include "kernels/copy/Copy.h"
#include "kernels/cumsum/Cumsum.h"
#include "kernels/dplr/Dplr.h"
#include "kernels/dplr/DplrStep.h"
#include "kernels/layer_norm/LayerNorm.h"
#include "kernels/matmul/Matmul.h"
#include "kernels/reduce_sum/ReduceSum.h"
#include "kernels/softmax/Softmax.h"
#include "kernels/support/Family.h"
#include "kernels/support/KernelTable.h"
#include "kernels/transpose/Transpose.h"

#include <gtest/gtest.h>

#include <set>

using namespace kiln;
using namespace kiln::kernels;

namespace {

std::string textOf(const auto &c) {
  std::string out;
  for (const language::ConfigEntry &e : entriesOf(c))
    out += e.name + "=" + e.value.text + " ";
  return out;
}

/// A value that is not the default, as --set takes it.
std::string another(const FieldInfo &f) {
  if (f.kind == FieldInfo::Kind::Flag)
    return f.standard == "true" ? "false" : "true";
  if (f.kind == FieldInfo::Kind::Choice)
    return f.choices[f.choices[0] == f.standard];
  const std::vector<std::int64_t> all = f.values.all();
  return std::to_string(all[std::to_string(all[0]) == f.standard]);
}

template <typename C> class EveryConfiguration : public testing::Test {};
using All = testing::Types<AddConfig, AttentionConfig, CopyConfig, CumsumConfig, DplrConfig, DplrStepConfig,
                           LayerNormConfig, MatmulConfig, ReduceSumConfig, SoftmaxConfig, TransposeConfig>;
TYPED_TEST_SUITE(EveryConfiguration, All);

TYPED_TEST(EveryConfiguration, AFieldIsInEqualityHashAndText) {
  const TypeParam standard;
  const std::vector<FieldInfo> fields = fieldsOf<TypeParam>();
  ASSERT_FALSE(fields.empty());
  std::set<std::string> names;
  for (const FieldInfo &f : fields) {
    EXPECT_TRUE(names.insert(f.name).second) << f.name;
    EXPECT_FALSE(f.text.empty()) << f.name;
    TypeParam c;
    const Status s = applySettings({{f.name, another(f)}}, c);
    ASSERT_TRUE(s.ok()) << f.name << ": " << s.toString();
    EXPECT_FALSE(c == standard) << f.name;
    EXPECT_NE(hashOf(c), hashOf(standard)) << f.name;
    EXPECT_EQ(textOf(c) == textOf(standard), f.values.isOfLaunch) << f.name;
    const Status back = applySettings({{f.name, f.standard}}, c);
    ASSERT_TRUE(back.ok()) << f.name << ": its default is refused: " << back.toString();
    EXPECT_TRUE(c == standard && hashOf(c) == hashOf(standard)) << f.name;
  }
}

TYPED_TEST(EveryConfiguration, ATunerTriesValuesThatSettingsTake) {
  unsigned tuned = 0;
  for (const FieldInfo &f : fieldsOf<TypeParam>()) {
    const std::vector<std::string> all = f.candidates();
    tuned += !all.empty();
    EXPECT_EQ(all.empty(), !f.values.isTuned) << f.name;
    if (all.size() > 4096) // ranges of elements of a program
      continue;
    for (const std::string &value : all) {
      TypeParam c;
      EXPECT_TRUE(applySettings({{f.name, value}}, c).ok()) << f.name << "=" << value;
    }
  }
  EXPECT_GE(tuned, 1u);
}

// A member that the list lacks, or has twice, is seen by the compiler.
struct Whole {
  int a = 0;
  bool b = false;
  std::shared_ptr<int> c = {};
  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("a", &Whole::a, between(0, 1), "a");
    v("b", &Whole::b, anyValue, "b");
    v("c", &Whole::c, anyValue, "c");
  }
};
struct Missing {
  int a = 0, b = 0;
  template <typename Visitor> static constexpr void fields(Visitor &&v) { v("a", &Missing::a, between(0, 1), "a"); }
};
struct Repeated {
  int a = 0, b = 0;
  template <typename Visitor> static constexpr void fields(Visitor &&v) {
    v("a", &Repeated::a, between(0, 1), "a");
    v("b", &Repeated::a, between(0, 1), "b");
  }
};
static_assert(kernels::detail::memberCount<Whole>() == 3 && kernels::detail::listedCount<Whole>() == 3);
static_assert(kernels::detail::memberCount<Missing>() == 2 && kernels::detail::listedCount<Missing>() == 1);
static_assert(kernels::detail::listedCount<Repeated>() < kernels::detail::memberCount<Repeated>());

TEST(Configuration, WrongSettingsAreRefusedWithWhatTheyMayBe) {
  AttentionConfig attention;
  DplrConfig dplr;
  const auto refused = [](const Status &s, const std::string &message) {
    EXPECT_EQ(s.code(), StatusCode::InvalidArgument);
    EXPECT_EQ(s.message(), message);
    EXPECT_FALSE(s.remedy().empty());
  };
  refused(applySettings({{"blockM", "48"}}, attention), "blockM=48: expected a power of two from 16 to 256");
  refused(applySettings({{"dim", "60"}}, attention), "dim=60: expected a multiple of 8 from 8 to 256");
  refused(applySettings({{"stages", "9"}}, attention), "stages=9: expected a whole number from 1 to 8");
  refused(applySettings({{"stages", "2x"}}, attention), "stages=2x: expected a whole number from 1 to 8");
  refused(applySettings({{"lse", "1"}}, attention), "lse=1: expected true or false");
  refused(applySettings({{"rule", "rwkv"}}, dplr), "rule=rwkv: expected dplr, delta, linear");
  refused(applySettings({{"warps", "3"}}, dplr), "warps=3: expected a power of two from 1 to 32, or 0");
  refused(applySettings({{"blok", "1"}}, attention), "there is no setting 'blok'");
  DplrLaunch which;
  ASSERT_TRUE(applySettings({{"launch", "2"}, {"rule", "delta"}, {"gates", "bf16"}}, which, dplr).ok());
  EXPECT_EQ(which.launch, 2);
  EXPECT_EQ(dplr.rule, ChunkRule::Delta);
  EXPECT_EQ(dplr.gates, DType::BF16);
}

TEST(Configuration, EveryFamilyRecordsEachOfItsSettings) {
  for (const Family &family : families()) {
    const Callable &callable = *family.callable;
    const std::vector<FieldInfo> all = callable.settings();
    EXPECT_FALSE(all.empty()) << family.name();
    const language::Kernel wrong =
        callable.record(kernelElement(callable.dtypes().front()), {{"no_such_setting", "1"}});
    EXPECT_FALSE(wrong.ok()) << family.name();
    for (const FieldInfo &f : all)
      EXPECT_NE(wrong.status().remedy().find(f.name), std::string::npos) << family.name() << " " << f.name;
  }
}

TEST(Configuration, ElementsOfTensorsAreTheTypesThatKernelsSee) {
  EXPECT_EQ(kernelElement(DType::F32), DType::F32);
  EXPECT_EQ(kernelElement(DType::F16), DType::F16);
  EXPECT_EQ(kernelElement(DType::BF16), DType::BF16);
  EXPECT_EQ(kernelElement(DType::F8E4M3), DType::F8E4M3);
  EXPECT_EQ(kernelElement(DType::F64), DType::F64);
  EXPECT_EQ(kernelElement(DType::U16), DType::I16);
  EXPECT_EQ(kernelElement(DType::I1), DType::I8);
}

} // namespace
