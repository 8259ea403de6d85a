//===- Plan.h - The launches of an operation, as data or as work ----------===//
//
// An operation describes a call once, in its `plan`: the named parts of its workspace, then its launches in order.
//
//   Status plan(const DplrArguments &a, Plan &plan) const override {
//     KILN_ASSIGN(const auto parts, plan.workspace({{"maps", bytesOfMaps}, {"outputs", bytesOfOutputs}}));
//     KILN_TRY(plan.launch(*maps, gridOfMaps, named<"q">(a.q), .., named<"maps">(tensorAt(parts[0]))));
//     return plan.launch(*out, gridOfOut, ..);
//   }
//
// Which Plan it is decides what becomes of the call: launched on a stream (RunPlan), compiled in parallel
// (PreparePlan), measured (WorkspacePlan), listed (PlanListing).  An operation must not ask which Plan it was given,
// and asks for its workspace once, before its launches.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PLAN_H
#define KILN_PLAN_H

#include "kiln/Jit.h"

#include <functional>
#include <string>
#include <vector>

namespace kiln {

/// Where an operation runs.
struct RunOptions {
  Stream *stream = nullptr;       ///< nullptr: the device's default stream
  DeviceAddress workspace = 0;    ///< 0: the Jit's
  std::size_t workspaceBytes = 0; ///< of the caller's workspace
};

/// A part of the memory between launches.
struct WorkspacePart {
  const char *name = "";
  std::size_t bytes = 0;
};

class Plan {
public:
  /// Parts begin at multiples of this.
  static constexpr std::size_t alignment = 256;

  virtual ~Plan() = default;

  /// Where the parts lie, in their order; undefined bytes.  All of 0 bytes need no memory.
  template <std::size_t N> Result<std::array<DeviceAddress, N>> workspace(const WorkspacePart (&parts)[N]) {
    KILN_ASSIGN(DeviceAddress at, reserve({parts, N}));
    std::array<DeviceAddress, N> out;
    for (std::size_t i = 0; i < N; ++i) {
      out[i] = at;
      at += rounded(parts[i].bytes);
    }
    return out;
  }

  /// The next launch.
  template <ArgumentName... names, typename... Args>
  Status launch(JitKernel &kernel, Dim3 grid, const NamedArgument<names, Args> &...arguments) {
    const GivenArgument values[] = {detail::given(arguments.value)...};
    return add(kernel, grid, GivenArguments{detail::NamesOf<names...>::template list<Args...>, values});
  }

  static constexpr std::size_t rounded(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
  static std::size_t bytesOf(std::span<const WorkspacePart> parts);

protected:
  virtual Result<DeviceAddress> reserve(std::span<const WorkspacePart> parts) = 0;
  virtual Status add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) = 0;
};

/// A function that describes a call to a plan.
using PlanFunction = std::function<Status(Plan &)>;

/// The workspace of a call that needs `needed` bytes: the caller's if it is large enough and 256-byte aligned.
Result<DeviceAddress> chooseWorkspace(Jit &jit, std::string_view operation, std::size_t needed,
                                      const RunOptions &options);

/// A call in the words after `kiln bench`, "softmax --dtype f16 --with x=4096x128"; nothing: no words say it.
using CallText = std::function<std::optional<std::string>()>;

/// Launches.  The first launch whose code is not there yet has the code of the whole call compiled, in parallel.
class RunPlan final : public Plan, private MissHandler {
public:
  /// One call.  Where a workspace of the caller's is too small for values that were tuned meanwhile, it is described
  /// once more with those that it was measured for.
  static Status run(Jit &jit, std::string_view operation, const RunOptions &options, const PlanFunction &call,
                    const CallText &text);

  /// What is given by reference outlives the plan, which belongs to its thread.  `takesLater`: see tunedGeneration.
  RunPlan(Jit &jit, std::string_view operation, const RunOptions &options, const PlanFunction &call,
          const CallText &text, bool takesLater = true);
  ~RunPlan();
  RunPlan(const RunPlan &) = delete;
  RunPlan &operator=(const RunPlan &) = delete;

  /// The call of `jit` that this thread runs; null: none.
  static RunPlan *running(const Jit &jit);
  /// Of tuned values (Jit::tunedGeneration), the same for the whole call; 0: it takes none that came later than its
  /// first ones, as it is recorded into a graph.
  std::uint64_t tunedGeneration();
  std::optional<std::string> words() const { return text ? text() : std::nullopt; }

private:
  Result<DeviceAddress> reserve(std::span<const WorkspacePart> parts) override;
  Status add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) override;
  void missed() override;

  Jit &jit;
  std::string_view operation;
  const RunOptions &options;
  const PlanFunction &call;
  const CallText &text;
  RunPlan *const outer; ///< that this thread was running before
  std::optional<std::uint64_t> generation;
  bool prepared = false;
  bool isTooLarge = false; ///< with values that were tuned later, for the caller's workspace; nothing was launched
};

/// Adds up the workspace; launches nothing.
class WorkspacePlan final : public Plan {
public:
  std::size_t bytes = 0;

private:
  Result<DeviceAddress> reserve(std::span<const WorkspacePart> parts) override;
  Status add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) override;
};

/// What a call would do.
class PlanListing final : public Plan {
public:
  struct Part {
    std::string name;
    std::size_t bytes = 0;
  };
  struct Launch {
    JitKernel *kernel = nullptr;
    Dim3 grid;
    std::vector<std::string_view> names;
    std::vector<GivenArgument> values; ///< `tensor` points into `tensors`
    std::vector<std::unique_ptr<Tensor>> tensors;
    const std::string_view *nameList = nullptr; ///< the call site's
    GivenArguments arguments() const { return {{nameList, names.size()}, values.data()}; }
  };
  std::vector<Part> parts;
  std::vector<Launch> launches;

private:
  Result<DeviceAddress> reserve(std::span<const WorkspacePart> parts) override;
  Status add(JitKernel &kernel, Dim3 grid, const GivenArguments &arguments) override;
};

/// The code of every launch of a call, compiled if need be, each on a thread of its own.  In the order of the launches;
/// a failure is that of the first launch that fails.
Result<std::vector<const LoadedKernel *>> prepareAll(const PlanFunction &call, Stream *stream = nullptr);
/// The same without waiting (Future.h); `call` is asked before this returns.
CompileFuture prepareAllAsync(const PlanFunction &call, Stream *stream = nullptr);

} // namespace kiln

#endif // KILN_PLAN_H
