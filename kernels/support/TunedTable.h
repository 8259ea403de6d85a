//===- TunedTable.h - Tilings that sweeps found for an operation's calls -------===//
//
// A call that leaves its tiling open asks here before the operation chooses one.  What decides is the configuration
// before any choice (head dims, options), the element types, and a bucket for each size: a power of two, never the size
// itself.  The first call of a bucket reads the kernel cache (kiln/Tuned.h), and the answer is remembered, also that
// there is none.
//
// Where calls are tuned in the background, a call that finds none has a sweep begun, and a later one takes what that
// kept.  The first answer stays: calls that are prepared, measured or recorded into graphs go on with it, and those
// whose caller's workspace is too small for the later one.
//
// Invariants: a remembered answer is found without a lock or an allocation; values that no option takes are as none;
// within one call a question has one answer.
// Calls with functions of their own (members of the configuration that have no text) have no tuned values: nothing
// would tell one function from another.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_KERNELS_SUPPORT_TUNEDTABLE_H
#define KILN_KERNELS_SUPPORT_TUNEDTABLE_H

#include "kernels/support/KernelTable.h"
#include "kernels/support/Tiling.h"
#include "kiln/Plan.h"

#include <bit>

namespace kiln::kernels {

/// A size of a call, or another number that the best tiles follow from.
struct TunedSize {
  const char *name;
  std::int64_t value;
};

/// The power of two that is not below: 4097 to 8192 share one.  0 of what is none.
constexpr std::int64_t bucketOf(std::int64_t value) {
  constexpr std::int64_t most = std::int64_t(1) << 62;
  return value <= 0 ? 0 : static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(std::min(value, most))));
}

/// "queries 8192, keys 8192".
std::string bucketsText(std::span<const TunedSize> sizes);

/// What a kind of tilings lists; `depth` is for those that may have one.
template <typename T, typename Visitor> void visitTiling(T &tiling, bool depth, Visitor visit) {
  if constexpr (requires { std::remove_const_t<T>::options(tiling, visit, depth); })
    std::remove_const_t<T>::options(tiling, visit, depth);
  else
    std::remove_const_t<T>::options(tiling, visit);
}

/// The names that it lists, each after `part` and an underscore if there is one.
template <typename T> std::vector<std::string> tilingOptions(std::string_view part, bool depth) {
  std::vector<std::string> out;
  const T none;
  visitTiling(none, depth, [&](const CallOption &option, int) {
    out.push_back(part.empty() ? option.name : std::string(part) + "_" + option.name);
  });
  return out;
}

/// The tiling of a question's answer; nothing: a value is none that the option takes.
template <typename T> std::optional<T> tilingOf(const TunedValues &values, bool depth) {
  T out;
  std::size_t next = 0;
  bool isRight = true;
  visitTiling(out, depth, [&](const CallOption &option, int &field) {
    const std::int64_t value = next < values.size() ? values[next] : -1;
    ++next;
    isRight &= value == 0 || (value > 0 && option.values.take(value));
    field = isRight ? static_cast<int>(value) : 0;
  });
  return isRight && next == values.size() ? std::optional(out) : std::nullopt;
}

