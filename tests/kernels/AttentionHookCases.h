//===- AttentionHookCases.h - Functions over scores and pairs, on the device and in float64 ---===//
#ifndef KILN_TESTS_KERNELS_ATTENTIONHOOKCASES_H
#define KILN_TESTS_KERNELS_ATTENTIONHOOKCASES_H

#include "tests/kernels/AttentionProblem.h"

namespace kiln::test {

/// Keys of the query's own document; [sequence, position] of i32. Documents of some ten tokens, the same for queries
/// and keys.
Hooks documents(const Problem &p, std::mt19937_64 &random);
/// Keys up to the query's own, and all of a prefix whose length each sequence has: [sequence] of i64.
Hooks prefixes(const Problem &p);
/// The last `window` keys before the query, and the first `sinks`.
Hooks windowWithSinks(std::int64_t window, std::int64_t sinks);
/// What one head sees another does not.
Hooks byHead();

/// cap tanh(x / cap), derived.
Hooks capped();
/// x - slope of the head * |i - j|, slopes a f32 table: what ALiBi is for as many queries as keys.
Hooks distances(const Problem &p);
/// cap tanh((x + bias[head, i - j + most]) / cap), a bf16 table; causal by its mask.
Hooks relativeBias(const Problem &p, std::mt19937_64 &random);
/// x^3 / 8 + x, whose derivative the caller gives.
Hooks cubic();

} // namespace kiln::test

#endif // KILN_TESTS_KERNELS_ATTENTIONHOOKCASES_H
