//===- OperationCall.h - A thread's calls of one operation ---------------------===//
//
// The maps of a Call keep their nodes from call to call: values are overwritten, and what a call does not give is taken
// out as a node handle.  So reading the arguments of a call allocates nothing.
//
// Invariant: `hasChanged` is true unless the call gives the same arguments with the same values as the last one that
// was `accepted`, but for where tensors lie.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DOOR_OPERATIONCALL_H
#define KILN_RUNTIME_DOOR_OPERATIONCALL_H

#include "runtime/door/DoorCall.h"
#include "runtime/door/DoorDevices.h"

namespace kiln::door {

/// A family's table without what has no place in a call by position, made once.
struct OperationTable {
  OperationTable(const kernels::Family &family, std::size_t number);
  const kernels::Callable *callable;
  std::size_t number; ///< in kernels/Families.def
  kernels::CallTable table;
};
/// Of a family of families().
const OperationTable &tableOf(const kernels::Family &family);

/// An entry of a map that may be out of it.
template <typename Map> class Entry {
public:
  using Value = typename Map::mapped_type;
  Entry(Map &map, const std::string &name) : map(&map) {
    const auto made = map.try_emplace(name).first;
    entry = &made->second;
    out = map.extract(made);
  }
  bool isIn() const { return out.empty(); }
  Value &value() const { return *entry; }
  /// Whether that changed anything.
  bool put(bool in) {
    if (in == isIn())
      return false;
    if (in)
      at = map->insert(std::move(out)).position;
    else
      out = map->extract(at);
    return true;
  }

private:
  Map *map;
  Value *entry; ///< stays where it is, in the map and out of it
  typename Map::iterator at;
  typename Map::node_type out;
};

class OperationCall {
public:
  /// The calling thread's.
  static OperationCall &of(const kernels::Family &family);

  /// Takes the arguments in.  `typesOnly`: outputs may be True in the place of a tensor.
  Failure read(std::span<const FfiValue> arguments, bool typesOnly);
  void accept() { hasChanged = false; }

  const OperationTable &operation;
  kernels::Call call;
  std::vector<const FfiTensor *> given; ///< by the table's tensors; nullptr: none
  Place place;
  Tensor workspace; ///< address 0: none
  bool hasChanged = true;

  // What the last call found.
  DoorDevice *device = nullptr;
  Place devicePlace;
  const kernels::Callable::Planner *planner = nullptr;
  void *native = nullptr;
  Stream *stream = nullptr; ///< `native` on `device`

private:
  explicit OperationCall(const OperationTable &operation);
  /// Whether the tensor, or that it is asked for, is in the call.
  bool isIn(std::size_t tensor) const { return tensors[tensor].isIn() || (asked[tensor] && asked[tensor]->isIn()); }
  // Each says whether it was right, else what was wrong: a Failure of nothing for each of forty arguments costs more
  // than reading them.
  bool readTensor(std::size_t number, const FfiValue &value, bool typesOnly, Failure &wrong);
  bool readOption(std::size_t number, const FfiValue &value, Failure &wrong);
  bool readWorkspace(const FfiValue &value, Failure &wrong);
  bool readPlace(const FfiTensor &tensor, std::string_view name, Failure &wrong);

  std::vector<Entry<decltype(kernels::Call::tensors)>> tensors;
  std::vector<Entry<kernels::OptionValues>> options;
  std::vector<std::optional<Entry<kernels::OptionValues>>> asked; ///< of optional outputs, by the table's tensors
  std::string_view first; ///< the argument that `place` is from; empty: none yet
};

/// "softmax: argument 'x'".
std::string argumentText(std::string_view operation, std::string_view name);

} // namespace kiln::door

#endif // KILN_RUNTIME_DOOR_OPERATIONCALL_H
