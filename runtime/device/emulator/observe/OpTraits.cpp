#include "runtime/device/emulator/observe/OpTraits.h"

#include "runtime/device/emulator/decode/Program.h"
#include "runtime/device/emulator/memory/MemoryFaults.h"
#include "support/Text.h"

#include <algorithm>
#include <charconv>
#include <unordered_map>

namespace kiln::emulator {

namespace {

using enum InstructionClass;
using Words = std::vector<std::string_view>;

/// Classes of first words whose modifiers do not matter.
const std::unordered_map<std::string_view, InstructionClass> &classes() {
  static const auto map = [] {
    std::unordered_map<std::string_view, InstructionClass> m;
    const std::pair<InstructionClass, std::string_view> lists[] = {
        {Integer, "addc subc madc mad24 mul24 sad dp2a dp4a bfe bfi bfind bmsk brev clz popc fns prmt lop3 shf shl shr "
                  "and or xor not cnot szext vabsdiff4 rem"},
        {Special, "rcp sqrt rsqrt ex2 lg2 sin cos tanh"},
        {Convert, "cvt"},
        {Compare, "setp set selp slct testp isspacep"},
        {Move, "mov cvta mapa getctarank alloca stacksave stackrestore"},
        {Control, "bra brx call ret exit trap brkpt nanosleep pmevent griddepcontrol setmaxnreg"},
        {Warp, "shfl vote match redux elect activemask"},
        {Load, "ld ldu"},
        {Store, "st"},
        {Atomic, "atom red"},
        {MatrixMove, "ldmatrix stmatrix movmatrix"},
        {Matrix, "mma"},
        {Async, "cp tensormap clusterlaunchcontrol"},
        {Mbarrier, "mbarrier"},
        {Barrier, "bar barrier"},
        {Fence, "fence membar"},
        {Other, "prefetch prefetchu applypriority discard createpolicy"},
    };
    for (const auto &[kind, words] : lists)
      for (std::string_view word : split(words, ' '))
        m.emplace(word, kind);
    return m;
  }();
  return map;
}

bool has(const Words &words, std::string_view word) {
  return std::find(words.begin() + 1, words.end(), word) != words.end();
}

/// The last modifier that is a type.
ptx::Type typeOf(const Words &words) {
  for (auto w = words.rbegin(); w + 1 != words.rend(); ++w)
    if (const ptx::Type t = ptx::typeFromName(*w); t != ptx::Type::None)
      return t;
  return ptx::Type::None;
}

bool isFloat(ptx::Type type) {
  const std::string_view name = type == ptx::Type::None ? std::string_view{} : ptx::typeName(type);
  return ptx::typeKind(type) == ptx::TypeKind::Float || name.starts_with("f") || name.starts_with("bf");
}

InstructionClass classOf(const Words &words) {
  const std::string_view first = words[0];
  if (const auto known = classes().find(first); known != classes().end()) {
    if (first == "bar" && has(words, "warp"))
      return Warp;
    if ((first == "st" || first == "red") && (has(words, "async") || has(words, "bulk")))
      return Async;
    if ((first == "ld" || first == "ldu") && (has(words, "param") || has(words, "param::entry") || has(words, "const")))
      return Constant;
    return known->second;
  }
  if (first == "wgmma")
    return has(words, "mma_async") ? Matrix : Async;
  if (first == "wmma")
    return has(words, "mma") ? Matrix : MatrixMove;
  static constexpr std::string_view arithmetic[] = {"add", "sub", "mul", "mad",      "fma", "abs",
                                                    "neg", "min", "max", "copysign", "div"};
  if (std::find(std::begin(arithmetic), std::end(arithmetic), first) == std::end(arithmetic))
    return Other;
  const bool floating = isFloat(typeOf(words));
  return first == "div" ? (floating ? Special : Integer) : floating ? Float : Integer;
}

/// 2 m n k of the shape among the words; 0 without one.
std::uint64_t flopsOf(const Words &words) {
  const auto shape = matrixShape(words);
  return shape ? std::uint64_t(2) * (*shape)[0] * (*shape)[1] * (*shape)[2] : 0;
}

} // namespace

std::optional<std::array<unsigned, 3>> matrixShape(std::span<const std::string_view> words) {
  for (std::string_view w : words) {
    std::array<unsigned, 3> extents{};
    const char *at = w.data(), *const end = w.data() + w.size();
    unsigned i = 0;
    for (; i < 3 && at != end && *at == "mnk"[i]; ++i) {
      const auto [next, problem] = std::from_chars(at + 1, end, extents[i]);
      if (problem != std::errc())
        break;
      at = next;
    }
    if (i == 3 && at == end)
      return extents;
  }
  return std::nullopt;
}

OpTraits traitsOf(std::string_view opcode) {
  const Words words = split(opcode, '.');
  OpTraits t;
  t.kind = classOf(words);
  switch (t.kind) {
  case Matrix:
    t.matrixFlops = flopsOf(words) / (words[0] == "wgmma" ? 4 : 1);
    if (has(words, "m8n8k4") && has(words, "f16")) // each quarter of the warp has a product of its own
      t.matrixFlops *= 4;
    break;
  case Barrier:
    t.arrives = !has(words, "wait");
    break;
  case Load:
  case Store:
  case Atomic:
    t.accesses = true;
    t.access = t.kind == Load ? AccessKind::Load : t.kind == Store ? AccessKind::Store : AccessKind::Atomic;
    t.bytes = static_cast<std::uint8_t>(ptx::typeBytes(typeOf(words)) * (has(words, "v2")   ? 2
                                                                         : has(words, "v4") ? 4
                                                                         : has(words, "v8") ? 8
                                                                                            : 1));
    break;
  case MatrixMove:
    if (words[0] != "ldmatrix" && words[0] != "stmatrix")
      break;
    t.accesses = true;
    t.access = words[0] == "ldmatrix" ? AccessKind::Load : AccessKind::Store;
    t.bytes = 16;
    // Every matrix of 8 rows, and a quarter of those of 16, takes 8 lanes.
    t.rowLanes = static_cast<std::uint8_t>((has(words, "x4")   ? 32
                                            : has(words, "x2") ? 16
                                                               : 8) *
                                           (has(words, "m16n16") ? 2 : 1));
    break;
  case Async: // cp.async of single elements; the others say themselves what they move
    t.accesses = words[0] == "cp" && (has(words, "ca") || has(words, "cg"));
    t.access = AccessKind::Copy;
    break;
  default:
    break;
  }
  return t;
}

std::vector<OpTraits> traitsOf(const Program &program) {
  std::vector<OpTraits> out;
  std::unordered_map<std::string_view, OpTraits> known;
  out.reserve(program.ops.size());
  for (std::size_t i = 0; i < program.ops.size(); ++i) {
    const Op &op = program.ops[i];
    const std::string_view opcode = program.lines[op.line].opcode;
    auto entry = known.find(opcode);
    if (entry == known.end())
      entry = known.emplace(opcode, traitsOf(opcode)).first;
    out.push_back(entry->second);
    if (i + 1 < program.ops.size() && program.ops[i + 1].line == op.line) {
      out.back() = {};
      out.back().isInstruction = false;
    } else if (out.back().access == AccessKind::Copy && out.back().accesses) {
      out.back().bytes = static_cast<std::uint8_t>((op.flags >> access::countShift & access::countMask) * 4);
    }
  }
  return out;
}

} // namespace kiln::emulator
