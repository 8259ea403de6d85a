// Operations of torch's dispatcher, called as torch calls them, over a torch that counts what it gives and gets back,
// on a GPU that does nothing.  tests/python/autograd has them in the real torch, on the emulator.
#include "runtime/door/bench/NullCall.h"
#include "runtime/door/TorchOperation.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <set>

namespace kiln::door {

struct TorchTensorOpaque {
  std::vector<std::int64_t> sizes, strides;
  std::int32_t dtype = 0, type = 1, device = nullPlace.number;
  std::uintptr_t data = 0;
};
struct TorchTextOpaque {
  std::string text;
};

namespace {

/// What the torch of the tests has given out, and what it was asked for.
struct Torch {
  std::set<TorchTensor> tensors;
  std::set<TorchText> texts;
  std::vector<TorchTensorOpaque> made, zeroed, copied;
  bool isOutOfMemory = false, isBroken = false; ///< broken: copies and fills fail
  int allocationsLeft = -1;                     ///< until memory is out; -1: any number
  std::int64_t missing = 0;                     ///< bytes of each workspace
  std::uintptr_t offset = 0;                    ///< of where inputs begin
  void *stream = nullptr;
  int streamsAsked = 0;
};
Torch *torch = nullptr;

enum : std::int32_t { bf16 = 15, f32 = 6, i32 = 3, byte = 0 };

TorchTensor give(TorchTensorOpaque tensor) {
  static std::uintptr_t next = std::uintptr_t(1) << 40;
  tensor.data = next, next += std::uintptr_t(1) << 30;
  return *torch->tensors.insert(new TorchTensorOpaque(std::move(tensor))).first;
}

TorchAbi abi() {
  TorchAbi out;
  out.cpu = 0, out.cuda = 1;
  const std::tuple<std::int32_t, int, int> types[] = {{bf16, 4, 16}, {f32, 2, 32}, {i32, 0, 32}, {byte, 1, 8}};
  TorchAbi::DType *row = out.dtypes;
  for (const auto &[number, code, bits] : types)
    *row++ = {number, static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(bits)};
  out.aoti_torch_delete_tensor_object = [](TorchTensor t) {
    EXPECT_EQ(torch->tensors.erase(t), 1U) << "given back twice";
    delete t;
    return 0;
  };
  out.aoti_torch_get_data_ptr = [](TorchTensor t, void **data) { return *data = reinterpret_cast<void *>(t->data), 0; };
  out.aoti_torch_get_dim = [](TorchTensor t, std::int64_t *rank) {
    if (t->dtype < 0)
      return 1; // no tensor at all
    return *rank = static_cast<std::int64_t>(t->sizes.size()), 0;
  };
  out.aoti_torch_get_sizes = [](TorchTensor t, std::int64_t **sizes) { return *sizes = t->sizes.data(), 0; };
  out.aoti_torch_get_strides = [](TorchTensor t, std::int64_t **strides) { return *strides = t->strides.data(), 0; };
  out.aoti_torch_get_dtype = [](TorchTensor t, std::int32_t *dtype) { return *dtype = t->dtype, 0; };
  out.aoti_torch_get_device_type = [](TorchTensor t, std::int32_t *type) { return *type = t->type, 0; };
  out.aoti_torch_get_device_index = [](TorchTensor t, std::int32_t *index) { return *index = t->device, 0; };
  out.aoti_torch_empty_strided = [](std::int64_t rank, const std::int64_t *sizes, const std::int64_t *strides,
                                    std::int32_t dtype, std::int32_t type, std::int32_t device, TorchTensor *tensor) {
    if (torch->isOutOfMemory || torch->allocationsLeft == 0)
      return 1;
    torch->allocationsLeft -= torch->allocationsLeft > 0;
    TorchTensorOpaque t{{sizes, sizes + rank}, {strides, strides + rank}, dtype, type, device, 0};
    if (dtype == byte)
      t.sizes[0] -= torch->missing;
    torch->made.push_back(t);
    *tensor = give(t);
    return 0;
  };
  out.aoti_torch_copy_ = [](TorchTensor to, TorchTensor, std::int32_t) {
    return torch->copied.push_back(*to), torch->isBroken ? 1 : 0;
  };
  out.aoti_torch_zero_ = [](TorchTensor t) { return torch->zeroed.push_back(*t), torch->isBroken ? 1 : 0; };
  out.torch_string_c_str = [](TorchText t, const char **data) { return *data = t->text.c_str(), 0; };
  out.torch_delete_string = [](TorchText t) {
    EXPECT_EQ(torch->texts.erase(t), 1U) << "given back twice";
    delete t;
    return 0;
  };
  out.aoti_torch_get_current_cuda_stream = [](std::int32_t device, void **stream) {
    EXPECT_EQ(device, nullPlace.number);
    ++torch->streamsAsked;
    return *stream = torch->stream, 0;
  };
  return out;
}

struct DoorTorch : testing::Test {
  void SetUp() override {
    JitOptions options;
    options.knobs.compiler = KILN_BINARY_DIR "/bin/libkiln-compiler.so";
    options.diskCache = false;
    const auto made = nothing(std::move(options));
    ASSERT_TRUE(made.ok()) << made.status().toString();
    torch = &state;
  }
  void TearDown() override {
    EXPECT_TRUE(state.tensors.empty()) << state.tensors.size() << " tensors are not given back";
    EXPECT_TRUE(state.texts.empty());
    for (const TorchTensor t : state.tensors)
      delete t;
  }
  void make(const char *name, TorchOperation::Names names) {
    const auto family = kernels::findFamily(name);
    ASSERT_TRUE(family.ok());
    ASSERT_EQ(TorchOperation::create(**family, functions, name, names, operation).toString(), "");
  }
  static TorchTensorOpaque dense(std::vector<std::int64_t> sizes, std::int32_t dtype = bf16) {
    TorchTensorOpaque t{sizes, sizes, dtype};
    std::int64_t stride = 1;
    for (std::size_t d = sizes.size(); d-- > 0; stride *= sizes[d])
      t.strides[d] = stride;
    return t;
  }
  void tensor(TorchTensorOpaque t) {
    const TorchTensor given = give(std::move(t));
    given->data += state.offset;
    stack.push_back(reinterpret_cast<TorchValue>(given));
  }
  /// One that may be missing.
  template <typename T> void some(T value) {
    TorchValue bits = 0;
    std::memcpy(&bits, &value, sizeof value);
    stack.push_back(reinterpret_cast<TorchValue>(new TorchValue(bits)));
  }
  void someTensor(TorchTensorOpaque t) { some(give(std::move(t))); }
  void text(const char *words) { some(*state.texts.insert(new TorchTextOpaque{words}).first); }
  void none() { stack.push_back(0); }
  /// The message; empty: it went well, and the results are in `results`.
  std::string run(std::size_t count) {
    results.clear();
    const char *const wrong = operation->run(stack.data());
    for (std::size_t i = 0; i < count && !wrong; ++i) {
      const auto t = reinterpret_cast<TorchTensor>(stack[i]);
      results.push_back(*t);
      functions.aoti_torch_delete_tensor_object(t);
    }
    stack.clear();
    return wrong ? wrong : "";
  }
  /// q, k, v and options of "q k v cu_seqlens_q? cu_seqlens_k?", "causal align scale".
  std::string attention(TorchTensorOpaque k = dense({2, 128, 1, 64}), const char *align = "top_left") {
    tensor(dense({2, 64, 2, 64})), tensor(std::move(k)), tensor(dense({2, 128, 1, 64}));
    none(), none();
    some(true), text(align), some(0.5);
    return run(2);
  }
  void makeAttention() { make("attention", {"q k v cu_seqlens_q? cu_seqlens_k?", "causal align scale", "o lse"}); }
  std::string backward(bool isPacked) {
    const auto rows = [&](std::int64_t heads) {
      return isPacked ? dense({128, heads, 64}) : dense({2, 64, heads, 64});
    };
    for (const std::int64_t heads : {2, 1, 1, 2})
      tensor(rows(heads));
    tensor(isPacked ? dense({2, 128}, f32) : dense({2, 2, 64}, f32));
    tensor(rows(2));
    for (int i = 0; i < 2; ++i)
      if (isPacked)
        someTensor(dense({3}, i32));
      else
        none();
    return run(3);
  }
  void makeBackward() { make("attention_backward", {"q k v o lse do cu_seqlens_q? cu_seqlens_k?", "", "dq* dk* dv*"}); }

