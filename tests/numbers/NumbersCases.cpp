#include "tests/numbers/NumbersCases.h"

#include "tests/numbers/FloatValues.h"

#include <algorithm>
#include <cmath>

namespace kiln::test {

unsigned DType::bits() const {
  if (name == "f8E4M3FN" || name == "f8E5M2")
    return 8;
  return static_cast<unsigned>(std::stoi(name.substr(name.find_first_of("0123456789"))));
}

unsigned DType::bytes() const {
  unsigned bytes = 1;
  while (bytes * 8 < bits())
    bytes *= 2;
  return bytes;
}

std::vector<NumbersCase> allNumbersCases() {
  std::vector<NumbersCase> cases;
  addFloatCases(cases);
  addConversionCases(cases);
  addIntegerCases(cases);
  return cases;
}

namespace {

std::vector<Bits> edgesOf(const DType &type) {
  const Bits mask = type.bits() == 64 ? ~Bits(0) : (Bits(1) << type.bits()) - 1;
  std::vector<Bits> edges;
  if (!type.isFloat()) {
    for (const std::int64_t v :
         {0, 1, 2, 3, 5, 7, 8, 9, 15, 16, 17, 23, 24, 31, 32, 33, 63, 64, 65, 100, 127, 128, 255, 256, 1000})
      for (const Bits b : {Bits(v), Bits(-v)})
        edges.push_back(b & mask);
    const Bits smallest = Bits(1) << (type.bits() - 1);
    for (const Bits b : {smallest, smallest + 1, smallest - 1, smallest + 2, mask, mask - 1})
      edges.push_back(b & mask);
    std::sort(edges.begin(), edges.end());
    edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
    return edges;
  }
  const softfloat::Format &format = formatOf(type);
  const Bits one = Bits(format.bias()) << (format.precision - 1);
  for (const Bits b :
       {Bits(0), Bits(1), Bits(2), format.fractionMask(), format.fractionMask() + 1, format.infinity() - 1,
        format.infinity(), format.infinity() + 1, format.canonicalNan, one - 1, one, one + 1})
    for (const Bits sign : {Bits(0), format.signBit()})
      edges.push_back((b | sign) & mask);
  for (const double v : {0.5,
                         1.5,
                         2.0,
                         2.5,
                         3.0,
                         4.0,
                         7.0,
                         10.0,
                         0.1,
                         1.0 / 3,
                         2.0 / 3,
                         3.14159265358979,
                         1.5707963267949,
                         0.7853981633974,
                         0.35,
                         0.41,
                         0.55,
                         0.92,
                         3.92,
                         9.01,
                         17.3,
                         88.7,
                         89.0,
                         104.0,
                         127.0,
                         128.0,
                         150.0,
                         400.0,
                         448.0,
                         709.8,
                         1024.0,
                         32767.5,
                         57344.0,
                         65520.0,
                         71475.0,
                         71477.0,
                         1e6,
                         8388607.5,
                         16777216.0,
                         16777217.0,
                         2147483647.0,
                         2147483648.0,
                         4294967295.0,
                         4294967296.0,
                         9.2e18,
                         1.85e19,
                         1e22,
                         1e30})
    for (const double s : {v, -v})
      edges.push_back(nearestBits(type, s));
  std::sort(edges.begin(), edges.end());
  edges.erase(std::unique(edges.begin(), edges.end()), edges.end());
  return edges;
}

} // namespace

std::vector<std::vector<Bits>> operandsOf(const NumbersCase &c, std::size_t count, unsigned thin) {
  std::mt19937_64 random(20261);
  std::vector<std::vector<Bits>> lists(c.inputs.size());
  if (c.inputs.size() == 1 && c.inputs[0].bits() <= 16) {
    for (Bits b = 0; b < Bits(1) << c.inputs[0].bits(); b += thin)
      lists[0].push_back(b);
    return lists;
  }
  // Edges with edges; of three operands a sample.
  std::vector<std::vector<Bits>> edges;
  std::size_t combinations = 1;
  for (const DType &type : c.inputs) {
    edges.push_back(edgesOf(type));
    combinations *= edges.back().size();
  }
  const std::size_t taken = std::min<std::size_t>(combinations, 60000 / thin);
  for (std::size_t i = 0; i < taken; ++i) {
    std::size_t rest = taken == combinations ? i : random() % combinations;
    for (std::size_t k = 0; k < lists.size(); ++k) {
      lists[k].push_back(edges[k][rest % edges[k].size()]);
      rest /= edges[k].size();
    }
  }
  // Two thirds over all bit patterns, the first operand at an even stride; a third of usual size.
  for (std::size_t i = 0; i < count; ++i) {
    const bool usual = i % 3 == 2;
    for (std::size_t k = 0; k < lists.size(); ++k) {
      const DType &type = c.inputs[k];
      const unsigned bits = type.bits();
      Bits b = random();
      if (usual && type.isFloat()) {
        const int shift = static_cast<int>(random() % 12) - 6;
        b = nearestBits(type, std::ldexp(static_cast<double>(b >> 11) * 0x1p-52 - 1.0, shift));
      } else if (usual) {
        b = (b >> (random() % 64)) * ((random() & 1) ? Bits(1) : ~Bits(0));
      } else if (k == 0) {
        const Bits stride = (~Bits(0) / count) | 1;
        b = (i * stride + random() % stride) >> (64 - bits);
      }
      lists[k].push_back(bits == 64 ? b : b & ((Bits(1) << bits) - 1));
    }
  }
  return lists;
}

namespace {

std::string storageOf(const DType &type) {
  if (type.isFloat() && type.bits() > 8)
    return type.name;
  return "i" + std::to_string(type.bytes() * 8);
}

std::string kernelText(const NumbersCase &c) {
  static const char *const names[] = {"%a", "%b", "%c"};
  std::string text = "  llvm.func @" + c.name + "(";
  for (std::size_t k = 0; k < c.inputs.size(); ++k)
    text += "%p" + std::to_string(k) + ": !llvm.ptr<1>, ";
  text += "%out: !llvm.ptr<1>, %n: i32) attributes {nvvm.kernel} {\n"
          "    %tid = nvvm.read.ptx.sreg.tid.x : i32\n"
          "    %block = nvvm.read.ptx.sreg.ctaid.x : i32\n"
          "    %size = nvvm.read.ptx.sreg.ntid.x : i32\n"
          "    %first = llvm.mul %block, %size : i32\n"
          "    %i = llvm.add %first, %tid : i32\n"
          "    %inside = llvm.icmp \"ult\" %i, %n : i32\n"
          "    llvm.cond_br %inside, ^work, ^end\n"
          "  ^work:\n"
          "    %index = llvm.zext %i : i32 to i64\n";
  for (std::size_t k = 0; k < c.inputs.size(); ++k) {
    const DType &type = c.inputs[k];
    const std::string storage = storageOf(type), number = std::to_string(k);
    const bool same = storage == type.name;
    text += "    %q" + number + " = llvm.getelementptr %p" + number +
            "[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, " + storage + "\n    " +
            (same ? names[k] : "%s" + number) + " = llvm.load %q" + number + " : !llvm.ptr<1> -> " + storage + "\n";
    if (!same)
      text += std::string("    ") + names[k] + (type.isFloat() ? " = arith.bitcast %s" : " = arith.trunci %s") +
              number + " : " + storage + " to " + type.name + "\n";
  }
  text += "    " + c.body + "\n";
  const std::string storage = storageOf(c.output);
  const bool same = storage == c.output.name;
  if (!same)
    text += std::string("    %stored = ") + (c.output.isFloat() ? "arith.bitcast" : "arith.extui") +
            " %r : " + c.output.name + " to " + storage + "\n";
  text += "    %address = llvm.getelementptr %out[%index] : (!llvm.ptr<1>, i64) -> !llvm.ptr<1>, " + storage +
          "\n    llvm.store " + (same ? "%r" : "%stored") + ", %address : " + storage +
          ", !llvm.ptr<1>\n    llvm.br ^end\n  ^end:\n    llvm.return\n  }\n";
  return text;
}

} // namespace

std::string moduleText(std::span<const NumbersCase *const> cases, std::string_view target) {
  std::string text = "module attributes {tile_gpu.target = \"" + std::string(target) + "\"} {\n";
  for (const NumbersCase *c : cases)
    text += kernelText(*c);
  return text + "}\n";
}

} // namespace kiln::test
