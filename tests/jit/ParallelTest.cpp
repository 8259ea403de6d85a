// support/Parallel.h.
#include "support/Parallel.h"

#include <gtest/gtest.h>

#include <new>
#include <set>

namespace {

using kiln::inParallel;
using kiln::inPieces;

TEST(Parallel, EachOnce) {
  for (const std::size_t n : {0u, 1u, 2u, 1000u}) {
    std::vector<std::atomic<int>> calls(n);
    inParallel(n, [&](std::size_t i) { ++calls[i]; });
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(calls[i], 1) << i << " of " << n;
  }
}

TEST(Parallel, PiecesCoverAllOnce) {
  for (const std::size_t n : {0u, 1u, 9u, 10u, 11u, 100u}) {
    std::vector<std::atomic<int>> calls(n);
    inPieces(n, 10, [&](std::size_t begin, std::size_t end) {
      EXPECT_EQ(begin % 10, 0u);
      EXPECT_TRUE(end == begin + 10 || end == n);
      for (std::size_t i = begin; i < end; ++i)
        ++calls[i];
    });
    for (std::size_t i = 0; i < n; ++i)
      EXPECT_EQ(calls[i], 1) << i << " of " << n;
  }
}

TEST(Parallel, OnSoManyThreadsAtMost) {
  std::mutex guard;
  std::set<std::thread::id> met;
  inParallel(
      500,
      [&](std::size_t) {
        const std::lock_guard lock(guard);
        met.insert(std::this_thread::get_id());
      },
      /*most=*/1);
  EXPECT_EQ(met, std::set{std::this_thread::get_id()});
}

TEST(Parallel, WhatIsThrownComesHere) {
  std::atomic<int> calls = 0;
  const auto one = [&](std::size_t i) {
    ++calls;
    if (i == 3)
      throw std::bad_alloc();
  };
  EXPECT_THROW(inParallel(100000000, one), std::bad_alloc); // it does not go on for long
  EXPECT_GE(calls, 4);
  EXPECT_LT(calls, 100000000);
}

} // namespace
