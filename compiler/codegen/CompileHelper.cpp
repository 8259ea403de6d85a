// kiln-compile-helper LIBRARY: one compile in a process of its own (Child.h).  The request is a KilnCompileRequest
// whose options say isolation "none" or "thread"; the answer a KilnCompileResult.
#include "compiler/codegen/Child.h"
#include "compiler/codegen/CompileMessage.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <new>
#include <sys/resource.h>

using namespace kiln;

/// Of address space, LLVM's own code and data included.  A compile that needs more must not take the machine with it.
/// The sanitizers reserve terabytes: no limit with them.
static constexpr rlim_t maxMemoryBytes =
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
    RLIM_INFINITY;
#else
    rlim_t(8) << 30;
#endif

[[noreturn]] static void fail(const std::string &message) {
  std::fprintf(stderr, "kiln-compile-helper: %s\n", message.c_str());
  std::_Exit(2);
}

/// Before anything is allocated: the heap is full.
[[noreturn]] static void onFullMemory() {
  std::fputs("kiln-compile-helper: out of memory: the compile needs more than 8 GiB\n", stderr);
  std::_Exit(3);
}

int main(int argc, char **argv) {
  rlimit memory{};
  if (::getrlimit(RLIMIT_AS, &memory) == 0 && memory.rlim_cur > maxMemoryBytes) {
    memory.rlim_cur = maxMemoryBytes;
    ::setrlimit(RLIMIT_AS, &memory);
  }
  std::set_new_handler(onFullMemory);
  if (argc != 2)
    fail("takes one argument, the path of libkiln-compiler; the compiler starts it, not a user");
  return serveChild([&](std::string_view bytes) {
    void *library = ::dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (!library)
      fail(::dlerror());
    auto *entry = reinterpret_cast<decltype(&kilnCompilerTable)>(::dlsym(library, "kilnCompilerTable"));
    const KilnCompilerTable *table = entry ? entry() : nullptr;
    if (!table || table->abi != KILN_COMPILER_ABI)
      fail(std::string(argv[1]) + " is not the libkiln-compiler of this version");
    Result<KilnCompileRequest> request = decodeRequest(bytes);
    if (!request.ok())
      fail(request.status().toString());
    KilnCompileResult *result = table->compile(&*request);
    std::string answer = encodeResult(*result);
    table->release(result);
    return answer;
  });
}
