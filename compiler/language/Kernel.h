//===- Kernel.h - Recording a kernel -----------------------------------------===//
//
// `kernel(name, options, body)` calls `body` once and writes down what it computes, as text of the tile dialect with
// source locations.  The parameters of `body` are the kernel's arguments, each an Arg<type, "name">.
//
//   Kernel k = kernel("scale", {.warps = 4}, [&](Arg<Pointer<f32>, "x"> x, Arg<f32, "factor"> factor, Arg<i64, "n"> n)
//   {
//     auto i = cast<i64>(programId()) * 1024 + cast<i64>(range(0, 1024));
//     store(x + i, load(x + i, i < n) * factor, i < n);
//   });
//
// Errors never throw and never abort: the first one stops the recording and is the kernel's status.  The text depends
// on the body and the options only: not on the thread, the locale, the run.  Recordings on several threads are
// independent; one inside another on the same thread is an error of the inner one.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_KERNEL_H
#define KILN_LANGUAGE_KERNEL_H

#include "compiler/target/KernelOptions.h"
#include "support/Status.h"
#include "Value.h"

#include <array>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kiln::language {

class Recorder;

/// A configuration's value, as text that is the same everywhere.
struct ConfigValue {
  template <std::integral C>
  ConfigValue(C c) : text(std::same_as<C, bool> ? (c ? "true" : "false") : std::to_string(c)) {}
  ConfigValue(double c);
  ConfigValue(DType e) : text(elementName(e)) {}
  ConfigValue(std::string s) : text(std::move(s)) {}
  ConfigValue(const char *s) : text(s) {}
  std::string text;
};
struct ConfigEntry {
  std::string name;
  ConfigValue value;
};

/// A tensor that a kernel has besides its parameters, of a type that is known only when the kernel is recorded.
struct TensorDeclaration {
  std::string name;
  DType element = DType::F32;
  int rank = 1;
  bool noalias = false; ///< as ArgTraits::noalias
};

struct KernelOptions {
  // warps, stages, maxRegisters, assemblerLevel, cluster: what they are and may be is in the table.  The front end
  // takes a power of two for warps.
#define KILN_KERNEL_OPTION(field, attribute, standard, ...) int field = standard;
#define KILN_KERNEL_OPTION3(field, ...) std::array<int, 3> field = KernelExtentsInfo::standard;
#include "compiler/target/KernelOptions.def"
  /// Of divisions (`/` too), roots and functions that name no grade themselves: `exp(x)`, not `exp(x, approx)`.  A loop
  /// or withGrade (Math.h) may have its own.
  Grade grade = precise;
  /// What the kernel was made for: `{{"block", c.block}}`.  The first line of the text, and so part of every key.
  std::vector<ConfigEntry> config = {};
  /// This prefix of source files' paths is not recorded.  Targets may use -fmacro-prefix-map instead.
  std::string sourceRoot = {};
  /// After the parameters; the body finds them by name: `declaredTensor<i32, 2>("rows")` (Tensor.h).
  std::vector<TensorDeclaration> tensors = {};
};

/// How much of an argument's value one compiled kernel is for.
///   ByType        what the argument's type says: a Pointer or an Extent Divisibility, a Stride Stride, all others None
///   None          nothing: one kernel for all values
///   Divisibility  a multiple of 16 (a pointer: aligned to 16 bytes; an Extent: whole 16 bytes), or not
///   Stride        1, whole 16 bytes, or neither
///   Value         an integer's value: one compile a value
enum class Specialization : std::uint8_t { ByType, None, Divisibility, Stride, Value };
/// As tile.specialize calls it; empty for ByType.
std::string_view specializationName(Specialization how);

struct ArgTraits {
  bool noalias = false; ///< no other argument's memory overlaps what is written through this one
  int divisibility = 0; ///< bytes of a pointer, units of an integer that always divide it (launches with others are
                        ///< refused); 0: nothing is known
  Specialization specialization = Specialization::ByType;
};
/// `Arg<i64, "n", byDivisibility>`: a multiple of 16 gets a kernel of its own.
inline constexpr ArgTraits byDivisibility{.specialization = Specialization::Divisibility};
/// `Arg<i32, "window", byValue>`: each value gets a kernel of its own, in which it is a constant.
inline constexpr ArgTraits byValue{.specialization = Specialization::Value};
/// `Arg<Stride<f32>, "stride", unspecialized>`: one kernel for all values.
inline constexpr ArgTraits unspecialized{.specialization = Specialization::None};

// Types of arguments that count elements of T.  An `Arg<Stride<bf16>, "row_stride">` is a Scalar<i64>.

/// From one row (column, head ..) of a tensor to the next: 1, whole 16 bytes, or neither.
template <Element T, IndexElement I = i64> struct Stride {};
/// Along a row: whole 16 bytes get a kernel of their own, whose masks are whole vectors.
template <Element T, IndexElement I = i64> struct Extent {};

