#include "kernels/attention/FunctionTree.h"

namespace kiln::kernels::function {

using namespace language;

namespace {

/// f(a, b), of whole numbers if both are.
template <typename F> Tree ofBoth(const Parts &p, F f) {
  const bool areWhole = p[0]->type == Type::Whole && p[1]->type == Type::Whole;
  if (areWhole)
    return node(Type::Whole, [=]<typename A>(const Block<A> &at) -> typename A::Value {
      return f(wholeOf(p[0], at), wholeOf(p[1], at));
    });
  return node(Type::Number, [=]<typename A>(const Block<A> &at) -> typename A::Value {
    return f(numberOf(p[0], at), numberOf(p[1], at));
  });
}
template <typename F> Tree compared(const Parts &p, F f) {
  if (p[0]->type == Type::Whole && p[1]->type == Type::Whole)
    return node(Type::Mask, [=]<typename A>(const Block<A> &at) -> typename A::Value {
      return f(wholeOf(p[0], at), wholeOf(p[1], at));
    });
  return node(Type::Mask, [=]<typename A>(const Block<A> &at) -> typename A::Value {
    return f(numberOf(p[0], at), numberOf(p[1], at));
  });
}
template <typename F> Tree ofWhole(const Parts &p, F f) {
  return node(Type::Whole, [=]<typename A>(const Block<A> &at) -> typename A::Value {
    return f(wholeOf(p[0], at), wholeOf(p[1], at));
  });
}
template <typename F> Tree ofNumbers(const Parts &p, F f) {
  return node(Type::Number, [=]<typename A>(const Block<A> &at) -> typename A::Value {
    return f(numberOf(p[0], at), numberOf(p[1], at));
  });
}
template <typename F> Tree ofNumber(const Parts &p, F f) {
  return node(Type::Number, [=]<typename A>(const Block<A> &at) -> typename A::Value { return f(numberOf(p[0], at)); });
}
/// f(a), of a whole number if it is one.
template <typename F> Tree ofEither(const Parts &p, F f) {
  if (p[0]->type == Type::Whole)
    return node(Type::Whole, [=]<typename A>(const Block<A> &at) -> typename A::Value { return f(wholeOf(p[0], at)); });
  return ofNumber(p, f);
}
template <typename F> Tree ofMasks(const Parts &p, F f) {
  return node(Type::Mask, [=]<typename A>(const Block<A> &at) -> typename A::Value {
    return f(maskOf(p[0], at), maskOf(p[1], at));
  });
}

} // namespace

#define KILN_INFIX(symbol, kind, make)                                                                                 \
  Operation {                                                                                                          \
    #symbol, {Type::kind, Type::kind},                                                                                 \
        [](const Parts &p) { return make(p, [](const auto &a, const auto &b) { return a symbol b; }); }                \
  }
#define KILN_FUNCTION(name)                                                                                            \
  Operation {                                                                                                          \
    #name, {Type::Number}, [](const Parts &p) { return ofNumber(p, [](const auto &a) { return name(a); }); }           \
  }
#define KILN_CHOICE(name)                                                                                              \
  Operation {                                                                                                          \
    #name, {Type::Number, Type::Number},                                                                               \
        [](const Parts &p) { return ofBoth(p, [](const auto &a, const auto &b) { return name(a, b); }); }              \
  }

const std::vector<std::vector<Operation>> &infixOperations() {
  static const std::vector<std::vector<Operation>> all = {
      {KILN_INFIX(|, Mask, ofMasks)},
      {KILN_INFIX(&, Mask, ofMasks)},
      {KILN_INFIX(<=, Number, compared), KILN_INFIX(>=, Number, compared), KILN_INFIX(==, Number, compared),
       KILN_INFIX(!=, Number, compared), KILN_INFIX(<, Number, compared), KILN_INFIX(>, Number, compared)},
      {KILN_INFIX(+, Number, ofBoth), KILN_INFIX(-, Number, ofBoth)},
      {KILN_INFIX(*, Number, ofBoth),
       {"//",
        {Type::Whole, Type::Whole},
        [](const Parts &p) { return ofWhole(p, [](const auto &a, const auto &b) { return a / b; }); }},
       KILN_INFIX(/, Number, ofNumbers),
       KILN_INFIX(%, Whole, ofWhole)}};
  return all;
}

const std::vector<Operation> &prefixOperations() {
  static const std::vector<Operation> all = {
      {"-", {Type::Number}, [](const Parts &p) { return ofEither(p, [](const auto &a) { return -a; }); }},
      {"!", {Type::Mask}, [](const Parts &p) {
         return node(Type::Mask,
                     [=]<typename A>(const Block<A> &at) -> typename A::Value { return !maskOf(p[0], at); });
       }}};
  return all;
}

const std::vector<Operation> &functionOperations() {
  static const std::vector<Operation> all = {
      KILN_FUNCTION(exp),
      KILN_FUNCTION(exp2),
      KILN_FUNCTION(log),
      KILN_FUNCTION(log2),
      KILN_FUNCTION(sqrt),
      KILN_FUNCTION(tanh),
      KILN_FUNCTION(floor),
      KILN_CHOICE(min),
      KILN_CHOICE(max),
      Operation{"pow",
                {Type::Number, Type::Number},
                [](const Parts &p) { return ofNumbers(p, [](const auto &a, const auto &b) { return pow(a, b); }); }},
      Operation{
          "abs", {Type::Number}, [](const Parts &p) { return ofEither(p, [](const auto &a) { return abs(a); }); }},
      Operation{"where", {Type::Mask, Type::Number, Type::Number}, [](const Parts &p) {
                  if (p[1]->type == Type::Whole && p[2]->type == Type::Whole)
                    return node(Type::Whole, [=]<typename A>(const Block<A> &at) -> typename A::Value {
                      return select(maskOf(p[0], at), wholeOf(p[1], at), wholeOf(p[2], at));
                    });
                  return node(Type::Number, [=]<typename A>(const Block<A> &at) -> typename A::Value {
                    return select(maskOf(p[0], at), numberOf(p[1], at), numberOf(p[2], at));
                  });
                }}};
  return all;
}
#undef KILN_INFIX
#undef KILN_FUNCTION
#undef KILN_CHOICE

namespace {

/// aux[number] at indices: as a whole number, or fp32.
template <Element T>
OnDevice::Value loaded(unsigned number, const std::vector<Tile<i32>> &at, const AttentionPairs &pairs) {
  const auto value = [&] {
    switch (at.size()) {
    case 1:
      return pairs.load<T>(number, at[0]);
    case 2:
      return pairs.load<T>(number, at[0], at[1]);
    case 3:
      return pairs.load<T>(number, at[0], at[1], at[2]);
    default:
      return pairs.load<T>(number, at[0], at[1], at[2], at[3]);
    }
  }();
  if constexpr (isFloat(elementOf<T>))
    return Dual<f32>(cast<f32>(value));
  else
    return cast<i32>(value);
}

/// What is read, as C++ has the types and as DType has.
template <Element... Ts> struct ElementsOf {
  static constexpr DType all[] = {elementOf<Ts>...};
  static OnDevice::Value load(const AuxElement &of, const std::vector<Tile<i32>> &at, const AttentionPairs &pairs) {
    std::optional<OnDevice::Value> out;
    (void)((elementOf<Ts> == of.type && (out = loaded<Ts>(of.number, at, pairs), true)) || ...);
    return *out;
  }
};
using Elements = ElementsOf<f32, f16, bf16, f64, i8, u8, i16, u16, i32, u32, i64>;

} // namespace

std::span<const DType> elementTypes() {
  return Elements::all;
}

OnDevice::Value OnDevice::element(const AuxElement &of, const std::vector<Whole> &indices, const Pairs &at) {
  return Elements::load(of, indices, at);
}

/// Outside of the tensor 0, as in kernels.
OnHost::Value OnHost::element(const AuxElement &of, const std::vector<Whole> &indices, const Pairs &at) {
  const AuxOnHost &tensor = at.aux[of.number];
  unsigned count = 1;
  for (const Whole &index : indices)
    count = std::max(count, index.size());
  const auto read = [&](unsigned lane) {
    std::uint64_t place = 0;
    for (std::size_t d = 0; d < indices.size(); ++d) {
      const std::int32_t index = indices[d].at(lane);
      if (index < 0 || static_cast<std::uint64_t>(index) >= tensor.shape[d])
        return 0.0;
      place = place * tensor.shape[d] + static_cast<std::uint64_t>(index);
    }
    return tensor.values[place];
  };
  if (isFloat(of.type)) {
    auto out = Number::several(count);
    for (unsigned i = 0; i < count; ++i)
      out[i] = host::number(read(i));
    return out;
  }
  auto out = Whole::several(count);
  for (unsigned i = 0; i < count; ++i)
    out[i] = static_cast<std::int32_t>(static_cast<std::int64_t>(read(i)));
  return out;
}

} // namespace kiln::kernels::function
