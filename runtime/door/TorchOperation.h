//===- TorchOperation.h - An operation as a kernel of torch's dispatcher ------===//
//
// A call of torch.ops.kiln.NAME that runs no Python: the dispatcher passes the arguments on a stack (TorchAbi.h);
// the outputs are torch's memory, of the types that the operation's own table says, as is the workspace of a call on a
// GPU; it runs on torch's current stream.  What a call of these types and options needs is asked once and remembered.
// The bytes may go stale, for instance when a sweep finds a faster kernel that needs more: the library refuses a
// workspace that is too small before it launches anything; then they are asked for again, once.
//
// Schemas, fake implementations and gradients are Python's (runtime/python/kiln/torch).
//
// Invariant: of what a call was given and made, it keeps nothing.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_TORCHOPERATION_H
#define KILN_RUNTIME_DOOR_TORCHOPERATION_H

#include "runtime/door/DoorCall.h"
#include "runtime/door/TorchAbi.h"

#include <memory>
#include <vector>

namespace kiln::door {

class TorchOperation {
public:
  /// How a schema of torch's stands to a family's table.
  struct Names {
    /// Names with a blank between two.  Tensors come first; "?": it may be missing; "!": never copied, though its last
    /// dimension has another stride than 1.
    std::string_view inputs;
    std::string_view options; ///< each may be missing
    /// Results.  "=NAME" after an output: no result, it is that input.  "*": elements that the call leaves alone are 0.
    std::string_view outputs;
  };
  /// `name`: of the operation of torch's.  None: it has more arguments than a call here takes.
  static Failure create(const kernels::Family &family, const TorchAbi &torch, std::string_view name, const Names &names,
                        std::unique_ptr<TorchOperation> &out);

  /// A call.  nullptr for success: then the results are on the stack, else the message, with the kind before it, until
  /// the thread's next call.
  const char *run(TorchValue *stack) const;

private:
  TorchOperation(const kernels::Family &family, const TorchAbi &torch) : family(&family), torch(&torch) {}
  class Running;

  enum class Kind : std::uint8_t { Tensor, Flag, Whole, Number, Text };
  struct Argument {
    std::size_t place = 0; ///< in a call by position
    Kind kind = Kind::Tensor;
    bool isOptional = true, isNeverCopied = false;
  };
  struct Output {
    std::size_t place = 0;
    std::string_view name; ///< the table's
    bool isFilled = false;
    int input = -1; ///< that it is
  };
  Failure readNames(const Names &names);
  Failure placeOf(std::string_view name, std::size_t &place) const;

  const kernels::Family *family;
  const TorchAbi *torch;
  std::string name;
  std::vector<Argument> arguments;
  std::vector<Output> outputs;
  std::size_t tensors = 0, fields = 0; ///< of a call by position; the workspace is the last one
};

/// Implements the operation `name` of the namespace kiln, whose schema is defined, for `key` (CPU, CUDA).  `isDone`:
/// false where this process has no torch that can.
Failure implementInTorch(const kernels::Family &family, const std::string &name, const std::string &key,
                         const TorchOperation::Names &names, bool &isDone);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_TORCHOPERATION_H
