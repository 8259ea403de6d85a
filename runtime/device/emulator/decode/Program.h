//===- Program.h - A kernel, decoded --------------------------------------===//
//
// What the decoder makes of one entry and the functions that it reaches, for one target and CPU level.  Immutable after
// decoding, shared by all workers.  Text is viewed in the ptx::Module, which must outlive the Program.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_RUNTIME_DEVICE_EMULATOR_DECODE_PROGRAM_H
#define KILN_RUNTIME_DEVICE_EMULATOR_DECODE_PROGRAM_H

#include "kiln/Device.h"
#include "runtime/device/emulator/decode/InstructionTable.h"
#include "runtime/device/emulator/decode/Op.h"
#include "runtime/ptx/Ast.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace kiln::emulator {

/// Windows of the generic address space: bits 40 and up of an address.  Everything else is global memory.
constexpr unsigned windowShift = 40;
enum Window : std::uint64_t { SharedWindow = 1, LocalWindow = 2, ParamWindow = 3, CodeWindow = 4 };
constexpr std::uint64_t windowBase(Window w) {
  return std::uint64_t(w) << windowShift;
}
constexpr std::uint64_t windowOffsetMask = (std::uint64_t(1) << windowShift) - 1;
/// Shared memory of one block in the shared window; bits 24 and up of an offset are the rank in the cluster.
constexpr std::uint64_t sharedRankBytes = std::uint64_t(1) << 24;
constexpr unsigned maxCallDepth = 512;

/// Op::flags of calls (aux is a CallSite) and of branches.
constexpr std::uint16_t callFlag = 0x8000, backwardFlag = 0x4000;

/// Where an op came from.
struct SourceLine {
  std::uint32_t ptxLine = 0;
  std::uint32_t file = 0, line = 0; ///< of .loc; 0: none
  std::string_view opcode;
};

/// Special registers that are constants of a warp; the others are read by ops.
enum class Special : std::uint8_t {
  TidX,
  TidY,
  TidZ,
  NtidX,
  NtidY,
  NtidZ,
  CtaidX,
  CtaidY,
  CtaidZ,
  NctaidX,
  NctaidY,
  NctaidZ,
  LaneId,
  WarpId,
  NwarpId,
  SmId,
  NsmId,
  GridId,
  LanemaskEq,
  LanemaskLe,
  LanemaskLt,
  LanemaskGe,
  LanemaskGt,
  DynamicSmemSize,
  TotalSmemSize,
  AggrSmemSize,
  ReservedSmemBegin,
  ReservedSmemEnd,
  ReservedSmemCap,
  ReservedSmemOffset,
  ClusterIdX,
  ClusterIdY,
  ClusterIdZ,
  NclusterIdX,
  NclusterIdY,
  NclusterIdZ,
  ClusterCtaidX,
  ClusterCtaidY,
  ClusterCtaidZ,
  ClusterNctaidX,
  ClusterNctaidY,
  ClusterNctaidZ,
  ClusterCtarank,
  ClusterNctarank,
  IsExplicitCluster,
  CurrentGraphExec,
  GridWorkspaceHigh,
  GridWorkspaceLow,
  Zero,
};

struct SpecialSlot {
  Slot slot = noSlot;
  Special special = Special::Zero;
  bool wide = false; ///< a 64-bit slot
};

struct ConstantSlot {
  Slot slot = noSlot;
  unsigned bytes = 4; ///< 4, 8 or 16
  std::uint64_t low = 0, high = 0;
  bool isShared = false; ///< an address of shared memory: of the block that runs
};

/// A value passed by a call: bytes of a local frame, or a register.
struct CallValue {
  bool isRegister = false;
  std::uint32_t where = 0; ///< offset in the frame, or slot
  std::uint32_t bytes = 0;
};

enum class Builtin : std::uint8_t { None, Vprintf, AssertFail, Malloc, Free };

struct CallSite {
  static constexpr std::uint32_t indirect = ~0u;
  std::uint32_t function = indirect; ///< index into Program::functions
  Builtin builtin = Builtin::None;
  std::vector<CallValue> arguments, returns; ///< the caller's side
};

