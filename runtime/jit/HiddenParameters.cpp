#include "runtime/jit/HiddenParameters.h"

#include "compiler/target/ArgumentExpression.h"

#include <nlohmann/json.hpp>

#include <algorithm>

namespace kiln {

namespace {

using json = nlohmann::ordered_json;

/// Bytes, good by every rule.
constexpr std::uint64_t anyStride = 32;

std::optional<std::int64_t> divided(std::int64_t a, std::int64_t b, bool up) {
  if (b <= 0)
    return std::nullopt;
  const std::int64_t quotient = a / b, rest = a % b;
  return quotient + (up ? rest > 0 : -(rest < 0));
}

bool integerOf(const json &object, const char *name, std::uint64_t most, std::uint64_t &out) {
  const auto m = object.find(name);
  if (m == object.end() || !m->is_number_unsigned() || m->get<std::uint64_t>() > most)
    return false;
  out = m->get<std::uint64_t>();
  return true;
}

std::string_view textOf(const json &object, const char *name) {
  const auto m = object.find(name);
  return m != object.end() && m->is_string() ? std::string_view(m->get_ref<const std::string &>()) : std::string_view();
}

/// `count` numbers that fit 32 bits.
bool numbersOf(const json &list, unsigned count, std::uint32_t *out) {
  if (!list.is_array() || list.size() != count)
    return false;
  for (unsigned i = 0; i < count; ++i) {
    if (!list[i].is_number_unsigned() || list[i].get<std::uint64_t>() > UINT32_MAX)
      return false;
    out[i] = list[i].get<std::uint32_t>();
  }
  return true;
}

Status unknown(const json &parameter) {
  return Status(StatusCode::Internal,
                "the compiled kernel has a parameter that this runtime does not know: " +
                    parameter.dump(-1, ' ', false, json::error_handler_t::replace),
                "use the libkiln-compiler of this version");
}

} // namespace

bool ArgumentExpression::parse(const json &j, const ArgumentLayout &layout, unsigned depth) {
  if (depth >= maxExpressionDepth)
    return false;
  if (j.is_number_integer()) {
    steps.push_back({Step::Constant, j.get<std::int64_t>()});
    return true;
  }
  if (j.is_object()) {
    std::uint64_t argument = 0;
    if (j.size() != 1 || !integerOf(j, "argument", UINT32_MAX, argument) || argument >= layout.count())
      return false;
    const ArgumentType type = layout.type(static_cast<unsigned>(argument)).type;
    if (type < ArgumentType::I8 || type > ArgumentType::I64)
      return false;
    steps.push_back({Step::Argument, static_cast<std::int64_t>(argument)});
    return true;
  }
  if (!j.is_array() || j.size() != 3 || !j[0].is_string())
    return false;
  const auto found =
      std::find(std::begin(expressionOperators), std::end(expressionOperators), j[0].get_ref<const std::string &>());
  if (found == std::end(expressionOperators) || !parse(j[1], layout, depth + 1) || !parse(j[2], layout, depth + 1))
    return false;
  steps.push_back({Step::Operator, found - std::begin(expressionOperators)});
  return true;
}

std::optional<std::int64_t> ArgumentExpression::value(const ArgumentLayout &layout, const std::byte *arguments) const {
  std::int64_t stack[maxExpressionDepth + 1];
  unsigned top = 0;
  for (const Step &s : steps) {
    if (s.kind != Step::Operator) {
      stack[top++] = s.kind == Step::Constant ? s.value : layout.integer(arguments, static_cast<unsigned>(s.value));
      continue;
    }
    const std::int64_t b = stack[--top], a = stack[--top];
    std::int64_t out = 0;
    bool good = true;
    switch (const auto what = static_cast<ExpressionOperator>(s.value); what) {
    case ExpressionOperator::Add:
      good = !__builtin_add_overflow(a, b, &out);
      break;
    case ExpressionOperator::Multiply:
      good = !__builtin_mul_overflow(a, b, &out);
      break;
    case ExpressionOperator::FloorDivide:
    case ExpressionOperator::CeilDivide:
    case ExpressionOperator::Modulo: {
      const std::optional<std::int64_t> quotient = divided(a, b, what == ExpressionOperator::CeilDivide);
      good = quotient.has_value();
      if (good)
        out = what == ExpressionOperator::Modulo ? a - *quotient * b : *quotient;
    }
    }
    if (!good)
      return std::nullopt;
    stack[top++] = out;
  }
  return stack[0];
}

std::string ArgumentExpression::text(const ArgumentLayout &layout) const {
  struct Part {
    std::string text;
    bool whole; ///< needs no brackets
  };
  std::vector<Part> stack;
  for (const Step &s : steps) {
    if (s.kind == Step::Constant)
      stack.push_back({std::to_string(s.value), true});
    else if (s.kind == Step::Argument)
      stack.push_back({"'" + layout.name(static_cast<unsigned>(s.value)) + "'", true});
    else {
      const auto bracketed = [](const Part &p) { return p.whole ? p.text : "(" + p.text + ")"; };
      const std::string right = bracketed(stack.back());
      stack.pop_back();
      stack.back() = {bracketed(stack.back()) + " " + std::string(expressionOperators[s.value]) + " " + right, false};
    }
  }
  return stack[0].text;
}

Status HiddenParameters::parseMap(const json &j, const ArgumentLayout &layout, Map &out) {
  if (!j.is_object() || textOf(j, "kind") != "tensor_map")
    return unknown(j);
  TensorMapRecipe &r = out.form;
  KILN_ASSIGN(r.type, parseTensorMapType(textOf(j, "element")));
  KILN_ASSIGN(r.swizzle, parseTensorMapSwizzle(textOf(j, "swizzle")));
  KILN_ASSIGN(r.interleave, parseTensorMapInterleave(textOf(j, "interleave")));
  KILN_ASSIGN(r.promotion, parseTensorMapPromotion(textOf(j, "promotion")));
  KILN_ASSIGN(r.fill, parseTensorMapFill(textOf(j, "fill")));
  std::uint64_t offset = 0, bytes = 0, address = 0;
  const auto extents = j.find("extents"), strides = j.find("strides"), box = j.find("box"),
             steps = j.find("element_strides");
  if (!integerOf(j, "offset", UINT32_MAX, offset) || !integerOf(j, "bytes", UINT32_MAX, bytes) ||
      !integerOf(j, "address", UINT32_MAX, address) || bytes != size || offset % TensorMap::alignment ||
      address >= layout.count() || layout.type(static_cast<unsigned>(address)).type != ArgumentType::Pointer ||
      extents == j.end() || !extents->is_array() || extents->empty() || extents->size() > TensorMapRecipe::maxRank ||
      strides == j.end() || !strides->is_array() || strides->size() + 1 != extents->size() || box == j.end())
    return unknown(j);
  out.offset = static_cast<std::uint32_t>(offset);
  out.address = static_cast<unsigned>(address);
  r.rank = static_cast<unsigned>(extents->size());
  if (!numbersOf(*box, r.rank, r.box.data()) ||
      (steps != j.end() && !numbersOf(*steps, r.rank, r.elementStrides.data())))
    return unknown(j);
  for (const auto &[from, to] : {std::pair(extents, &out.extents), std::pair(strides, &out.strides)})
    for (const json &e : *from)
      if (!to->emplace_back().parse(e, layout))
        return unknown(j);
  return checkTensorMapForm(r);
}

Result<std::shared_ptr<HiddenParameters>> HiddenParameters::parse(const json &list, const ArgumentLayout &layout) {
  auto out = std::make_shared<HiddenParameters>();
  if (!list.is_array())
    return unknown(list);
  std::uint64_t end = layout.bytes();
  for (const json &j : list) {
    auto map = std::make_unique<Map>();
    KILN_TRY(parseMap(j, layout, *map));
    if (map->offset < end)
      return unknown(j);
    end = std::uint64_t(map->offset) + size;
    if (end > LaunchArguments::maxBytes)
      return Status(StatusCode::CompileError,
                    "its parameters take " + std::to_string(end) + " bytes, " + std::to_string(layout.bytes()) +
                        " of them its arguments, the rest tensor maps; a launch passes at most " +
                        std::to_string(LaunchArguments::maxBytes),
                    "give it fewer arguments or fewer tensors");
    out->maps.push_back(std::move(map));
  }
  out->totalBytes = static_cast<std::uint32_t>(end);
  return out;
}

bool HiddenParameters::place(std::span<const ParameterInfo> parameters, const ArgumentLayout &layout) {
  if (parameters.size() != maps.size())
    return false;
  std::uint64_t end = layout.bytes();
  for (std::size_t i = 0; i < maps.size(); ++i) {
    const ParameterInfo &p = parameters[i];
    if (p.size != size || p.offset < end || p.offset > LaunchArguments::maxBytes - size)
      return false;
    maps[i]->offset = p.offset;
    end = p.offset + size;
  }
  totalBytes = static_cast<std::uint32_t>(end);
  return true;
}

std::string HiddenParameters::describe(const Map &map, const ArgumentLayout &layout, const std::byte *arguments) {
  std::string out = "the tensor map of argument " + std::to_string(map.address) + " '" + layout.name(map.address) + "'";
  const auto list = [&](const char *what, const std::vector<ArgumentExpression> &expressions, const char *unit) {
    std::string text;
    for (const ArgumentExpression &e : expressions) {
      const std::optional<std::int64_t> value = e.value(layout, arguments);
      const std::string number = value ? std::to_string(*value) : "no number";
      const std::string formula = e.text(layout);
      text += (text.empty() ? std::string(what) + " " : ", ") + formula + (formula == number ? "" : " = " + number);
    }
    return text.empty() ? text : text + unit;
  };
  const std::string strides = list("strides", map.strides, " bytes");
  return out + " (" + list("extents", map.extents, "") + (strides.empty() ? "" : "; " + strides) + ")";
}

bool HiddenParameters::evaluate(const Map &map, const ArgumentLayout &layout, const std::byte *arguments,
                                TensorMapRecipe &recipe, Status *why) {
  std::memcpy(&recipe.address, arguments + layout.offset(map.address), sizeof recipe.address);
  for (unsigned i = 0; i < recipe.rank; ++i) {
    const std::optional<std::int64_t> extent = map.extents[i].value(layout, arguments);
    if (!extent || *extent < 0 || *extent > map.mostExtent) [[unlikely]] {
      if (why)
        *why = Status::invalid("extents[" + std::to_string(i) + "] is " +
                                   (extent ? std::to_string(*extent) : "not a 64-bit number"),
                               "pass extents of at least 1");
      return false;
    }
    recipe.dims[i] = static_cast<std::uint64_t>(*extent);
  }
  for (unsigned i = 0; i + 1 < recipe.rank; ++i) {
    const std::optional<std::int64_t> stride = map.strides[i].value(layout, arguments);
    if (!stride || (*stride < 0 && recipe.dims[i + 1] != 1)) [[unlikely]] {
      if (why)
        *why = Status::invalid("strides[" + std::to_string(i) + "] is " +
                                   (stride ? std::to_string(*stride) + " bytes" : "not a 64-bit number"),
                               "pass strides of 0 to 2^40 - 16 bytes");
      return false;
    }
    // Where there is one of a dimension, nothing is that far away: callers pass any number there.
    recipe.strides[i] = recipe.dims[i + 1] == 1 ? anyStride : static_cast<std::uint64_t>(*stride);
  }
  return true;
}

HiddenParameters::Outcome HiddenParameters::write(Device &device, const ArgumentLayout &layout,
                                                  const std::byte *arguments, std::byte *parameters,
                                                  Status &failure) const {
  std::memcpy(parameters, arguments, layout.bytes());
  std::uint32_t end = layout.bytes();
  for (const std::unique_ptr<Map> &map : maps) {
    std::memset(parameters + end, 0, map->offset - end);
    end = map->offset + size;
    TensorMapRecipe recipe = map->form;
    if (!evaluate(*map, layout, arguments, recipe)) [[unlikely]]
      return Outcome::RuleBroken;
    const TensorMapCache::Key key = TensorMapCache::keyOf(recipe);
    if (map->known.find(key, parameters + map->offset)) [[likely]]
      continue;
    if (!describesTensor(recipe))
      return Outcome::RuleBroken;
    Result<TensorMap> made = device.encodeTensorMap(recipe);
    if (!made) {
      failure = made.takeStatus().withContext(describe(*map, layout, arguments));
      return Outcome::DeviceFailed;
    }
    map->known.insert(key, *made);
    std::memcpy(parameters + map->offset, made->bytes.data(), size);
  }
  return Outcome::Written;
}

bool HiddenParameters::fits(const ArgumentLayout &layout, const std::byte *arguments) const {
  return std::all_of(maps.begin(), maps.end(), [&](const std::unique_ptr<Map> &map) {
    TensorMapRecipe recipe = map->form;
    return evaluate(*map, layout, arguments, recipe) && describesTensor(recipe);
  });
}

Status HiddenParameters::brokenRule(const ArgumentLayout &layout, const std::byte *arguments) const {
  for (const std::unique_ptr<Map> &map : maps) {
    TensorMapRecipe recipe = map->form;
    Status why;
    if (evaluate(*map, layout, arguments, recipe, &why))
      why = checkTensorMap(recipe);
    if (!why.ok())
      return std::move(why).withContext(describe(*map, layout, arguments));
  }
  return {};
}

} // namespace kiln