/// `T`: what is tuned, a struct that lists options.
template <Configuration C, typename T = Tiling> class TunedTable {
public:
  using Types = typename KernelTable<C>::Types;
  static constexpr std::size_t mostSizes = 8;

  struct Question {
    std::string_view operation, part = {}; ///< "attention_backward", "keys"
    Types types;
    bool depth = false; ///< whether its tilings have one
  };

  /// `config`: before anything that a tiling says is chosen.  `fits`: whether the call takes a tiling, asked once a
  /// bucket; what was kept for other code may not fit this one.  Zeros: the operation chooses.
  template <std::size_t N, typename Fits>
  T get(Jit &jit, const Question &question, const C &config, const TunedSize (&sizes)[N], Fits fits) {
    static_assert(N <= mostSizes);
    if (!jit.asksForTuned() || hasOpaqueFields(config))
      return {};
    Key key{hashOf(config), {}, question.types};
    for (std::size_t i = 0; i < N; ++i) {
      key.buckets[i] = bucketOf(sizes[i].value);
      key.hash = (key.hash ^ static_cast<std::size_t>(key.buckets[i])) * 0x9E3779B97F4A7C15u;
    }
    const auto is = [&](const Entry &e) { return e.key == key && e.config == config; };
    const Entry *entry = entries.find(is);
    if (!entry) {
      std::optional<T> tiling = ask(jit, questionOf(question, config, sizes), question.depth, fits);
      std::unique_ptr<Later> later;
      if (!tiling && jit.tunedGeneration())
        later = std::make_unique<Later>();
      // The first answer counts: a call's workspace and its launches agree.
      entry = &entries.add({key, config, tiling.value_or(T()), std::move(later)}, is);
    }
    if (!entry->later) [[likely]]
      return entry->tiling;
    RunPlan *const run = RunPlan::running(jit);
    const std::uint64_t now = run ? run->tunedGeneration() : 0;
    if (!now)
      return entry->tiling;
    const Answer *answer = newest(*entry->later, now);
    if (!answer || answer->generation != now) { // each generation has its own, which does not change
      std::optional<T> tiling = answer ? answer->tiling : std::nullopt;
      if (!tiling) {
        TunedQuestion asked = questionOf(question, config, sizes);
        tiling = ask(jit, asked, question.depth, fits);
        if (!tiling)
          if (std::optional<std::string> words = run->words())
            jit.tuneInBackground(asked, std::move(*words));
      }
      answer = &entry->later->add({now, tiling}, [&](const Answer &a) { return a.generation == now; });
    }
    return answer->tiling ? *answer->tiling : entry->tiling;
  }

private:
  struct Key {
    std::size_t hash;
    std::array<std::int64_t, mostSizes> buckets;
    Types types;
    bool operator==(const Key &) const = default;
  };
  /// What the cache said when this many sweeps had ended; none: nothing was kept.
  struct Answer {
    std::uint64_t generation;
    std::optional<T> tiling;
  };
  using Later = AddOnlyList<Answer>;
  struct Entry {
    Key key;
    C config;
    T tiling;
    std::unique_ptr<Later> later; ///< null: the first answer is the only one
  };

  /// Of those that a call of generation `now` may take.
  static const Answer *newest(const Later &answers, std::uint64_t now) {
    const Answer *out = nullptr;
    (void)answers.find([&](const Answer &a) {
      if (a.generation <= now && (!out || a.generation > out->generation))
        out = &a;
      return false;
    });
    return out;
  }

  static TunedQuestion questionOf(const Question &question, const C &config, std::span<const TunedSize> sizes) {
    TunedQuestion asked;
    asked.operation = question.operation, asked.part = question.part;
    asked.types = dtypeName(question.types.element);
    if (question.types.out != question.types.element)
      asked.types += " to " + std::string(dtypeName(question.types.out));
    for (const language::ConfigEntry &field : entriesOf(config))
      asked.configuration += (asked.configuration.empty() ? "" : ", ") + field.name + "=" + field.value.text;
    asked.sizes = bucketsText(sizes);
    asked.options = tilingOptions<T>(question.part, question.depth);
    return asked;
  }

  /// Nothing: nothing is kept.
  template <typename Fits>
  static std::optional<T> ask(Jit &jit, const TunedQuestion &question, bool depth, const Fits &fits) {
    const std::optional<TunedValues> values = jit.tuned(question);
    if (!values)
      return std::nullopt;
    const T tiling = tilingOf<T>(*values, depth).value_or(T());
    return tiling.given() && !fits(tiling) ? T() : tiling;
  }

  AddOnlyList<Entry> entries;
};

} // namespace kiln::kernels

#endif // KILN_KERNELS_SUPPORT_TUNEDTABLE_H
