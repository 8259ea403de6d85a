//===- BoundCall.h - A call whose arrays are still to come ---------------------===//
//
// An operation with the names of the arrays that its calls give, in their order, and the values of its options: for
// callers that have no way to say that an argument in the middle is missing, or to pass a text (XLA's).
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_BOUNDCALL_H
#define KILN_RUNTIME_DOOR_BOUNDCALL_H

#include "runtime/door/DoorCall.h"

#include <deque>
#include <memory>
#include <vector>

namespace kiln::door {

class BoundCall {
public:
  /// `arguments`: names of the arrays, with blanks between them; names of the options; the options' values.
  static Failure create(const kernels::Family &family, std::span<const FfiValue> arguments,
                        std::unique_ptr<BoundCall> &out);

  /// Any thread may call it, at the same time, too.
  Failure run(std::span<const FfiValue> arrays) const;

private:
  explicit BoundCall(const kernels::Family &family);
  /// The place of the first of these names, which it takes off.
  Failure take(std::string_view &names, std::size_t &place) const;

  const kernels::Family *family;
  std::vector<std::string_view> order; ///< names of all arguments, of the family's table
  std::vector<std::size_t> places;     ///< of the arrays
  std::vector<FfiValue> values;        ///< of a call; those of the arrays are none
  std::deque<std::string> texts;       ///< that `values` point into
};

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_BOUNDCALL_H
