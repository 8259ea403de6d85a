//===- RecorderImpl.h - The state of one recording --------------------------===//
//
// Private to compiler/language.  A Recorder appends lines of MLIR to one string.  Values are rows of a table: their
// type, the region that defines them, their name in the text, and where they were written.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_RECORDERIMPL_H
#define KILN_LANGUAGE_RECORDERIMPL_H

#include "Kernel.h"
#include "Literals.h"
#include "Recorder.h"

#include <optional>
#include <string>
#include <vector>

namespace kiln::language {

/// A type of recorded values, without signedness.
struct ValueType {
  enum class Kind : std::uint8_t { Number, Pointer, View, Pipeline, Buffer };
  DType element = DType::I32;
  Kind kind = Kind::Number;
  bool isTile = false; ///< of numbers or pointers; a view is none, and has the shape of its tiles
  Shape shape = {};
  int unit = 0;          ///< of a view: its dimension of stride 1, or -1; of a slot: the one along which neighbours lie
  int stages = 0;        ///< of a pipeline
  std::string name = {}; ///< of a pipeline, and of a slot's buffer: the tensor whose tiles flow through
  bool operator==(const ValueType &) const = default;
};

/// What tile.num_stages may be, of a kernel and of a loop.
constexpr bool goodStages(int stages) {
  return kernelOption("stages").takes(stages);
}

using TypeId = std::uint32_t;
using ValueId = std::uint32_t;
using RegionId = std::uint32_t;

class Recorder {
public:
  Recorder(std::string_view name, const KernelOptions &options, std::vector<KernelArgument> arguments, Location loc);

  /// The thread's recording if nothing went wrong yet, else null.
  static Recorder *current();
  /// `current`, if `what` may be recorded here: not inside a combine function.
  static Recorder *open(std::string_view what, Location loc);
  /// Whatever its state; null if none.
  static Recorder *any();
  static void setCurrent(Recorder *recorder);

  //===--- errors ---===//
  bool ok() const { return failure.ok(); }
  /// The first failure wins.  `what` is the operation as the kernel spells it.
  void fail(Location loc, std::string_view what, const std::string &message, std::string remedy = {});
  /// Fails if two arguments have one name.
  void checkArguments();
  void failKernel(const std::string &message, std::string remedy = {});
  /// "file.cpp:12".
  std::string where(Location loc) const;

  //===--- types ---===//
  TypeId typeId(const ValueType &type);
  TypeId scalar(DType e) { return typeId({signless(e)}); }
  TypeId tile(DType e, const Shape &shape) { return typeId({signless(e), ValueType::Kind::Number, true, shape}); }
  /// `like`'s shape with another element.
  TypeId withElement(TypeId like, DType e);
  const ValueType &type(TypeId id) const { return types[id].type; }
  static DType signless(DType e);
  std::string typeText(TypeId id) const { return types[id].text; }

  //===--- values ---===//
  struct Value {
    TypeId type;
    RegionId region;
    std::uint32_t number; ///< its name; an argument's is its index
    std::int16_t part;    ///< which result of several; -1: the only one; -2: an argument
    Location location;
  };
  ValueId define(TypeId type, Location loc);
  /// Results of one operation with regions, in the region outside it.
  ValueId defineParts(std::uint32_t number, std::span<const TypeId> types, Location loc);
  detail::Handle handle(ValueId id) const { return {recordingId, id}; }
  const Value &value(ValueId id) const { return values[id]; }
  const ValueType &typeOf(ValueId id) const { return types[values[id].type].type; }
  /// The value that a handle names, if it may be used here; fails otherwise.
  std::optional<ValueId> find(const detail::Handle &h, std::string_view what, Location loc);
  /// find, and the element type must be as C++ says.
  std::optional<ValueId> find(const detail::Operand &o, std::string_view what, Location loc);
  /// The shape of a live handle; null if it names none.
  const ValueType *peek(const detail::Handle &h) const;

  //===--- operands brought to one type ---===//
  /// The operand as a scalar (no shape) or as a tile of `shape`: constants are recorded, scalars splatted, extents of 1
  /// repeated.
  std::optional<ValueId> bring(const detail::Operand &o, const Shape *shape, std::string_view what, Location loc);
  std::optional<ValueId> bring(const detail::Operand &o, const std::optional<Shape> &shape, std::string_view what,
                               Location loc) {
    return bring(o, shape ? &*shape : nullptr, what, loc);
  }
  /// The shape that the operands broadcast to; none if all are scalars.  False after a failure.
  bool commonShape(std::span<const detail::Operand *const> operands, std::string_view what, Location loc,
                   std::optional<Shape> &shape);
  /// Fails unless `from` broadcasts to `to`.
  bool broadcastsTo(const Shape &from, const Shape &to, std::string_view what, std::string_view role, Location loc);
  bool goodShape(const Shape &shape, std::string_view what, Location loc);
  ValueId splat(ValueId scalar, const Shape &shape, Location loc);
  ValueId broadcast(ValueId tile, const Shape &shape, Location loc);
  std::optional<ValueId> constant(DType e, const detail::Constant &c, const Shape *shape, std::string_view what,
                                  Location loc);

