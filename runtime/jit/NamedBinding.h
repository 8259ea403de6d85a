//===- NamedBinding.h - From named values to packed arguments -------------===//
//
// A binding says, for one kernel and one call site, where each part of each value lies in the packed arguments.  It is
// made once and never changes; `BindingTable` finds it by the address of the call site's names, without a lock.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_JIT_NAMEDBINDING_H
#define KILN_RUNTIME_JIT_NAMEDBINDING_H

#include "kiln/NamedArguments.h"
#include "runtime/jit/ArgumentClass.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <vector>

namespace kiln {

class NamedBinding {
public:
  /// A failure names the argument that is missing, unknown, given twice or of another type.
  static Result<NamedBinding> create(const KernelSource &source, const ArgumentLayout &layout,
                                     const GivenArguments &given);

  /// Writes the packed arguments to `data`, of layout.bytes(), and to `elements`, one for each argument of the kernel,
  /// what tensors point to.  A failure names the tensor that does not fit.
  Status pack(const GivenArgument *values, std::byte *data, std::uint8_t *elements) const;

  /// One a kernel's argument.
  const std::vector<ArgumentType> &argumentTypes() const { return types; }

private:
  struct Move {
    std::uint16_t given, offset, argument;
    std::uint8_t bytes;
    enum class What : std::uint8_t { Bits, Address, Extent, Stride } what;
    std::uint8_t dim;
  };
  struct TensorRule {
    std::uint16_t given;
    std::uint8_t rank;
    bool optional;
    std::string name;
  };
  std::vector<Move> moves;
  std::vector<TensorRule> tensors;
  std::vector<std::pair<std::uint16_t, std::string>> left; ///< tensors that the kernel lacks: none may be given
  std::vector<ArgumentType> types;
  std::string kernel;
};

class BindingTable {
public:
  const NamedBinding *find(const void *names) const {
    for (const Slot &slot : slots) {
      const void *key = slot.names.load(std::memory_order_acquire);
      if (key == names)
        return slot.binding;
      if (!key)
        return nullptr;
    }
    return findMore(names);
  }
  /// The one that is kept: an equal one may have been first.
  const NamedBinding *insert(const void *names, NamedBinding binding);

private:
  struct Slot {
    std::atomic<const void *> names{nullptr}; ///< written last
    const NamedBinding *binding = nullptr;
  };
  const NamedBinding *findMore(const void *names) const;

  std::array<Slot, 8> slots; ///< more call sites than these take the lock
  mutable std::mutex mutex;
  std::vector<std::pair<const void *, std::unique_ptr<const NamedBinding>>> all;
};

} // namespace kiln

#endif // KILN_RUNTIME_JIT_NAMEDBINDING_H