  Torch state;
  TorchAbi functions = abi();
  std::unique_ptr<TorchOperation> operation;
  std::vector<TorchValue> stack;
  std::vector<TorchTensorOpaque> results;
};

TEST_F(DoorTorch, ResultsAreOfTheTableAndTheRestIsGivenBack) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  for (int i = 0; i < 3; ++i) {
    ASSERT_EQ(attention(), "");
    EXPECT_EQ(results[0].sizes, (std::vector<std::int64_t>{2, 64, 2, 64}));
    EXPECT_EQ(results[0].strides, dense({2, 64, 2, 64}).strides);
    EXPECT_EQ(results[0].dtype, bf16);
    EXPECT_EQ(results[1].sizes, (std::vector<std::int64_t>{2, 2, 64}));
    EXPECT_EQ(results[1].dtype, f32);
    EXPECT_EQ(results[1].device, nullPlace.number);
    EXPECT_EQ(state.streamsAsked, i + 1);
  }
  EXPECT_TRUE(state.copied.empty() && state.zeroed.empty());
}

TEST_F(DoorTorch, ShapesThatChangeAreLookedAtAgain) {
  ASSERT_NO_FATAL_FAILURE(make("softmax", {"x", "", "out"}));
  for (const std::int64_t rows : {4, 8, 4, 4, 16})
    for (const std::int32_t dtype : {bf16, f32}) {
      tensor(dense({rows, 32}, dtype));
      ASSERT_EQ(run(1), "");
      EXPECT_EQ(results[0].sizes, (std::vector<std::int64_t>{rows, 32}));
      EXPECT_EQ(results[0].dtype, dtype);
    }
}

TEST_F(DoorTorch, ErrorsNameTheirKindAndNothingIsLost) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  EXPECT_EQ(attention(), "");
  std::string wrong = attention(dense({2, 128, 1, 32}));
  EXPECT_TRUE(wrong.starts_with("kiln.ValueError: attention: argument 'k'")) << wrong;
  wrong = attention(dense({2, 128, 1, 64}), "in_the_middle");
  EXPECT_TRUE(wrong.starts_with("kiln.ValueError: attention: align = in_the_middle")) << wrong;
  TorchTensorOpaque other = dense({2, 128, 1, 64});
  other.type = 0;
  wrong = attention(other);
  EXPECT_NE(wrong.find("'k' is on the host"), std::string::npos) << wrong;
  other = dense({2, 128, 1, 64}, 99);
  wrong = attention(other);
  EXPECT_NE(wrong.find("'k' has a dtype that is not known"), std::string::npos) << wrong;
  EXPECT_EQ(attention(), "");
}