/// Which part of a tensor an argument is (Tensor.h).
struct TensorPart {
  enum class Role : std::uint8_t { Pointer, Extent, Stride };
  std::string tensor; ///< its name
  Role role = Role::Pointer;
  int dim = 0, rank = 0;
  bool optional = false; ///< a launch may leave the tensor out
};

struct KernelArgument {
  std::string name;
  DType element = DType::F32;
  bool isPointer = false;
  ArgTraits traits;
  std::optional<DType> counts = {};    ///< of a Stride and an Extent: elements of this type
  std::optional<TensorPart> part = {}; ///< of a tensor
  /// "ptr<f32>", "i64": as in the compiler's metadata.
  std::string typeText() const;
};

/// A recorded kernel, or why there is none.
class [[nodiscard]] Kernel {
public:
  Kernel() = default;
  static Kernel failed(Status why);

  bool ok() const { return state.ok(); }
  const Status &status() const { return state; }
  const std::string &name() const { return kernelName; }
  /// One module of the tile dialect.  Empty if recording failed.
  const std::string &text() const { return module; }
#define KILN_KERNEL_OPTION(field, ...)                                                                                 \
  int field() const { return values.field; }
#define KILN_KERNEL_OPTION3(field, ...)                                                                                \
  const std::array<int, 3> &field() const { return values.field; }
#include "compiler/target/KernelOptions.def"
  const std::vector<KernelArgument> &arguments() const { return args; }
  const std::vector<ConfigEntry> &config() const { return configEntries; }
  /// "block = 1024, warps = 4", ", stages = 3" and other options where they are not the default.
  std::string configText() const;

private:
  friend class Recorder;
  Status state = Status::invalid("no kernel was recorded");
  std::string kernelName, module;
  std::vector<KernelArgument> args;
  std::vector<ConfigEntry> configEntries;
  KernelOptionValues values;
};

namespace detail {
/// The arguments that a tensor is.  `wholeRows`: the last extent is specialised (Tensor.h).
void describeTensor(std::vector<KernelArgument> &out, std::string_view name, DType element, int rank, bool noalias,
                    bool wholeRows, bool optional);
/// Of a tensor among KernelOptions::tensors; false if the kernel has none of this name and type: the recording fails.
bool findDeclared(std::string_view name, DType element, std::span<Handle> parts, Location loc);

template <typename T> struct ArgumentBase {
  using Type = Scalar<T>;
  static constexpr bool isPointer = false;
  static constexpr DType element = elementOf<T>;
  static constexpr std::optional<DType> counts = {};
  static constexpr Specialization specialization = Specialization::ByType;
};
template <Element T> struct ArgumentBase<Pointer<T>> {
  using Type = Pointer<T>;
  static constexpr bool isPointer = true;
  static constexpr DType element = elementOf<T>;
  static constexpr std::optional<DType> counts = {};
  static constexpr Specialization specialization = Specialization::ByType;
};
template <Element T, IndexElement I> struct ArgumentBase<Stride<T, I>> : ArgumentBase<I> {
  static constexpr std::optional<DType> counts = elementOf<T>;
  static constexpr Specialization specialization = Specialization::Stride;
};
template <Element T, IndexElement I> struct ArgumentBase<Extent<T, I>> : ArgumentBase<I> {
  static constexpr std::optional<DType> counts = elementOf<T>;
  static constexpr Specialization specialization = Specialization::Divisibility;
};
} // namespace detail

/// A kernel's argument: `Arg<Pointer<f32>, "x">` is a Pointer<f32>, `Arg<i64, "n">` and `Arg<Stride<f32>, "s">` are a
/// Scalar<i64>.  Its type and traits say how the kernel is specialised; its name never does.
template <typename T, Name name, ArgTraits traits = ArgTraits{}> class Arg : public detail::ArgumentBase<T>::Type {
  using Known = detail::ArgumentBase<T>;
  static_assert(name.isIdentifier(), "an argument's name is letters, digits and _, and no digit first");
  static constexpr Specialization asked = traits.specialization;
  static_assert(asked != Specialization::Stride, "a stride counts elements: Arg<Stride<T>, \"name\">");
  static_assert(!Known::counts || asked == Specialization::ByType || asked == Specialization::None,
                "the type says how a Stride or an Extent is specialised");
  static_assert(Known::isPointer || !isFloat(Known::element) || asked <= Specialization::None,
                "a float is not specialised: make it part of the configuration");
  static_assert(!Known::isPointer || asked != Specialization::Value, "an address is no constant");
  static_assert(asked != Specialization::Divisibility || Known::isPointer || bitsOf(Known::element) >= 32,
                "divisibility is for pointers and integers of 32 and 64 bits");
  static_assert(Known::isPointer || !std::same_as<T, i1>, "a mask is no argument: pass an integer and compare it");
  static_assert(Known::isPointer || !traits.noalias, "noalias is for pointers");
  static_assert(Known::isPointer || !isFloat(Known::element) || !traits.divisibility, "no divisibility of a float");
  static_assert(traits.divisibility >= 0, "divisibility is a positive number");

public:
  explicit Arg(detail::Handle h) : Known::Type(h) {}
  using Known::Type::operator=;
  template <typename Recording>
  Arg(const Recording &recording, unsigned first) : Known::Type(recording.argument(first)) {}
  static constexpr unsigned argumentCount = 1;
  static void describe(std::vector<KernelArgument> &list) {
    KernelArgument out{std::string(name.view()), Known::element, Known::isPointer, traits};
    if (asked == Specialization::ByType) {
      out.traits.specialization = Known::specialization;
      out.counts = Known::counts;
    }
    list.push_back(std::move(out));
  }
};

