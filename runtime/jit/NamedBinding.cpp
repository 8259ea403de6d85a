#include "runtime/jit/NamedBinding.h"

#include "support/Text.h"

namespace kiln {

Result<NamedBinding> NamedBinding::create(const KernelSource &source, const ArgumentLayout &layout,
                                          const GivenArguments &given) {
  const auto refuse = [&](std::string what, std::string remedy) {
    return Status::invalid("kernel '" + source.name + "': " + std::move(what), std::move(remedy));
  };
  // What a launch calls an argument: a tensor's parts by its name.
  const auto nameOf = [](const ArgumentSpec &spec) -> const std::string & {
    return spec.part ? spec.part->tensor : spec.name;
  };
  const auto place = [&](std::string_view name) {
    std::size_t i = 0;
    while (i < given.names.size() && given.names[i] != name)
      ++i;
    return i;
  };
  NamedBinding out;
  out.kernel = source.name;
  for (std::size_t i = 0; i < given.names.size(); ++i) {
    const std::string name(given.names[i]);
    if (place(name) != i)
      return refuse("the argument '" + name + "' is given twice", "give each argument once");
    std::vector<std::string> known;
    bool found = false;
    for (const ArgumentSpec &spec : source.arguments) {
      found |= nameOf(spec) == name;
      if (known.empty() || known.back() != nameOf(spec))
        known.push_back(nameOf(spec));
    }
    if (!found && given.values[i].tensor && !given.values[i].tensor->address)
      out.left.emplace_back(static_cast<std::uint16_t>(i), name);
    else if (!found)
      return refuse("there is no argument '" + name + "'", "its arguments are " + join(known, ", "));
  }

  for (std::size_t a = 0; a < source.arguments.size(); ++a) {
    const ArgumentSpec &spec = source.arguments[a];
    const auto argument = static_cast<unsigned>(a);
    const std::size_t i = place(nameOf(spec));
    const ArgumentType type = layout.type(argument).type;
    Move move{static_cast<std::uint16_t>(i),
              static_cast<std::uint16_t>(layout.offset(argument)),
              static_cast<std::uint16_t>(a),
              static_cast<std::uint8_t>(argumentBytes(type)),
              Move::What::Bits,
              0};
    if (i == given.names.size()) {
      if (!spec.part || !spec.part->optional)
        return refuse("the argument '" + nameOf(spec) + "' is missing", "give it by its name");
      out.types.push_back(type); // zeros
      continue;
    }
    const GivenArgument &value = given.values[i];
    if (spec.part) {
      if (!value.tensor)
        return refuse("the argument '" + spec.part->tensor + "' is a tensor of " + std::to_string(spec.part->rank) +
                          " dimensions, " + std::string(argumentTypeName(value.type)) + " was given",
                      "give a kiln::Tensor, which has extents and strides");
      using Role = TensorPart::Role;
      move.what = spec.part->role == Role::Pointer  ? Move::What::Address
                  : spec.part->role == Role::Extent ? Move::What::Extent
                                                    : Move::What::Stride;
      move.dim = spec.part->dim;
      if (spec.part->role == Role::Pointer)
        out.tensors.push_back({move.given, spec.part->rank, spec.part->optional, spec.part->tensor});
      out.types.push_back(type);
    } else {
      const bool word =
          value.type == ArgumentType::Word64 && (type == ArgumentType::Pointer || type == ArgumentType::I64);
      if (value.type != type && !word)
        return refuse("the argument '" + spec.name + "' is " + spec.type + ", " +
                          std::string(argumentTypeName(value.type)) + " was given",
                      "convert the value where it is given");
      if (value.tensor)
        move.what = Move::What::Address;
      out.types.push_back(type);
    }
    out.moves.push_back(move);
  }
  return out;
}

Status NamedBinding::pack(const GivenArgument *values, std::byte *data, std::uint8_t *elements) const {
  for (const auto &[i, name] : left)
    if (values[i].tensor->address) [[unlikely]]
      return Status::invalid("kernel '" + kernel + "': there is no argument '" + name + "'", "give an empty Tensor");
  for (const TensorRule &rule : tensors) {
    const Tensor &tensor = *values[rule.given].tensor;
    if (rule.optional && !tensor.address)
      continue;
    if (tensor.rank != rule.rank) [[unlikely]]
      return Status::invalid("kernel '" + kernel + "': the tensor '" + rule.name + "' has " +
                                 std::to_string(tensor.rank) + " dimensions, not " + std::to_string(rule.rank),
                             "give " + tensor.toString() + " the dimensions that the kernel has");
  }
  for (const Move &move : moves) {
    const GivenArgument &value = values[move.given];
    std::uint64_t bits = value.bits;
    switch (move.what) {
    case Move::What::Bits:
      break;
    case Move::What::Address:
      bits = value.tensor->address;
      elements[move.argument] = value.tensor->address ? elementCode(value.tensor->dtype) : 0;
      break;
    case Move::What::Extent:
      bits = static_cast<std::uint64_t>(value.tensor->shape[move.dim]);
      break;
    case Move::What::Stride:
      bits = static_cast<std::uint64_t>(value.tensor->strides[move.dim]);
      break;
    }
    if (move.bytes == 8) // of known size a copy is one store
      std::memcpy(data + move.offset, &bits, 8);
    else if (move.bytes == 4)
      std::memcpy(data + move.offset, &bits, 4);
    else
      std::memcpy(data + move.offset, &bits, move.bytes);
  }
  return {};
}

const NamedBinding *BindingTable::findMore(const void *names) const {
  const std::lock_guard lock(mutex);
  for (const auto &[key, binding] : all)
    if (key == names)
      return binding.get();
  return nullptr;
}

const NamedBinding *BindingTable::insert(const void *names, NamedBinding binding) {
  const std::lock_guard lock(mutex);
  for (const auto &[key, known] : all)
    if (key == names)
      return known.get();
  all.emplace_back(names, std::make_unique<const NamedBinding>(std::move(binding)));
  const std::size_t n = all.size() - 1;
  if (n < slots.size()) {
    slots[n].binding = all.back().second.get();
    slots[n].names.store(names, std::memory_order_release);
  }
  return all.back().second.get();
}

} // namespace kiln