TEST_F(DoorTorch, WithoutMemoryTheErrorSaysForWhat) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  state.isOutOfMemory = true;
  const std::string wrong = attention();
  EXPECT_TRUE(wrong.starts_with("kiln.OutOfMemoryError: attention: torch has no memory for an output of 2x64x2x64"))
      << wrong;
  state.isOutOfMemory = false;
  EXPECT_EQ(attention(), "");
}

/// At each allocation in turn: outputs, then the workspace.
TEST_F(DoorTorch, WithoutMemoryNothingIsLost) {
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  for (const int left : {0, 1, 2, 3}) {
    state.allocationsLeft = left;
    const std::string wrong = backward(false);
    EXPECT_TRUE(wrong.starts_with("kiln.OutOfMemoryError: attention_backward: torch has no memory for ")) << wrong;
    EXPECT_NE(wrong.find(left < 3 ? "an output" : "a workspace"), wrong.npos) << wrong;
  }
  state.allocationsLeft = -1;
  EXPECT_EQ(backward(false), "");
}

TEST_F(DoorTorch, WhatTorchSaysOfAFailureIsToldOn) {
  functions.torch_exception_get_what_without_backtrace = [] { return "CUDA error: device-side assert triggered"; };
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  state.isBroken = true;
  const std::string wrong = backward(true);
  EXPECT_EQ(wrong.find("kiln.DeviceError: attention_backward: torch did not set an output to 0: CUDA error: device"),
            0U)
      << wrong;
  state.isBroken = false;
  EXPECT_EQ(backward(true), "");
}

TEST_F(DoorTorch, NoneForATensorThatMustBeThereIsNamed) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  TorchTensorOpaque none = dense({1});
  none.dtype = -1;
  const std::string wrong = attention(none);
  EXPECT_EQ(wrong.find("kiln.TypeError: attention: argument 'k' is missing"), 0U) << wrong;
}

TEST_F(DoorTorch, ATensorOfAnotherDeviceIsNeverCopiedThere) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  TorchTensorOpaque k = dense({2, 128, 1, 64});
  k.strides = {128 * 64, 1, 64, 128}, k.device = nullPlace.number + 1;
  const std::string wrong = attention(k);
  EXPECT_NE(wrong.find("argument 'k' is on cuda:78"), wrong.npos) << wrong;
  EXPECT_TRUE(state.copied.empty());
}