struct FunctionInfo {
  std::string_view name;
  std::uint32_t index = 0;      ///< in ptx::Module::functions: the code address is CodeWindow + 16 * (index + 1)
  std::uint32_t entry = 0;      ///< first op
  std::uint32_t end = 0;        ///< past the last op
  std::uint32_t frameBytes = 0; ///< local frame with the parameters; multiple of 16
  std::vector<CallValue> parameters, returns;       ///< the callee's side
  std::vector<std::pair<Slot, unsigned>> registers; ///< its own slots and their bytes a lane (4, 8, 16)
  bool recursive = false;                           ///< may be active twice: its registers are saved by a call
};

enum class FlowKind : std::uint8_t { Next, Branch, IndexedBranch, Exit };

/// How control leaves an op; looked at only when a finding is made.
struct ProgramEdge {
  FlowKind kind = FlowKind::Next;
  bool guarded = false;
  bool visible = false;      ///< other lanes or the host may notice that the op ran (stores, barriers, calls)
  std::uint32_t targets = 0; ///< IndexedBranch: entries in the pool at Op::aux
};

/// A name with an address, for messages.
struct NamedRange {
  std::string_view name;
  std::uint64_t begin = 0, end = 0;
};

struct WgmmaProgram; // Wgmma.h

struct Program {
  const ptx::Module *module = nullptr;
  const InstructionTable *table = nullptr;
  KernelInfo info;
  std::vector<Op> ops;
  /// The scheduling order of each op: loops before what follows them.  Splits with smaller numbers run first.
  std::vector<std::uint32_t> order;
  std::vector<ProgramEdge> edges; ///< one an op
  /// By op: other threads may notice when it runs, or it notices when they do (memory, barriers, votes, atomics).
  std::vector<char> observable;
  std::vector<SourceLine> lines;
  std::vector<std::uint32_t> pool;
  std::vector<ConstantSlot> constants;
  std::vector<SpecialSlot> specials;
  std::vector<Slot> poisoned;          ///< 128-byte pieces that may be read before they are written
  std::vector<FunctionInfo> functions; ///< [0] is the entry
  std::vector<CallSite> calls;
  std::vector<NamedRange> sharedNames; ///< offsets in the block's shared memory
  std::uint32_t registerBytes = firstFreeSlot;
  std::uint32_t numCaches = 0;
  std::uint32_t sharedBegin = 0; ///< first offset that the kernel may use (the system's part lies below)
  std::uint32_t sharedStatic = 0;
  std::uint64_t localBytes = 0; ///< a lane; frames, and room for alloca and recursion where the kernel has them
  bool inOrder = false;         ///< results depend on the order of blocks: one worker runs them
  bool seesOthers = false;      ///< of these, what a block does may depend on what others did: none may be left out
  bool usesCluster = false;
  bool usesAsync = false;        ///< has asynchronous instructions or mbarriers
  bool usesAsyncProxy = false;   ///< of them, some that access memory through the async proxy
  bool usesRegisterPool = false; ///< has setmaxnreg
  std::uint32_t maxRegisters = 0, blocksPerMultiprocessor = 1; ///< .maxnreg, 0 if absent; .minnctapersm
  std::shared_ptr<WgmmaProgram> wgmma;                         ///< null: has no wgmma
  Dim3 requiredCluster{0, 0, 0};
  std::uint32_t maxClusterBlocks = 0; ///< .maxclusterrank, 0 if absent
  bool needsCluster = false;          ///< .explicitcluster: the launch must say what a cluster is
  bool blocksAreClusters = false;     ///< the grid is given in clusters

  /// "file:line" of an op, empty without .loc.
  std::string location(const Op &op) const;
  /// "file:line (ptx line n)" or "ptx line n": a program point inside a message.
  std::string point(std::uint32_t pc) const;
};

} // namespace kiln::emulator

#endif // KILN_RUNTIME_DEVICE_EMULATOR_DECODE_PROGRAM_H
