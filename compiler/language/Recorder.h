//===- Recorder.h - What the typed front end calls ---------------------------===//
//
// The untyped side of the front end: handles of recorded values, operands, and one function for each family of
// operations.  The typed headers (Value.h, Math.h, ..) are thin layers over this one; kernels do not call it.
//
// Invariants.  One recording at a time on a thread (`kernel(..)`, Kernel.h).  Every function is harmless without a
// recording, and after its first error: nothing more is recorded and the handles it gives name nothing.  An operand is
// checked at each use: it belongs to this recording, its region is open, it has the element type its C++ type says.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_RECORDER_H
#define KILN_LANGUAGE_RECORDER_H

#include "Operations.h"
#include "Types.h"

#include <cstdint>
#include <optional>
#include <source_location>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::language {

using Location = std::source_location;

/// The grid's dimensions.
enum class Axis : std::uint8_t { X, Y, Z };

/// How long the caches should keep what is accessed: used once; L2 only; every access goes to memory.
enum class Cache : std::uint8_t { Default, Streaming, Global, Volatile };

/// Order of an atomic operation among other memory operations, and who sees it.
enum class Order : std::uint8_t { Relaxed, Acquire, Release, AcqRel };
enum class Scope : std::uint8_t { Cta, Gpu, Sys };

/// Two grades of division, roots and transcendental functions: within CUDA's documented bounds, or the hardware's
/// approximation (recorded as fastmath<afn>; docs/numbers.md).  OfScope: that of the loop or withGrade (Math.h) around,
/// else KernelOptions::grade.
enum class Grade : std::uint8_t { OfScope, Precise, Approximate };
inline constexpr Grade precise = Grade::Precise, approx = Grade::Approximate;

/// A dimension of a tile, as an argument: `sum(x, along(1))`.
struct Along {
  int dim;
};
constexpr Along along(int dim) {
  return {dim};
}

/// Who holds which elements of a tile (Layout.h).
struct BlockedLayout {
  Shape sizePerThread, threadsPerWarp, warpsPerCTA;
  std::vector<int> order = {}; ///< of dimensions, the one first in which neighbours lie; empty: the last one first
};

namespace detail {

/// Names a value of one recording.  A default one names nothing.
struct Handle {
  std::uint64_t recording = 0;
  std::uint32_t index = 0;
};

/// A C++ number that takes the element type of what it meets.
struct Constant {
  enum class Kind : std::uint8_t { Bool, Signed, Unsigned, Float };
  Kind kind = Kind::Signed;
  union {
    std::int64_t i = 0;
    std::uint64_t u;
    double f;
  };

  Constant() = default;
  template <typename C>
    requires std::is_arithmetic_v<C>
  constexpr Constant(C c) {
    if constexpr (std::same_as<C, bool>)
      kind = Kind::Bool, u = c;
    else if constexpr (std::floating_point<C>)
      kind = Kind::Float, f = static_cast<double>(c);
    else if constexpr (std::is_signed_v<C>)
      kind = Kind::Signed, i = c;
    else
      kind = Kind::Unsigned, u = c;
  }
};

/// A value or a constant, its element type as C++ knows it, and where it was written.
struct Operand {
  Handle handle;
  Constant constant;
  DType element = DType::I32;
  enum class Kind : std::uint8_t { Absent, Value, Pointer, Pipeline, Constant } kind = Kind::Absent;
  Location location;

