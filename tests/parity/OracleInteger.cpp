//===- OracleInteger.cpp - Integer arithmetic, logic, bit fields -----------===//
#include "tests/parity/Oracle.h"

#include <algorithm>
#include <bit>

namespace kiln::parity {

namespace {

using U64 = std::uint64_t;
using I128 = __int128;
using U128 = unsigned __int128;

/// The operands of a form as its last type reads them.
struct Integers {
  const TypeInfo &t;
  const U64 *in;
  I128 operator()(std::size_t i) const { return read(in[i], t.bits); }
  I128 read(U64 v, unsigned bits) const { return t.isSigned ? I128(signExtend(v, bits)) : I128(v & lowBits(bits)); }
  U64 wrap(I128 v) const { return U64(v) & lowBits(t.bits); }
  I128 low() const { return t.isSigned ? -(I128(1) << (t.bits - 1)) : 0; }
  I128 high() const { return t.isSigned ? (I128(1) << (t.bits - 1)) - 1 : (I128(1) << t.bits) - 1; }
  U64 saturate(I128 v) const { return wrap(std::clamp(v, low(), high())); }
};

/// Products of 64-bit unsigned operands need 128 unsigned bits, signed ones fit in I128.
U64 product(const Integers &x, bool high, unsigned shiftHigh) {
  if (x.t.bits == 64 && !x.t.isSigned) {
    U128 p = U128(x.in[0]) * x.in[1];
    return high ? U64(p >> 64) : U64(p);
  }
  I128 p = x(0) * x(1);
  return x.wrap(high ? p >> shiftHigh : p);
}

bool carryChains(const Form &form, const U64 *in, U64 *out) {
  const std::string &op = form.opcode();
  const TypeInfo &t = form.lastType();
  U64 mask = lowBits(t.bits);
  U128 base = U128(mask) + 1;
  auto add = [&](U64 a, U64 b, U64 carry, U64 &result) {
    U128 s = U128(a & mask) + (b & mask) + carry;
    result = U64(s) & mask;
    return U64(s >= base);
  };
  auto sub = [&](U64 a, U64 b, U64 borrow, U64 &result) {
    U128 s = U128(b & mask) + borrow;
    result = (a - b - borrow) & mask;
    return U64(s > (a & mask));
  };
  if (op == "add") {
    U64 c = add(in[0], in[1], 0, out[0]);
    add(in[2], in[3], c, out[1]);
  } else if (op == "sub") {
    U64 c = sub(in[0], in[1], 0, out[0]);
    sub(in[2], in[3], c, out[1]);
  } else if (op == "addc") {
    out[2] = add(in[2], in[3], add(in[0], in[1], 0, out[0]), out[1]);
  } else if (op == "subc") {
    out[2] = (0 - sub(in[2], in[3], sub(in[0], in[1], 0, out[0]), out[1])) & mask;
  } else if (op == "mad" || op == "madc") {
    U64 carry = op == "madc" ? add(in[3], in[3], 0, out[1]) : 0;
    Integers x{t, in};
    out[1] = add(product(x, form.has("hi"), t.bits), in[2], carry, out[0]);
  } else {
    return false;
  }
  return true;
}

U64 packedHalves(const Form &form, const U64 *in) {
  U64 result = 0;
  bool isSigned = form.lastType().isSigned;
  for (unsigned e = 0; e < 2; ++e) {
    std::int64_t a = std::int64_t(in[0] >> (16 * e) & 0xffff), b = std::int64_t(in[1] >> (16 * e) & 0xffff);
    if (isSigned) {
      a = signExtend(U64(a), 16);
      b = signExtend(U64(b), 16);
    }
    std::int64_t r = form.opcode() == "add" ? a + b : form.opcode() == "min" ? std::min(a, b) : std::max(a, b);
    if (form.has("relu"))
      r = std::max<std::int64_t>(r, 0);
    result |= (U64(r) & 0xffff) << (16 * e);
  }
  return result;
}

/// dp4a, dp2a and vabsdiff4: sums over bytes whose signedness comes with each operand's type.
U64 byteSums(const Form &form, const U64 *in) {
  const std::string &op = form.opcode();
  std::size_t types = op == "vabsdiff4" ? 2 : form.parts.size() - 2; // index of the first operand's type
  bool aSigned = findType(form.parts[types])->isSigned, bSigned = findType(form.parts[types + 1])->isSigned;
  auto piece = [](U64 v, unsigned index, unsigned bits, bool isSigned) {
    U64 raw = v >> (index * bits) & lowBits(bits);
    return isSigned ? signExtend(raw, bits) : std::int64_t(raw);
  };
  if (op == "vabsdiff4") {
    U64 result = form.has("add") ? in[2] : 0;
    for (unsigned i = 0; i < 4; ++i) {
      std::int64_t d = piece(in[0], i, 8, aSigned) - piece(in[1], i, 8, bSigned);
      d = d < 0 ? -d : d;
      result = form.has("add") ? result + U64(d) : result | U64(d) << (8 * i);
    }
    return result & 0xffffffff;
  }
  std::int64_t sum = std::int64_t(in[2]);
  for (unsigned i = 0; i < (op == "dp4a" ? 4u : 2u); ++i)
    sum += op == "dp4a" ? piece(in[0], i, 8, aSigned) * piece(in[1], i, 8, bSigned)
                        : piece(in[0], i, 16, aSigned) * piece(in[1], i + (form.has("hi") ? 2 : 0), 8, bSigned);
  return U64(sum) & 0xffffffff;
}

U64 permute(const Form &form, const U64 *in) {
  U64 bytes = in[1] << 32 | in[0], result = 0;
  unsigned n = in[2] & 3;
  for (unsigned i = 0; i < 4; ++i) {
    unsigned source;
    bool replicate = false;
    if (form.has("f4e"))
      source = n + i;
    else if (form.has("b4e"))
      source = (n + 8 - i) & 7;
    else if (form.has("rc8"))
      source = n;
    else if (form.has("ecl"))
      source = std::max(i, n);
    else if (form.has("ecr"))
      source = std::min(i, n);
    else if (form.has("rc16"))
      source = (n & 1) * 2 + (i & 1);
    else {
      source = unsigned(in[2] >> (4 * i)) & 7;
      replicate = in[2] >> (4 * i) & 8;
    }
    U64 byte = bytes >> (8 * source) & 255;
    if (replicate)
      byte = byte & 128 ? 255 : 0;
    result |= byte << (8 * i);
  }
  return result;
}

U64 findNthSet(U64 mask, unsigned base, std::int64_t offset) {
  if (offset == 0)
    return mask >> base & 1 ? base : 0xffffffff;
  std::int64_t step = offset > 0 ? 1 : -1, left = offset > 0 ? offset : -offset;
  for (std::int64_t at = base; at >= 0 && at < 32; at += step)
    if ((mask >> at & 1) && --left == 0)
      return U64(at);
  return 0xffffffff;
}

bool bitFields(const Form &form, const U64 *in, U64 *out) {
  const std::string &op = form.opcode();
  const TypeInfo &t = form.lastType();
  unsigned bits = t.bits;
  U64 mask = lowBits(bits);
  if (op == "bfe") {
    U64 used = bits == 32 ? 255 : 0xffffffff; // 64-bit values: the hardware reads the whole number
    U64 pos = in[1] & used, len = in[2] & used;
    bool sign = t.isSigned && len != 0 && (in[0] >> std::min<U64>(pos + len - 1, bits - 1) & 1);
    U64 r = 0;
    for (unsigned k = 0; k < bits; ++k) {
      bool inside = k < len && pos + k < bits;
      r |= U64(inside ? in[0] >> (pos + k) & 1 : sign) << k;
    }
    out[0] = r;
  } else if (op == "bfi") {
    U64 used = bits == 32 ? 255 : 0xffffffff;
    U64 pos = in[2] & used, len = in[3] & used;
    U64 r = in[1];
    for (U64 k = 0; k < len && pos + k < bits; ++k)
      r = (r & ~(U64(1) << (pos + k))) | (in[0] >> k & 1) << (pos + k);
    out[0] = r;
  } else if (op == "bmsk") {
    U64 pos = in[0], len = in[1];
    if (form.has("wrap")) {
      pos &= 31;
      len &= 31;
    }
    U64 r = 0;
    for (U64 k = pos; k < 32 && k - pos < len; ++k)
      r |= U64(1) << k;
    out[0] = r;
  } else if (op == "szext") {
    U64 n = form.has("wrap") ? in[1] & 31 : in[1];
    if (n >= 32)
      out[0] = in[0];
    else
      out[0] = n == 0 ? 0
                      : (t.isSigned ? U64(signExtend(in[0], unsigned(n))) : in[0]) &
                            (t.isSigned ? mask : lowBits(unsigned(n)));
  } else if (op == "bfind") {
    U64 v = in[0];
    if (t.isSigned && (v >> (bits - 1) & 1))
      v = ~v & mask;
    out[0] = v == 0 ? 0xffffffff : U64(63 - std::countl_zero(v));
    if (v && form.has("shiftamt"))
      out[0] = bits - 1 - out[0];
  } else if (op == "popc") {
    out[0] = U64(std::popcount(in[0]));
  } else if (op == "clz") {
    out[0] = U64(std::countl_zero(in[0])) - (64 - bits);
  } else if (op == "brev") {
    U64 r = 0;
    for (unsigned k = 0; k < bits; ++k)
      r |= (in[0] >> k & 1) << (bits - 1 - k);
    out[0] = r;
  } else if (op == "fns") {
    out[0] = findNthSet(in[0], unsigned(in[1]), signExtend(in[2], 32));
  } else if (op == "prmt") {
    out[0] = permute(form, in);
  } else {
    return false;
  }
  return true;
}

bool logic(const Form &form, const U64 *in, U64 *out) {
  const std::string &op = form.opcode();
  const TypeInfo &t = form.lastType();
  U64 mask = t.type == Type::Pred ? 1 : lowBits(t.bits);
  if (op == "and")
    out[0] = in[0] & in[1];
  else if (op == "or")
    out[0] = in[0] | in[1];
  else if (op == "xor")
    out[0] = in[0] ^ in[1];
  else if (op == "not")
    out[0] = ~in[0] & mask;
  else if (op == "cnot")
    out[0] = in[0] == 0;
  else if (op == "shl")
    out[0] = in[1] >= t.bits ? 0 : in[0] << in[1] & mask;
  else if (op == "shr") {
    U64 n = std::min<U64>(in[1], t.bits);
    I128 v = t.isSigned ? I128(signExtend(in[0], t.bits)) : I128(in[0]);
    out[0] = U64(v >> n) & mask;
  } else if (op == "shf") {
    U64 n = form.has("wrap") ? in[2] & 31 : std::min<U64>(in[2], 32);
    U64 pair = in[1] << 32 | in[0];
    out[0] = form.has("l") ? (pair << n) >> 32 : (pair >> n) & mask;
  } else if (op == "lop3") {
    std::string_view variant = std::string_view(form.name).substr(form.spelling.size() + 1);
    bool combined = form.has("and") || form.has("or");
    unsigned table = unsigned(std::stoul(std::string(variant), nullptr, 0));
    for (unsigned k = 0; k < (combined ? 1u : 4u); ++k) {
      unsigned lut = table + 64 * k;
      U64 r = 0;
      for (unsigned b = 0; b < 32; ++b) {
        unsigned index = unsigned((in[0] >> b & 1) << 2 | (in[1] >> b & 1) << 1 | (in[2] >> b & 1));
        r |= U64(lut >> index & 1) << b;
      }
      out[k] = r;
    }
    if (combined)
      out[1] = form.has("and") ? out[0] != 0 && in[3] : out[0] != 0 || in[3];
  } else if (op == "selp") {
    out[0] = in[2] ? in[0] : in[1];
  } else if (op == "slct") {
    if (t.format) {
      U64 c = form.has("ftz") ? flush(*t.format, in[2]) : in[2];
      bool notNegative = !(c & t.format->signBit()) || c == t.format->signBit();
      out[0] = notNegative && !softfloat::isNan(*t.format, c) ? in[0] : in[1];
    } else {
      out[0] = signExtend(in[2], 32) >= 0 ? in[0] : in[1];
    }
  } else if (op == "mov") {
    unsigned outBits = info(form.outputs[0]).bits, inBits = info(form.inputs[0]).bits;
    if (form.outputs.size() == 1)
      out[0] = in[0] | in[1] << inBits;
    else
      for (std::size_t k = 0; k < form.outputs.size(); ++k)
        out[k] = in[0] >> (outBits * k) & lowBits(outBits);
  } else {
    return false;
  }
  return true;
}

bool arithmetic(const Form &form, const U64 *in, U64 *out) {
  const std::string &op = form.opcode();
  const TypeInfo &t = form.lastType();
  Integers x{t, in};
  bool sat = form.has("sat"), hi = form.has("hi");
  if (op == "add" || op == "sub") {
    I128 r = op == "add" ? x(0) + x(1) : x(0) - x(1);
    out[0] = sat ? x.saturate(r) : x.wrap(r);
  } else if (op == "mul" && form.has("wide")) {
    out[0] = U64(x(0) * x(1)) & lowBits(2 * t.bits);
  } else if (op == "mul") {
    out[0] = product(x, hi, t.bits);
  } else if (op == "mad" && form.has("wide")) {
    out[0] = (U64(x(0) * x(1)) + in[2]) & lowBits(2 * t.bits);
  } else if (op == "mad") {
    out[0] = sat ? x.saturate((x(0) * x(1) >> 32) + x(2)) : x.wrap(I128(product(x, hi, t.bits)) + I128(in[2]));
  } else if (op == "mul24" || op == "mad24") {
    I128 p = x.read(in[0], 24) * x.read(in[1], 24);
    if (hi)
      p >>= 16;
    // The product's word is what is added to: bits 47:16, or the low 32.
    I128 word = x.read(U64(p), 32);
    if (op == "mul24")
      out[0] = x.wrap(word);
    else
      out[0] = sat ? x.saturate(word + x(2)) : x.wrap(word + x(2));
  } else if (op == "div" || op == "rem") {
    if (x(1) == 0)
      out[0] = lowBits(t.bits);
    else
      out[0] = x.wrap(op == "div" ? x(0) / x(1) : x(0) % x(1));
  } else if (op == "min" || op == "max") {
    I128 r = op == "min" ? std::min(x(0), x(1)) : std::max(x(0), x(1));
    out[0] = x.wrap(form.has("relu") ? std::max<I128>(r, 0) : r);
  } else if (op == "abs") {
    out[0] = x.wrap(x(0) < 0 ? -x(0) : x(0));
  } else if (op == "neg") {
    out[0] = x.wrap(-x(0));
  } else if (op == "sad") {
    I128 d = x(0) - x(1);
    out[0] = x.wrap((d < 0 ? -d : d) + x(2));
  } else {
    return false;
  }
  return true;
}

} // namespace

std::int64_t signExtend(U64 value, unsigned bits) {
  return std::int64_t(value << (64 - bits)) >> (64 - bits);
}

U64 lowBits(unsigned bits) {
  return bits >= 64 ? ~U64(0) : (U64(1) << bits) - 1;
}

bool integerOracle(const Form &form, const U64 *in, U64 *out) {
  if (logic(form, in, out) || bitFields(form, in, out))
    return true;
  if (form.lastType().format)
    return false;
  const std::string &op = form.opcode();
  if (form.has("cc"))
    return carryChains(form, in, out);
  if (op == "dp4a" || op == "dp2a" || op == "vabsdiff4") {
    out[0] = byteSums(form, in);
    return true;
  }
  if (form.lastType().elements == 2) {
    out[0] = packedHalves(form, in);
    return true;
  }
  return arithmetic(form, in, out);
}

} // namespace kiln::parity
