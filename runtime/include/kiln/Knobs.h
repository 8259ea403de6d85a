//===- Knobs.h - Every setting of the runtime, declared once --------------===//
//
// runtime/jit/Knobs.def is the table: field, environment variable, flag of the commands, type, default, what of it
// enters cache keys, and a sentence.  A Knobs object is a plain value with one field a row; `fromEnvironment` is the
// only place of the runtime that reads environment variables.  A knob that changes code enters every cache key.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KNOBS_H
#define KILN_KNOBS_H

#include "support/Status.h"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace kiln {

enum class Schedule : std::uint8_t; // kiln/Device.h
enum class MatrixMode : std::uint8_t;
struct EmulatorOptions;

namespace knob {
using Text = std::string;
using Path = std::string;
using Paths = std::vector<std::string>; ///< separated by ':'
using Bool = bool;                      ///< 0, 1, on, off, true, false, yes, no
using Bytes = std::uint64_t;            ///< with K, M or G (powers of 1024)
enum class Switch : std::uint8_t { Auto, Off, On };
enum class Isolation : std::uint8_t { Auto, Thread, None, Child };
enum class Checks : std::uint8_t { On, Off, Fail };
using Schedule = kiln::Schedule;
using MatrixMode = kiln::MatrixMode;
enum class Number : std::uint64_t {};
} // namespace knob

enum class KnobType : std::uint8_t {
  Text,
  Path,
  Paths,
  Bool,
  Bytes,
  Switch,
  Isolation,
  Schedule,
  MatrixMode,
  Checks,
  Number
};

/// What of a knob enters the key of a kernel: nothing, its value, or the contents of the files that it names.
enum class KnobInKey : std::uint8_t { No, Value, Contents };

/// One row of the table.
struct KnobInfo {
  std::string_view field, variable, flag;
  KnobType type;
  std::string_view standard; ///< the default, as it would be written
  KnobInKey inKey;
  std::string_view request; ///< its name in a compile's request; empty: the compiler is not told
  std::string_view text;
};

std::span<const KnobInfo> allKnobs();
std::string_view knobTypeName(KnobType type);

struct Knobs {
// NOLINTBEGIN(bugprone-macro-parentheses): they declare members
#define KILN_KNOB(field, variable, flag, type, standard, inKey, request, text) knob::type field{};
#include "runtime/jit/Knobs.def"
  // NOLINTEND(bugprone-macro-parentheses)

  /// Defaults.
  Knobs();

  /// Defaults, then what the environment sets.  A value that cannot be read is a failure that names the variable.
  static Result<Knobs> fromEnvironment();

  /// `name` is a variable ("KILN_LOG") or a flag ("--log").
  Status set(std::string_view name, std::string_view value);
  /// The value as it would be written.
  Result<std::string> get(std::string_view name) const;
};

/// What of an emulator the knobs decide; the rest has its defaults.
EmulatorOptions emulatorOptions(const Knobs &knobs);

/// Where the kernel cache lies: `cacheDir`, else what XDG_CACHE_HOME or HOME say.  Empty: no cache on disk.
Result<std::string> cacheDirectory(const Knobs &knobs);

/// Variables of the environment that begin with KILN_ and that no knob has: mistyped ones.  KILN_TEST_ is left alone.
std::vector<std::string> unknownKnobVariables();

/// The table as a page (docs/knobs.md).
std::string knobsPage();

} // namespace kiln

#endif // KILN_KNOBS_H
