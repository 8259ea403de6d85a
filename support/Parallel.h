//===- Parallel.h - Independent pieces of work, on several threads -----------===//
#ifndef KILN_SUPPORT_PARALLEL_H
#define KILN_SUPPORT_PARALLEL_H

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace kiln {

/// Calls one(i) once for each i below n, on as many threads as the machine has, `most` at most; in no order, and all
/// are over when this returns.  Where threads cannot be had fewer do it, at worst the caller's.  What one call throws
/// (no memory) is thrown here; those that have not begun then do not.
template <typename F> void inParallel(std::size_t n, const F &one, std::size_t most = 16) {
  std::atomic<std::size_t> next{0};
  std::mutex guard;
  std::exception_ptr thrown;
  const auto work = [&] {
    try {
      for (std::size_t i = next++; i < n; i = next++)
        one(i);
    } catch (...) {
      next = n;
      const std::lock_guard lock(guard);
      thrown = std::current_exception();
    }
  };
  {
    std::vector<std::jthread> helpers;
    try {
      for (std::size_t t = 1; t < std::min({n, most, std::size_t(std::thread::hardware_concurrency())}); ++t)
        helpers.emplace_back(work);
    } catch (const std::system_error &) {
      // Fewer threads, then.
    }
    work();
  }
  if (thrown)
    std::rethrow_exception(thrown);
}

/// Calls piece(begin, end) for pieces of `size` that cover 0 to n, in the same way.
template <typename F> void inPieces(std::size_t n, std::size_t size, const F &piece) {
  inParallel((n + size - 1) / size, [&](std::size_t i) { piece(i * size, std::min(n, (i + 1) * size)); });
}

} // namespace kiln

#endif // KILN_SUPPORT_PARALLEL_H
