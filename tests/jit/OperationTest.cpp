#include "kiln/Operation.h"
#include "tests/jit/JitFixture.h"

#include <barrier>
#include <set>
#include <thread>

using namespace kiln;
using namespace kiln::test;

namespace {

struct TwiceArguments {
  Tensor input, output;
};

/// output = (input + input) + input, in two launches over a workspace.
class Thrice : public Operation<TwiceArguments> {
public:
  explicit Thrice(Jit &jit) : Operation(jit) {}
  std::string_view name() const override { return "thrice"; }
  Status check(const TwiceArguments &a) const override {
    KILN_TRY(checkTensor("input", a.input).on(jit().device()).dtype({DType::F32}).rank(1).dense().status());
    return checkTensor("output", a.output).on(jit().device()).dtype({DType::F32}).shapeOf("input", a.input).status();
  }

protected:
  Status plan(const TwiceArguments &a, Plan &plan) const override {
    KILN_ASSIGN(JitKernel * add, jit().kernel(addSource()));
    const auto n = static_cast<std::int32_t>(a.input.elements());
    const Dim3 grid{static_cast<unsigned>(n + 127) / 128};
    KILN_ASSIGN(const auto parts, plan.workspace({{"twice", 4 * static_cast<std::size_t>(n)}}));
    KILN_TRY(plan.launch(*add, grid, named<"x">(a.input), named<"y">(a.input), named<"out">(parts[0]), named<"n">(n)));
    return plan.launch(*add, grid, named<"x">(parts[0]), named<"y">(a.input), named<"out">(a.output), named<"n">(n));
  }
};

class OperationTest : public JitTest {
protected:
  Tensor tensor(const Buffer &buffer, std::int64_t n) { return *Tensor::dense(*device, buffer, DType::F32, {n}); }
};

TEST_F(OperationTest, LaunchesInOrderOverAWorkspace) {
  auto x = floats(1000, 1, 0.5f), out = floats(1000, -1, 0), own = floats(1000, -2, 0);
  Thrice thrice(*jit);
  const TwiceArguments arguments{.input = tensor(*x, 1000), .output = tensor(*out, 1000)};
  const auto check = [&] {
    std::vector<float> got(1000);
    ASSERT_TRUE(out->copyToHost(0, std::as_writable_bytes(std::span(got))).ok());
    for (int i = 0; i < 1000; ++i)
      ASSERT_EQ(got[i], 3 * (1 + 0.5f * static_cast<float>(i)));
    ASSERT_TRUE(out->fill(std::byte{0xee}).ok());
  };
  ASSERT_EQ(thrice.workspaceBytes(arguments), 4000u);
  const Status pooled = thrice.run(arguments);
  ASSERT_TRUE(pooled.ok()) << pooled.toString();
  check();
  ASSERT_TRUE(thrice.run(arguments, {.workspace = own->address(), .workspaceBytes = own->size()}).ok());
  check();
  EXPECT_EQ(compiles(), 1u);
}

TEST_F(OperationTest, WrongArgumentsAndWorkspacesAreRefusedBeforeALaunch) {
  auto x = floats(1000, 1, 0.5f), out = floats(1000, -1, 0);
  Thrice thrice(*jit);
  TwiceArguments arguments{.input = tensor(*x, 1000), .output = tensor(*out, 999)};
  EXPECT_NE(thrice.run(arguments).message().find("argument 'output' has shape [999], 'input' has [1000]"),
            std::string::npos);
  arguments.output = tensor(*out, 1000);
  const auto message = [&](DeviceAddress address, std::size_t bytes) {
    return thrice.run(arguments, {.workspace = address, .workspaceBytes = bytes}).message();
  };
  EXPECT_EQ(message(x->address(), 3999), "operation 'thrice': the workspace has 3999 bytes, 4000 are needed");
  EXPECT_NE(message(x->address() + 4, 4000).find("does not lie at a multiple of 256 bytes"), std::string::npos);
  EXPECT_NE(message(0, 4000).find("the workspace is a null pointer"), std::string::npos);
  EXPECT_EQ(compiles(), 0u);
}

TEST_F(OperationTest, AStreamKeepsItsWorkspaceAndNoOtherStreamGetsIt) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  ASSERT_TRUE(made.ok());
  Jit &nullJit = **made;
  NullStream a, b;
  auto first = nullJit.workspace(1000, &a), again = nullJit.workspace(800, &a), other = nullJit.workspace(1000, &b);
  ASSERT_TRUE(first.ok() && again.ok() && other.ok());
  EXPECT_EQ(*first, *again);
  EXPECT_NE(*first, *other);
  EXPECT_EQ(null.allocations, 2u);
  EXPECT_TRUE(nullJit.workspace(5000, &a).ok()); // grows after the stream's work is done
  EXPECT_EQ(a.synchronized, 1u);
  EXPECT_EQ(null.allocations, 3u);
  EXPECT_TRUE(nullJit.workspace(5500, &a).ok());
  EXPECT_EQ(null.allocations, 4u);
  EXPECT_TRUE(nullJit.workspace(7500, &a).ok()); // half as much again was taken
  EXPECT_EQ(null.allocations, 4u);
  EXPECT_EQ(*nullJit.workspace(0, &a), 0u);
}

TEST_F(OperationTest, ThreadsWithStreamsOfTheirOwnShareThePool) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  ASSERT_TRUE(made.ok());
  constexpr unsigned count = 8;
  NullStream streams[count];
  std::vector<DeviceAddress> last(count);
  std::barrier start(std::ptrdiff_t{count});
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < count; ++t)
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      for (std::size_t bytes = 256; bytes <= 256 * 64; bytes += 256)
        if (auto address = (*made)->workspace(bytes, &streams[t]); address.ok())
          last[t] = *address;
    });
  for (std::thread &t : threads)
    t.join();
  EXPECT_EQ(std::set<DeviceAddress>(last.begin(), last.end()).size(), count);
  for (unsigned t = 0; t < count; ++t)
    EXPECT_EQ(*(*made)->workspace(256, &streams[t]), last[t]);
}

/// A stream's number is never given again, so its block never goes to a stream that was made later.
TEST_F(OperationTest, ANewStreamGetsNoOldWorkspace) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  std::set<DeviceAddress> live;
  for (unsigned i = 0; i < 20; ++i) {
    NullStream stream;
    auto address = (*made)->workspace(64, &stream);
    ASSERT_TRUE(address.ok());
    EXPECT_TRUE(live.insert(*address).second);
  }
}

TEST_F(OperationTest, InsideACaptureOnlyTheCallersWorkspaceServes) {
  NullDevice null;
  auto made = Jit::create(null, jitOptions());
  NullStream stream;
  stream.capturing = true;
  const Status s = (*made)->workspace(64, &stream).status();
  EXPECT_EQ(s.code(), StatusCode::NotReady);
  EXPECT_NE(s.remedy().find("pass a workspace"), std::string::npos);
  RunOptions options{.stream = &stream, .workspace = 512, .workspaceBytes = 64};
  auto own = chooseWorkspace(**made, "op", 64, options);
  ASSERT_TRUE(own.ok());
  EXPECT_EQ(*own, 512u);
}

} // namespace
