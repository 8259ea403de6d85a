// The functions in tvm-ffi's calling convention that tell of calls.  tvm-ffi itself is not here: the two functions of
// it that the library calls are this program's.
#include "runtime/door/TvmFfi.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace {

std::string raised, text;

/// The function that was made last.
struct {
  void *self;
  int (*call)(void *self, const kiln::door::FfiValue *arguments, std::int32_t count, kiln::door::FfiValue *result);
  void (*remove)(void *self);
} made;

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
__attribute__((visibility("default"))) int TVMFFIFunctionCreate(void *self,
                                                                int (*call)(void *, const kiln::door::FfiValue *,
                                                                            std::int32_t, kiln::door::FfiValue *),
                                                                void (*remove)(void *), const void **function) {
  made = {self, call, remove};
  *function = &made;
  return 0;
}
using FfiFunction = int(void *, const kiln::door::FfiValue *, std::int32_t, kiln::door::FfiValue *);
FfiFunction __tvm_ffi_kiln_outputs, __tvm_ffi_kiln_workspace, __tvm_ffi_kiln_prepare, __tvm_ffi_kiln_explain,
    __tvm_ffi_kiln_bind;
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

TEST_F(TvmFfi, CodeIsMadeAheadOfACall) {
  call.insert(call.begin() + 1, {ffiFlag, 0, {1}});
  ASSERT_EQ(ask(__tvm_ffi_kiln_prepare), 0) << raised;
  EXPECT_EQ(result.type, ffiFlag);
  EXPECT_EQ(result.whole, 1);
  EXPECT_EQ(data[4], 0); // nothing ran
  call[1].whole = 0;
  ASSERT_EQ(ask(__tvm_ffi_kiln_prepare), 0) << raised;
  EXPECT_EQ(result.whole, 1); // it is there already
  call[1] = {ffiWhole, 0, {1}};
  EXPECT_EQ(ask(__tvm_ffi_kiln_prepare), -1);
  EXPECT_TRUE(raised.starts_with("TypeError: prepare: argument 1 is no flag")) << raised;
  call[1] = {ffiFlag, 0, {1}}, call[2] = {ffiNone, 0, {0}};
  EXPECT_EQ(ask(__tvm_ffi_kiln_prepare), -1);
  EXPECT_NE(raised.find("softmax: argument 'x' is missing"), std::string::npos) << raised;
}

/// Asked until it is there, without waiting.
TEST_F(TvmFfi, CodeIsMadeInTheBackground) {
  const std::int64_t tall[2] = {4, 2};
  x.shape = out.shape = tall; // an output over nothing of x
  x.bits = out.bits = 16;     // code that no other test makes
  call.insert(call.begin() + 1, {ffiFlag, 0, {0}});
  do
    ASSERT_EQ(ask(__tvm_ffi_kiln_prepare), 0) << raised;
  while (!result.whole);
  EXPECT_EQ(data[4], 0);
}

TEST_F(TvmFfi, CallsAreExplained) {
  ASSERT_EQ(ask(__tvm_ffi_kiln_explain), 0) << raised;
  for (const char *part : {R"("operation":"softmax")", R"("device":"emulator)", R"("kernel":"softmax)", R"("grid":[)",
                           R"("configuration":")", R"("code":")", R"("workspace":[])"})
    EXPECT_NE(text.find(part), std::string::npos) << part << " is not in " << text;
  EXPECT_EQ(data[4], 0); // nothing ran
}

TEST_F(TvmFfi, CallsAreBound) {
  const std::vector<FfiValue> arrays{call[2], call[1]};
  const auto bind = [&](std::vector<FfiValue> arguments) {
    call = std::move(arguments);
    return ask(__tvm_ffi_kiln_bind);
  };
  const std::string names = "out x";
  ASSERT_EQ(bind({textValue("softmax"), textValue(names.c_str()), textValue("")}), 0) << raised;
  EXPECT_EQ(result.type, ffiFunctionObject);
  FfiValue answer{-1, 0, {-1}};
  ASSERT_EQ(made.call(made.self, arrays.data(), 2, &answer), 0) << raised;
  EXPECT_EQ(answer.type, ffiNone);
  for (int i = 4; i < 8; ++i)
    EXPECT_EQ(data[i], 0.5f);
  EXPECT_EQ(made.call(made.self, arrays.data(), 1, &answer), -1);
  EXPECT_TRUE(raised.starts_with("ValueError: softmax: 1 arrays are given, 2 are bound")) << raised;
  made.remove(made.self);

  EXPECT_EQ(bind({textValue("softmax"), textValue("out y"), textValue("")}), -1);
  EXPECT_TRUE(raised.starts_with("ValueError: softmax: it has no argument 'y'")) << raised;
  EXPECT_EQ(bind({textValue("matmul"), textValue("a b out"), textValue("out_dtype")}), -1);
  EXPECT_TRUE(raised.starts_with("TypeError: bind: there are more names")) << raised;
  EXPECT_EQ(bind({textValue("matmul"), textValue("a b out"), textValue(""), textValue("f32")}), -1);
  EXPECT_TRUE(raised.starts_with("ValueError: matmul: it has no argument ''")) << raised;
  EXPECT_EQ(bind({textValue("matmul"), textValue("a b out")}), -1);
  EXPECT_TRUE(raised.starts_with("TypeError: bind: arguments 1 and 2 are no texts")) << raised;
}

TEST_F(TvmFfi, BoundOptionsAreKept) {
  const std::vector<FfiValue> arrays{call[1], call[1], call[2]};
  {
    const std::string type = "no_such_type", names = "a b out", option = "out_dtype";
    call = {textValue("matmul"), textValue(names.c_str()), textValue(option.c_str()), textValue(type.c_str())};
    ASSERT_EQ(ask(__tvm_ffi_kiln_bind), 0) << raised;
  } // the caller's texts are gone
  FfiValue answer{-1, 0, {-1}};
  EXPECT_EQ(made.call(made.self, arrays.data(), 3, &answer), -1);
  EXPECT_NE(raised.find("no_such_type"), std::string::npos) << raised;
  made.remove(made.self);
}

TEST_F(TvmFfi, WrongQuestionsAreRefusedByName) {
  const std::pair<FfiFunction *, std::string> functions[] = {{__tvm_ffi_kiln_outputs, "outputs"},
                                                             {__tvm_ffi_kiln_workspace, "workspace"},
                                                             {__tvm_ffi_kiln_explain, "explain"}};
  for (const auto &[function, name] : functions) {
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