namespace detail {
/// One recording.  Becomes the thread's current one when it can.
class Recording {
public:
  Recording(std::string_view name, const KernelOptions &options, std::vector<KernelArgument> arguments, Location loc);
  ~Recording();
  Recording(const Recording &) = delete;
  Recording &operator=(const Recording &) = delete;
  bool active() const;
  Handle argument(unsigned index) const;
  Kernel finish();

private:
  std::unique_ptr<language::Recorder> recorder;
  Kernel refused;
};

/// A parameter of a kernel: one argument, or several (TensorArg).
template <typename T> struct IsParameter : std::false_type {};
template <typename T, Name name, ArgTraits traits> struct IsParameter<Arg<T, name, traits>> : std::true_type {};

template <typename F> struct Signature : Signature<decltype(&F::operator())> {};
template <typename C, typename... As> struct Signature<void (C::*)(As...) const> {
  using Type = std::tuple<std::remove_cvref_t<As>...>;
};
template <typename C, typename... As> struct Signature<void (C::*)(As...)> {
  using Type = std::tuple<std::remove_cvref_t<As>...>;
};

template <typename F, typename... As>
Kernel record(std::string_view name, const KernelOptions &options, F &body, std::tuple<As...> *, Location loc) {
  static_assert((IsParameter<As>::value && ...),
                "the parameters of a kernel are Arg<type, \"name\"> and TensorArg<type, rank, \"name\">");
  if constexpr ((IsParameter<As>::value && ...)) {
    std::vector<KernelArgument> arguments;
    (As::describe(arguments), ...);
    for (const TensorDeclaration &t : options.tensors)
      describeTensor(arguments, t.name, t.element, t.rank, t.noalias, false, false);
    Recording recording(name, options, std::move(arguments), loc);
    if (recording.active())
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        constexpr auto first = [] { // of each parameter's arguments
          std::array<unsigned, sizeof...(As) + 1> out{};
          const std::array<unsigned, sizeof...(As) + 1> counts{As::argumentCount..., 0};
          for (std::size_t i = 0; i < sizeof...(As); ++i)
            out[i + 1] = out[i] + counts[i];
          return out;
        }();
        body(As(recording, first[I])...);
      }(std::index_sequence_for<As...>());
    return recording.finish();
  } else {
    return Kernel();
  }
}
} // namespace detail

/// Records `body`, a function of the kernel's arguments that returns nothing.
template <typename F>
Kernel kernel(std::string_view name, const KernelOptions &options, F &&body, Location loc = Location::current()) {
  return detail::record(name, options, body,
                        static_cast<typename detail::Signature<std::remove_cvref_t<F>>::Type *>(nullptr), loc);
}

/// While it lives, what is recorded belongs to one line: for helpers whose callers are the place to look at.
///   template <typename T> Tile<T> twice(const Tile<T> &x, Location loc = Location::current()) {
///     const LocationScope scope(loc);
///     return x + x;
///   }
/// The outermost one wins.
class LocationScope {
public:
  explicit LocationScope(Location loc) : before(detail::setCaller(loc)) {
    if (before.line())
      detail::setCaller(before);
  }
  ~LocationScope() { detail::setCaller(before); }
  LocationScope(const LocationScope &) = delete;
  LocationScope &operator=(const LocationScope &) = delete;

private:
  Location before;
};

/// Calls `make.template operator()<T>()` for the one of Ts that `element` names: from a run-time type to a kernel.
/// `return withElement<f32, f16, bf16>(element, "add", [&]<typename T>() { return add<T>(config); });`
template <Element... Ts, typename F> Kernel withElement(DType element, std::string_view name, F &&make) {
  Kernel out;
  bool found = false;
  (void)((elementOf<Ts> == element && (out = make.template operator()<Ts>(), found = true)) || ...);
  if (found)
    return out;
  std::string known;
  ((known += (known.empty() ? "" : ", ") + std::string(elementName(elementOf<Ts>))), ...);
  return Kernel::failed(Status::invalid("kernel '" + std::string(name) + "' has no variant for elements of type " +
                                            std::string(elementName(element)),
                                        "use one of " + known));
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_KERNEL_H
