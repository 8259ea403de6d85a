// The functions in tvm-ffi's calling convention that tell of calls.  tvm-ffi itself is not here: the two functions of
// it that the library calls are this program's.
#include "runtime/door/TvmFfi.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

std::string raised, text;

} // namespace

extern "C" {
__attribute__((visibility("default"))) void TVMFFIErrorSetRaisedFromCStr(const char *kind, const char *message) {
  raised = std::string(kind) + ": " + message;
}
__attribute__((visibility("default"))) int TVMFFIStringFromByteArray(const kiln::door::FfiBytes *bytes,
                                                                     kiln::door::FfiValue *result) {
  text.assign(bytes->data, bytes->size);
  *result = {kiln::door::ffiText, 0, {0}};
  result->text = text.c_str();
  return 0;
}
using FfiFunction = int(void *, const kiln::door::FfiValue *, std::int32_t, kiln::door::FfiValue *);
FfiFunction __tvm_ffi_kiln_outputs, __tvm_ffi_kiln_workspace;
}

namespace kiln::door {
namespace {

struct TvmFfi : testing::Test {
  TvmFfi() {
    for (const FfiTensor *t : {&x, &out}) {
      FfiValue value{ffiTensorPointer, 0, {0}};
      value.object = t;
      call.push_back(value);
    }
  }
  static FfiValue textValue(const char *word) {
    FfiValue value{ffiText, 0, {0}};
    value.text = word;
    return value;
  }
  /// What the function answers to these arguments; `raised` if it fails.
  int ask(FfiFunction *function) {
    raised.clear();
    return function(nullptr, call.data(), static_cast<std::int32_t>(call.size()), &result);
  }
  float data[8] = {};
  std::int64_t shape[2] = {2, 2};
  FfiTensor x{data, 1, 0, 2, 2, 32, 1, shape, nullptr, 0}, out{data + 4, 1, 0, 2, 2, 32, 1, shape, nullptr, 0};
  std::vector<FfiValue> call{textValue("softmax")};
  FfiValue result{-1, 0, {-1}};
};

TEST_F(TvmFfi, WorkspaceIsAWholeNumber) {
  ASSERT_EQ(ask(__tvm_ffi_kiln_workspace), 0) << raised;
  EXPECT_EQ(result.type, ffiWhole);
  EXPECT_EQ(result.whole, 0); // in the host's memory
}

TEST_F(TvmFfi, OutputsAreAText) {
  call.pop_back();
  ASSERT_EQ(ask(__tvm_ffi_kiln_outputs), 0) << raised;
  EXPECT_EQ(text, R"([{"dtype":"f32","name":"out","shape":[2,2]}])");
}

TEST_F(TvmFfi, WrongQuestionsAreRefusedByName) {
  for (FfiFunction *const function : {__tvm_ffi_kiln_outputs, __tvm_ffi_kiln_workspace}) {
    const std::string name = function == __tvm_ffi_kiln_outputs ? "outputs" : "workspace";
    const std::vector<FfiValue> right = call;
    call[0] = {ffiWhole, 0, {3}};
    EXPECT_EQ(ask(function), -1);
    EXPECT_TRUE(raised.starts_with("TypeError: " + name + ": argument 0 is no text")) << raised;
    call.clear();
    EXPECT_EQ(ask(function), -1);
    EXPECT_TRUE(raised.starts_with("TypeError: " + name)) << raised;
    call = right;
    call[0] = textValue("sotfmax");
    EXPECT_EQ(ask(function), -1);
    EXPECT_NE(raised.find("sotfmax"), std::string::npos) << raised;
    call = right;
    call[1] = {ffiNone, 0, {0}};
    EXPECT_EQ(ask(function), -1);
    EXPECT_NE(raised.find("softmax: argument 'x' is missing"), std::string::npos) << raised;
    call = right;
  }
}

} // namespace
} // namespace kiln::door