TEST_F(DoorTorch, RowsWithAnotherStrideAreCopied) {
  ASSERT_NO_FATAL_FAILURE(makeAttention());
  TorchTensorOpaque k = dense({2, 128, 1, 64});
  k.strides = {128 * 64, 1, 64, 128};
  ASSERT_EQ(attention(k), "");
  ASSERT_EQ(state.copied.size(), 1U);
  EXPECT_EQ(state.copied[0].strides, dense({2, 128, 1, 64}).strides);
}

TEST_F(DoorTorch, ACacheIsNeverCopied) {
  ASSERT_NO_FATAL_FAILURE(make("attention", {"q k! v", "", "o lse"}));
  TorchTensorOpaque k = dense({2, 128, 1, 64});
  k.strides = {128 * 64, 1, 64, 128};
  tensor(dense({2, 64, 2, 64})), tensor(k), tensor(dense({2, 128, 1, 64}));
  EXPECT_NE(run(2).find("argument 'k'"), std::string::npos);
  EXPECT_TRUE(state.copied.empty());
}

TEST_F(DoorTorch, TheWorkspaceIsTorchs) {
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  for (int i = 0; i < 2; ++i) {
    state.made.clear();
    ASSERT_EQ(backward(false), "");
    ASSERT_EQ(state.made.size(), 4U);
    EXPECT_EQ(state.made[3].dtype, byte);
    EXPECT_GT(state.made[3].sizes.at(0), 0);
  }
  EXPECT_TRUE(state.zeroed.empty());
}

/// What is refused for the workspace's size is asked for again, and no more than once.
TEST_F(DoorTorch, AWorkspaceThatIsTooSmallIsRefused) {
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  state.missing = 1;
  const std::string wrong = backward(false);
  EXPECT_TRUE(wrong.starts_with("kiln.ValueError: ") && wrong.find("the workspace has ") != wrong.npos) << wrong;
  EXPECT_EQ(state.made.size(), 4U);
  state.missing = 0;
  EXPECT_EQ(backward(false), "");
}

/// What a call needs follows from more than what it is remembered by: here from where tensors begin.
TEST_F(DoorTorch, AWorkspaceThatBecameTooSmallIsAskedForOnceMore) {
  const auto bytesOf = [&](std::uintptr_t offset) {
    state.offset = offset, state.made.clear();
    EXPECT_EQ(backward(false), "");
    return state.made.back().sizes.at(0);
  };
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  const std::int64_t aligned = bytesOf(0);
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  const std::int64_t odd = bytesOf(4);
  ASSERT_NE(aligned, odd);
  const std::uintptr_t less = aligned < odd ? 0 : 4, more = 4 - less;
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  EXPECT_EQ(bytesOf(less), std::min(aligned, odd));
  EXPECT_EQ(bytesOf(more), std::max(aligned, odd));
  EXPECT_EQ(state.made.size(), 5U); // three outputs, the workspace of before, the right one
  EXPECT_EQ(bytesOf(more), std::max(aligned, odd));
  EXPECT_EQ(state.made.size(), 4U);
}

TEST_F(DoorTorch, RowsOfNoSequenceHaveGradientsOfZero) {
  ASSERT_NO_FATAL_FAILURE(makeBackward());
  ASSERT_EQ(backward(true), "");
  EXPECT_EQ(state.zeroed.size(), 3U);
}

TEST_F(DoorTorch, NamesThatAreNotInTheTableAreRefused) {
  const auto family = kernels::findFamily("attention");
  ASSERT_TRUE(family.ok());
  for (const TorchOperation::Names names :
       {TorchOperation::Names{"q kk v", "", "o"}, {"q k v", "cause", "o"}, {"q k v", "", "p"}, {"q k v", "", "o=x"}}) {
    const Failure f = TorchOperation::create(**family, functions, "attention", names, operation);
    EXPECT_NE(f.kind, "") << names.inputs << " " << names.options << " " << names.outputs;
  }
}

/// Without a torch in the process.
TEST(DoorTorchAbi, IsNotThere) {
  EXPECT_EQ(TorchAbi::find(), nullptr);
  bool isDone = true;
  const auto family = kernels::findFamily("softmax");
  ASSERT_TRUE(family.ok());
  EXPECT_EQ(implementInTorch(**family, "softmax", "CUDA", {"x", "", "out"}, isDone).toString(), "");
  EXPECT_FALSE(isDone);
}

} // namespace
} // namespace kiln::door
