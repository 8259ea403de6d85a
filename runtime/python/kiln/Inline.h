//===- Inline.h - What kiln.load_inline adds to a user's source --------------===//
//
// The whole front end, and KILN_INLINE_FUNCTION(name), which makes a C function of one that records a kernel: its
// parameters are flags, numbers and texts, its result a kernel.  The C function gives the kernel's name and text, or
// what was wrong with the call; nothing is thrown out of it.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_PYTHON_INLINE_H
#define KILN_PYTHON_INLINE_H

#include "compiler/language/Language.h"

#include <concepts>
#include <exception>
#include <string>
#include <utility>

using namespace kiln::language;

namespace kiln::inlined {

/// As _inline.py's _Value.
struct Value {
  enum Kind : int { Flag, Whole, Number, Text } kind;
  long long whole;
  double number;
  const char *text;
};

/// As _inline.py's _Recorded.  Texts live until the thread's next call.
struct Recorded {
  const char *name, *text, *error;
};

template <typename T> struct Read;
template <> struct Read<bool> {
  static constexpr const char *what = "a flag";
  static bool fits(const Value &v) { return v.kind == Value::Flag; }
  static bool get(const Value &v) { return v.whole != 0; }
};
template <std::integral T> struct Read<T> {
  static constexpr const char *what = "a whole number that fits its type";
  static bool fits(const Value &v) { return v.kind == Value::Whole && std::in_range<T>(v.whole); }
  static T get(const Value &v) { return static_cast<T>(v.whole); }
};
template <std::floating_point T> struct Read<T> {
  static constexpr const char *what = "a number";
  static bool fits(const Value &v) { return v.kind == Value::Number || v.kind == Value::Whole; }
  static T get(const Value &v) { return static_cast<T>(v.kind == Value::Whole ? double(v.whole) : v.number); }
};
template <typename T>
  requires std::constructible_from<T, const char *>
struct Read<T> {
  static constexpr const char *what = "a text";
  static bool fits(const Value &v) { return v.kind == Value::Text; }
  static T get(const Value &v) { return T(v.text); }
};

template <typename... P, std::size_t... I>
Kernel call(Kernel (*function)(P...), const Value *values, std::size_t count, std::string &error,
            std::index_sequence<I...>) {
  if (count != sizeof...(P)) {
    error = "it has " + std::to_string(sizeof...(P)) + " parameters, the call has " + std::to_string(count);
    return {};
  }
  const auto check = [&]<typename T>(std::size_t i) {
    if (error.empty() && !Read<T>::fits(values[i]))
      error = "parameter " + std::to_string(i) + " is " + Read<T>::what;
  };
  (check.template operator()<std::remove_cvref_t<P>>(I), ...);
  if (!error.empty())
    return {};
  return function(Read<std::remove_cvref_t<P>>::get(values[I])...);
}

template <typename... P> int record(Kernel (*function)(P...), const Value *values, std::size_t count, Recorded *out) {
  thread_local Kernel kernel;
  thread_local std::string error;
  error.clear();
  try {
    kernel = call(function, values, count, error, std::index_sequence_for<P...>());
    if (error.empty() && !kernel.ok())
      error = kernel.status().toString();
  } catch (const std::exception &e) {
    error = std::string("it threw: ") + e.what();
  } catch (...) {
    error = "it threw";
  }
  *out = {kernel.name().c_str(), kernel.text().c_str(), error.c_str()};
  return error.empty() ? 0 : -1;
}

} // namespace kiln::inlined

#define KILN_INLINE_FUNCTION(name)                                                                                     \
  extern "C" __attribute__((visibility("default"))) int kiln_inline_##name(                                            \
      const kiln::inlined::Value *values, std::size_t count, kiln::inlined::Recorded *out) {                           \
    return kiln::inlined::record(&::name, values, count, out);                                                         \
  }

#endif // KILN_PYTHON_INLINE_H