  //===--- regions ---===//
  enum class RegionKind : std::uint8_t { Kernel, Loop, Branch, Combine };
  struct Frame {
    RegionKind kind;
    Op op;
    Location location;
    std::size_t headerAt = 0;          ///< where a scf.if's header goes once its results are known
    std::uint32_t number = 0;          ///< the results' name
    std::vector<TypeId> results = {};  ///< of the operation
    std::vector<TypeId> yielded = {};  ///< of the region
    ValueId condition = 0;             ///< of a scf.if
    std::vector<ValueId> carried = {}; ///< of a scf.while: what its condition sees
    bool otherwise = false;            ///< in the second region of a scf.if
    detail::LoopOptions options = {};  ///< of a scf.for
  };
  void openRegion(Frame frame);
  void closeRegion();
  Frame &frame() { return frames.back(); }
  RegionId region() const { return openRegions.back(); }
  bool inCombine() const { return !frames.empty() && frames.back().kind == RegionKind::Combine; }
  /// Fails inside a combine function, which works on scalars alone.
  bool outsideCombine(std::string_view what, Location loc);
  ValueId regionArgument(TypeId type, Location loc) { return define(type, loc); }
  std::uint32_t takeNumber() { return nextNumber++; }

  //===--- text ---===//
  struct TypeText {
    TypeId id;
  };
  struct ValueText {
    ValueId id;
  };
  struct Quoted {
    std::string_view text;
  };
  void put(std::string_view s) { text += s; }
  void put(char c) { text += c; }
  void put(std::int64_t n) { appendInteger(text, n); }
  void put(int n) { appendInteger(text, n); }
  void put(std::uint32_t n) { appendInteger(text, n); }
  void put(Op op) { text += operationName(op); }
  void put(TypeText t) { text += types[t.id].text; }
  void put(ValueText v);
  void put(Quoted q) { appendQuoted(text, q.text); }
  void putLocation(Location loc);
  template <typename... Parts> void putAll(const Parts &...parts) { (put(parts), ...); }
  /// "%5 = ", "%5:2 = ", or nothing.
  void putResults(std::uint32_t number, std::size_t count) {
    if (count == 0)
      return;
    putAll('%', number);
    if (count > 1)
      putAll(':', static_cast<std::int64_t>(count));
    put(" = ");
  }
  /// "a, b".
  void putTypes(std::span<const TypeId> ids) {
    for (std::size_t i = 0; i < ids.size(); ++i)
      putAll(i ? ", " : "", TypeText{ids[i]});
  }
  void indent() { text.append(2 * (frames.size() + 2), ' '); }
  /// One operation without a result.
  template <typename... Parts> void line(Location loc, const Parts &...parts) {
    indent();
    putAll(parts...);
    endLine(loc);
  }
  /// One operation with one result of `type`.
  template <typename... Parts> ValueId result(TypeId type, Location loc, const Parts &...parts) {
    const ValueId id = define(type, loc);
    indent();
    putAll(ValueText{id}, " = ", parts...);
    endLine(loc);
    return id;
  }
  void endLine(Location loc) {
    putLocation(loc);
    text += '\n';
  }
  std::string text; ///< the function's body
  /// A name for an attribute where its text may not stand: before a colon.
  std::string alias(const std::string &attribute);
  bool contraction = true;
  Grade grade;     ///< of operations that name none
  Location caller; ///< line 0: operations have their own locations

  int warps() const { return options.warps; }
  detail::Handle argument(unsigned index) const { return handle(index); }
  const std::vector<KernelArgument> &argumentList() const { return arguments; }
  /// The first argument of a declared tensor; as many as there are arguments if there is none of this name.
  unsigned firstOf(std::string_view tensor) const;
  Kernel finish();

private:
  struct TypeRow {
    ValueType type;
    std::string text;
  };
  /// The location that stands in the text for `loc`.
  Location effective(Location loc) const { return caller.line() ? caller : loc.line() ? loc : location; }
  std::string_view fileOf(Location loc) const;

  std::uint64_t recordingId;
  std::string kernelName;
  KernelOptions options;
  std::vector<KernelArgument> arguments;
  Location location;
  Status failure;
  std::vector<TypeRow> types;
  std::vector<Value> values;
  std::vector<bool> isOpen;            ///< by region
  std::vector<RegionId> openRegions;   ///< the last one is recorded into
  std::vector<Frame> frames;           ///< one for each open region but the first
  std::vector<std::string> attributes; ///< that have names
  std::uint32_t nextNumber = 0;
  const char *lastFile = nullptr;
  std::string lastPrefix; ///< `loc("file":` of lastFile
};

namespace detail {
/// A pipeline's type, or that of a slot's buffer.
std::string pipelineTypeText(const ValueType &type, std::string_view element);
/// "[%1, %2]".
void putList(Recorder &r, std::span<const ValueId> ids);
/// The view, and in `ids` its coordinates.
std::optional<ValueId> findView(Recorder *r, const Handle &view, Operands coords, std::string_view what, Location loc,
                                std::vector<ValueId> &ids);
} // namespace detail

} // namespace kiln::language

#endif // KILN_LANGUAGE_RECORDERIMPL_H
