//===- HotPathCounts.h - What a thread allocates and locks --------------------===//
//
// Replaces operator new and pthread_mutex_lock of a whole test program by ones that count: for one source file of it.
// Under sanitizers, which have their own, nothing is counted, and tests skip themselves.
//
//===----------------------------------------------------------------------===//
#ifndef KILN_TESTS_JIT_HOTPATHCOUNTS_H
#define KILN_TESTS_JIT_HOTPATHCOUNTS_H

#include <cstdint>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <pthread.h>

static thread_local std::uint64_t allocations = 0, locks = 0;

#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
static constexpr bool countsLocks = false;
#else
static constexpr bool countsLocks = true;
extern "C" int pthread_mutex_lock(pthread_mutex_t *mutex) {
  using Lock = int (*)(pthread_mutex_t *);
  static const Lock real = reinterpret_cast<Lock>(dlsym(RTLD_NEXT, "pthread_mutex_lock"));
  ++locks;
  return real(mutex);
}
#endif

#if __has_feature(thread_sanitizer)
static constexpr bool countsAllocations = false;
#else
static constexpr bool countsAllocations = true;
static void *count(std::size_t bytes, std::size_t align) {
  ++allocations;
  void *out = align > __STDCPP_DEFAULT_NEW_ALIGNMENT__ ? std::aligned_alloc(align, (bytes + align - 1) / align * align)
                                                       : std::malloc(bytes ? bytes : 1);
  if (!out)
    std::abort();
  return out;
}
void *operator new(std::size_t bytes) {
  return count(bytes, 0);
}
void *operator new[](std::size_t bytes) {
  return count(bytes, 0);
}
void *operator new(std::size_t bytes, std::align_val_t align) {
  return count(bytes, static_cast<std::size_t>(align));
}
void *operator new[](std::size_t bytes, std::align_val_t align) {
  return count(bytes, static_cast<std::size_t>(align));
}
void *operator new(std::size_t bytes, const std::nothrow_t &) noexcept {
  return count(bytes, 0);
}
void *operator new[](std::size_t bytes, const std::nothrow_t &) noexcept {
  return count(bytes, 0);
}
void operator delete(void *p) noexcept {
  std::free(p);
}
void operator delete(void *p, const std::nothrow_t &) noexcept {
  std::free(p);
}
void operator delete[](void *p, const std::nothrow_t &) noexcept {
  std::free(p);
}
void operator delete[](void *p) noexcept {
  std::free(p);
}
void operator delete(void *p, std::size_t) noexcept {
  std::free(p);
}
void operator delete[](void *p, std::size_t) noexcept {
  std::free(p);
}
void operator delete(void *p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void *p, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete(void *p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
void operator delete[](void *p, std::size_t, std::align_val_t) noexcept {
  std::free(p);
}
#endif

#endif // KILN_TESTS_JIT_HOTPATHCOUNTS_H
