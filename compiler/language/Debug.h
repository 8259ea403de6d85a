//===- Debug.h - Looking into a kernel -------------------------------------===//
//
// devicePrint prints every element.  Here: some of them, numbers about all of them, and the tile as a file.
// All of it works on GPUs too, where lines come in any order; the emulator puts those of one print in order.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_LANGUAGE_DEBUG_H
#define KILN_LANGUAGE_DEBUG_H

#include "Checks.h"
#include "Math.h"
#include "Reduce.h"

#include <cmath>
#include <initializer_list>
#include <string>

namespace kiln::language {

/// The coordinates from begin up to end of a dimension.
using detail::PrintRange;

/// Prints part of a tile, one line an element with its coordinates in the tile: `devicePrintSlice("s ", s, {{0, 4}, {0,
/// 8}})` the first 8 elements of the first 4 rows.
template <Element T>
void devicePrintSlice(detail::Message prefix, const Tile<T> &x, std::initializer_list<PrintRange> slice) {
  const detail::Operand operand = detail::operandOf(x, prefix.location);
  detail::devicePrint(prefix.text, {&operand, 1}, prefix.location, {slice.begin(), slice.size()});
}

/// Prints what a tile has in it, a line each: its smallest and its largest number, NaN left out, and of floats how many
/// elements are NaN and how many infinite.  `devicePrintStats("s", s)` prints "s min -3.5" and so on.
template <Element T>
  requires(NumberElement<T> || isFloat(elementOf<T>))
void devicePrintStats(detail::Message name, const Tile<T> &x) {
  const Location loc = name.location;
  const auto line = [&](const char *what, const auto &value) {
    const detail::Operand operand = detail::operandOf(value, loc);
    detail::devicePrint(std::string(name.text) + " " + what + " ", {&operand, 1}, loc);
  };
  if constexpr (!NumberElement<T>) {
    devicePrintStats(name, cast<f32>(x, loc));
  } else {
    line("min", min(x, loc));
    line("max", max(x, loc));
    if constexpr (FloatElement<T>) {
      line("NaN", sum(cast<i32>(isNan(x, loc), loc), loc));
      line("infinite", sum(cast<i32>(abs(x, loc) == INFINITY, loc), loc));
    }
  }
}

/// Hands a tile out whole, bit by bit: where the emulator has a directory for tiles (`kiln run --dump-tiles DIR`,
/// EmulatorOptions::tileDirectory), as DIR/KERNEL.NAME.X_Y_Z.npy of each program (X, Y, Z); elsewhere as lines of text.
/// `name`: letters, digits, '_' and '-'.  bf16 and the 8-bit floats become float32 in the file.
template <Element T> void dumpTile(detail::Message name, const Tile<T> &x) {
  const auto dump = [&](const auto &bits) {
    detail::dumpTile(name.text, elementOf<T>, detail::operandOf(bits, name.location), name.location);
  };
  constexpr unsigned bits = bitsOf(elementOf<T>);
  if constexpr (std::same_as<T, i1>)
    dump(cast<u8>(x, name.location));
  else if constexpr (!isFloat(elementOf<T>))
    dump(x);
  else if constexpr (bits == 8)
    dump(bitcast<u8>(x, name.location));
  else if constexpr (bits == 16)
    dump(bitcast<u16>(x, name.location));
  else if constexpr (bits == 32)
    dump(bitcast<u32>(x, name.location));
  else
    dump(bitcast<u64>(x, name.location));
}

} // namespace kiln::language

#endif // KILN_LANGUAGE_DEBUG_H
