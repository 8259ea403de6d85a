//===- OracleGroup.cpp - Warp and block operations, atomics ----------------===//
#include "tests/parity/Matrix.h"
#include "tests/parity/Oracle.h"

#include <bit>

namespace kiln::parity {

namespace {

namespace sf = softfloat;
using U64 = std::uint64_t;

/// One group of `form.group` lanes.
struct Lanes {
  const Form &form;
  const Columns &in;
  std::size_t first;
  Columns &out;
  U64 a(unsigned lane) const { return in[0][first + lane]; }
  U64 b(unsigned lane) const { return in[1][first + lane]; }
  U64 c(unsigned lane) const { return in[2][first + lane]; }
  void set(unsigned output, unsigned lane, U64 value) { out[output][first + lane] = value; }
};

void shuffle(Lanes &x) {
  for (unsigned lane = 0; lane < 32; ++lane) {
    unsigned operand = unsigned(x.b(lane)) & 31, control = unsigned(x.c(lane));
    unsigned segment = control >> 8 & 31, clamp = control & 31;
    int low = int(lane & segment), limit = low | int(clamp & ~segment), source;
    bool valid;
    if (x.form.has("up")) {
      source = int(lane) - int(operand);
      valid = source >= limit;
    } else {
      source = x.form.has("down")   ? int(lane + operand)
               : x.form.has("bfly") ? int(lane ^ operand)
                                    : low | int(operand & ~segment);
      valid = source <= limit;
    }
    x.set(0, lane, x.a(valid ? unsigned(source) : lane));
    x.set(1, lane, valid);
  }
}

unsigned participants(const Lanes &x) {
  unsigned mask = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    mask |= unsigned(x.b(lane) != 0) << lane;
  return mask;
}

U64 reduce(const Lanes &x, unsigned mask) {
  bool started = false, isSigned = x.form.lastType().isSigned;
  U64 result = 0;
  for (unsigned lane = 0; lane < 32; ++lane) {
    if (!(mask >> lane & 1))
      continue;
    U64 v = x.a(lane);
    if (!started)
      result = v;
    else if (x.form.has("add"))
      result += v;
    else if (x.form.has("and"))
      result &= v;
    else if (x.form.has("or"))
      result |= v;
    else if (x.form.has("xor"))
      result ^= v;
    else {
      bool less = isSigned ? signExtend(v, 32) < signExtend(result, 32) : v < result;
      if (x.form.has("min") ? less : !less)
        result = v;
    }
    started = true;
  }
  return result & 0xffffffff;
}

bool warp(Lanes &x) {
  const std::string &op = x.form.opcode();
  if (op == "shfl") {
    shuffle(x);
    return true;
  }
  bool partial = x.form.name.ends_with("partial"), negated = x.form.name.ends_with("negated");
  unsigned mask = partial ? participants(x) : 0xffffffff, trueLanes = 0;
  for (unsigned lane = 0; lane < 32; ++lane)
    trueLanes |= unsigned((x.a(lane) != 0) != negated) << lane;
  trueLanes &= mask;
  bool allEqual = true;
  for (unsigned lane = 0; lane < 32; ++lane)
    allEqual &= x.a(lane) == x.a(0);
  for (unsigned lane = 0; lane < 32; ++lane) {
    U64 result = 0;
    if (!(mask >> lane & 1)) {
      x.set(0, lane, 0);
      if (x.form.outputs.size() > 1)
        x.set(1, lane, 0);
      continue;
    }
    if (op == "vote") {
      result = x.form.has("ballot") ? trueLanes
               : x.form.has("all")  ? trueLanes == mask
               : x.form.has("any")  ? trueLanes != 0
                                    : trueLanes == mask || trueLanes == 0;
    } else if (op == "match" && x.form.has("any")) {
      bool shifted = x.form.has("b64");
      auto value = [&](unsigned l) { return shifted ? x.a(l) << x.b(l) : x.a(l); };
      for (unsigned l = 0; l < 32; ++l)
        result |= U64((mask >> l & 1) && value(l) == value(lane)) << l;
    } else if (op == "match") {
      result = allEqual ? mask : 0;
      x.set(1, lane, allEqual);
    } else if (op == "redux") {
      result = reduce(x, mask);
    } else if (op == "elect") {
      unsigned leader = unsigned(std::countr_zero(mask));
      result = leader;
      x.set(1, lane, lane == leader);
    } else if (op == "activemask") {
      result = 0xffffffff;
    } else {
      return false;
    }
    x.set(0, lane, result);
  }
  return true;
}

bool block(Lanes &x) {
  bool negated = x.form.body.find('!') != std::string::npos;
  U64 count = 0;
  for (unsigned t = 0; t < x.form.group; ++t)
    count += (x.a(t) != 0) != negated;
  U64 result = x.form.has("popc") ? count : x.form.has("and") ? U64(count == x.form.group) : U64(count != 0);
  for (unsigned t = 0; t < x.form.group; ++t)
    x.set(0, t, result);
  return true;
}

/// The cell after one operation.
U64 update(const Form &form, U64 cell, U64 b, U64 c) {
  const TypeInfo &t = form.lastType();
  U64 mask = lowBits(t.bits);
  if (form.has("add") && t.format) {
    U64 result = 0;
    unsigned width = t.bits / t.elements;
    const sf::Format &f = *t.format;
    bool flushes = t.type == Type::F32 && form.has("global"); // f32 on global memory flushes, on shared it does not
    for (unsigned e = 0; e < t.elements; ++e) {
      U64 x = cell >> (e * width) & lowBits(width), y = b >> (e * width) & lowBits(width);
      if (flushes) {
        x = flush(f, x);
        y = flush(f, y);
      }
      U64 r = sf::pack(f, sf::add(sf::unpack(f, x), sf::unpack(f, y), sf::Rounding::NearestEven),
                       sf::Rounding::NearestEven);
      result |= (flushes ? flush(f, r) : r) << (e * width);
    }
    return result;
  }
  if (form.has("add"))
    return (cell + b) & mask;
  if (form.has("and"))
    return cell & b;
  if (form.has("or"))
    return cell | b;
  if (form.has("xor"))
    return cell ^ b;
  if (form.has("exch"))
    return b;
  if (form.has("cas"))
    return cell == b ? c : cell;
  if (form.has("inc"))
    return cell >= b ? 0 : cell + 1;
  if (form.has("dec"))
    return cell == 0 || cell > b ? b : cell - 1;
  bool less = t.isSigned ? signExtend(b, t.bits) < signExtend(cell, t.bits) : b < cell;
  return (form.has("min") ? less : !less) ? b : cell;
}

void atomics(Lanes x, unsigned threads) {
  for (unsigned t = 0; t < threads; t += x.form.sharing) {
    U64 cell = x.a(t), old = cell;
    for (unsigned k = 0; k < x.form.sharing; ++k)
      cell = update(x.form, cell, x.b(t + k), x.in.size() > 2 ? x.c(t + k) : 0);
    for (unsigned k = 0; k < x.form.sharing; ++k) {
      x.set(0, t + k, old);
      x.set(unsigned(x.form.outputs.size() - 1), t + k, cell);
    }
  }
}

} // namespace

bool groupOracle(const Form &form, const Columns &in, std::size_t first, Columns &out) {
  if (form.sharing) {
    atomics({form, in, first, out}, blockThreads);
    return true;
  }
  for (std::size_t at = first; at < first + blockThreads; at += form.group) {
    if (matrixOracle(form, in, at, out))
      continue;
    Lanes lanes{form, in, at, out};
    if (!(form.group == 32 ? warp(lanes) : block(lanes)))
      return false;
  }
  return true;
}

Columns expected(const Form &form, const Cases &cases) {
  std::size_t count = cases.count();
  Columns out(form.outputs.size(), std::vector<U64>(count, 0));
  if (form.approximate())
    return {};
  if (form.group > 1 || form.sharing) {
    for (std::size_t at = 0; at < count; at += blockThreads)
      if (!groupOracle(form, cases.inputs, at, out))
        return {};
    return out;
  }
  for (std::size_t i = 0; i < count; ++i) {
    U64 in[4] = {}, result[4] = {};
    for (std::size_t k = 0; k < cases.inputs.size(); ++k)
      in[k] = cases.inputs[k][i];
    if (!compareOracle(form, in, result) && !convertOracle(form, in, result) && !integerOracle(form, in, result) &&
        !floatOracle(form, in, result))
      return {};
    for (std::size_t k = 0; k < out.size(); ++k)
      out[k][i] = result[k];
  }
  return out;
}

} // namespace kiln::parity