  static Operand of(Handle h, DType e, Location loc = {}) { return {h, {}, e, Kind::Value, loc}; }
  static Operand pointer(Handle h, DType e, Location loc = {}) { return {h, {}, e, Kind::Pointer, loc}; }
  static Operand pipeline(Handle h, Location loc = {}) { return {h, {}, DType::I32, Kind::Pipeline, loc}; }
  static Operand number(Constant c, DType e, Location loc = {}) { return {{}, c, e, Kind::Constant, loc}; }
  bool present() const { return kind != Kind::Absent; }
};

/// The arithmetic that one C++ operator or function stands for; the element type decides on the operation.
enum class Arith : std::uint8_t { Add, Sub, Mul, Div, Rem, And, Or, Xor, Shl, Shr, Max, Min, Maximum, Minimum };
enum class Compare : std::uint8_t { Eq, Ne, Lt, Le, Gt, Ge, Unordered };
enum class Rmw : std::uint8_t { Add, Min, Max, And, Or, Xor, Exchange };

using Operands = std::span<const Operand>;

// Elementwise.  Scalars and constants are splatted, extents of 1 broadcast.
Handle arithmetic(Arith kind, DType e, const Operand &a, const Operand &b, Grade grade, Location loc);
Handle compare(Compare kind, DType e, const Operand &a, const Operand &b, Location loc);
Handle negate(DType e, const Operand &a, Location loc);
Handle invert(DType e, const Operand &a, Location loc);
/// Where the value was recorded; the kernel's place if the handle names none.
Location whereMade(const Handle &handle);
Handle unary(Op op, std::string_view name, DType e, const Operand &a, Grade grade, Location loc);
Handle power(DType e, const Operand &a, const Operand &b, Grade grade, Location loc);
Handle copySign(DType e, const Operand &a, const Operand &b, Location loc);
Handle fusedMultiplyAdd(DType e, const Operand &a, const Operand &b, const Operand &c, Location loc);
Handle select(const Operand &condition, const Operand &a, const Operand &b, Location loc);
Handle cast(DType to, const Operand &a, Location loc);
/// `outputs`: of the results' types, as many as `results`.
void inlinePtx(std::string_view text, bool effects, std::span<const DType> outputs, Operands operands,
               std::span<Handle> results, Location loc);
Handle bitcast(DType to, const Operand &a, Location loc);
/// Whether float additions and multiplications may fuse from here on; gives what held before.
bool setContraction(bool allowed);
/// The grade of operations that name none, from here on; gives what held before.
Grade setGrade(Grade grade);
/// Operations take this location instead of their own until it is changed back; one of line 0 ends that.
Location setCaller(Location loc);
/// The recording's error, of what the typed headers check themselves.
void refuse(std::string_view operation, const std::string &message, std::string remedy, Location loc);

// Values from nothing, and changes of shape.
Handle programId(Axis axis, Location loc);
Handle numPrograms(Axis axis, Location loc);
Handle range(DType e, std::int64_t begin, std::int64_t end, Location loc);
/// A scalar constant, or (with a shape) a tile of it or of a scalar.
Handle constant(const Operand &value, Location loc);
Handle full(const Shape &shape, const Operand &value, Location loc);
Shape shapeOf(const Handle &handle);
Handle expandDims(const Operand &a, int dim, Location loc);
Handle broadcastTo(const Operand &a, const Shape &shape, Location loc);
Handle transpose(const Operand &a, std::span<const int> permutation, Location loc);
Handle reshape(const Operand &a, const Shape &shape, Location loc);
Handle join(const Operand &a, const Operand &b, Location loc);
Handle withLayout(const Operand &a, const BlockedLayout &layout, Location loc);
void split(const Operand &a, Handle &first, Handle &second, Location loc);

// Memory.
Handle addPointer(const Operand &pointer, const Operand &offset, bool subtract, Location loc);
Handle load(const Operand &pointer, const Operand &mask, const Operand &other, Cache cache, Location loc);
void store(const Operand &pointer, const Operand &value, const Operand &mask, Cache cache, Location loc);
Handle atomicRmw(Rmw kind, const Operand &pointer, const Operand &value, const Operand &mask, Order order, Scope scope,
                 Location loc);
Handle atomicCas(const Operand &pointer, const Operand &expected, const Operand &desired, Order order, Scope scope,
                 Location loc);
Handle dot(const Operand &a, const Operand &b, const Operand &c, std::string_view precision, Location loc);
Handle gather(const Operand &source, const Operand &indices, int dim, Location loc);

// Views.  Index operands are constants, i32 or i64; all of one operation are widened to the widest.
Handle makeView(const Operand &pointer, Operands extents, Operands strides, const Shape &tile, int unit, Location loc);
/// A view of a whole tensor; `excess`: by how many dimensions the tile that was asked for has too many.
Handle tensorView(const Operand &pointer, Operands extents, Operands strides, std::span<const std::int64_t> tile,
                  int excess, int unit, Location loc);
Handle sliceView(const Handle &view, Operands coords, std::span<const int> dims, Location loc);
/// Refuses a dimension that a tensor of this rank has not.
void refuseDimension(const char *operation, int dim, int rank, Location loc);
Handle narrowView(const Handle &view, int dim, const Operand &start, const Operand &size, Location loc);
Handle loadView(const Handle &view, DType e, Operands coords, Cache cache, Location loc, bool unstaged = false);
void storeView(const Handle &view, Operands coords, const Operand &value, Cache cache, Location loc);

// Pipelines.  `contiguous`: a dimension, or -2: the last one.
Handle makePipeline(std::string_view name, DType element, const Shape &tile, int stages, int contiguous, Location loc);
/// acquire, copy, commit.
Handle fillSlot(const Handle &pipeline, const Handle &view, Operands coords, Location loc);
/// wait; the next state and the slot's tile.
std::pair<Handle, Handle> takeSlot(const Handle &pipeline, Location loc);
Handle releaseSlot(const Handle &pipeline, Location loc);
void drainPipeline(const Handle &pipeline, Location loc);

// Checks.
void assume(const Operand &condition, Location loc);
Handle multipleOf(const Operand &a, std::int64_t divisor, Location loc);
/// `dim` -1: the last one.
Handle maxContiguous(const Operand &a, std::int64_t elements, int dim, Location loc);
void deviceAssert(const Operand &condition, std::string_view message, Location loc);
/// Of each dimension the coordinates from begin up to end; no ranges: all.
struct PrintRange {
  std::int64_t begin = 0, end = 0;
};
void devicePrint(std::string_view prefix, Operands values, Location loc, std::span<const PrintRange> slice = {});
/// The bits of a tile's elements, as a print that says what the tile is (support/TileDump.h).
void dumpTile(std::string_view name, DType element, const Operand &bits, Location loc);

// Regions.  begin* gives false if nothing is recorded: the caller then skips the body and the end.  Handles go out
// through spans that are as long as there are carried values, sources, results.
/// What a loop has of its own: stages, and how many rounds it does at once.
struct LoopOptions {
  std::optional<int> stages = {}, unroll = {};
};
bool beginLoop(DType e, const Operand &begin, const Operand &end, const Operand &step, const LoopOptions &options,
               Operands carried, Handle &induction, std::span<Handle> inside, Location loc);
void endLoop(Operands yielded, std::span<Handle> results);
/// A loop as long as a condition holds: first the condition of the carried values, then the body, then endLoop.
bool beginWhile(Operands carried, std::span<Handle> inside, Location loc);
bool beginWhileBody(const Operand &condition, std::span<Handle> inside);
/// Whether a warp's rows need a body: tile.any_row.
Handle anyRow(const Operand &rows, Location loc);
bool beginWhen(const Operand &condition, Location loc);
bool beginOtherwise(Operands yielded);
void endWhen(Operands yielded, std::span<Handle> results);
/// `inside`: first all left-hand scalars, then all right-hand ones.  `scalars`: the result must be rank 0.
bool beginCombine(bool isScan, Operands sources, int dim, bool reverse, bool scalars, std::span<Handle> inside,
                  Location loc);
void endCombine(Operands yielded, std::span<Handle> results);

} // namespace detail
} // namespace kiln::language

#endif // KILN_LANGUAGE_RECORDER_H
