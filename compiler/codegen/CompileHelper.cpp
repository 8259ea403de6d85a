// kiln-compile-helper LIBRARY: one compile in a process of its own (Child.h).  The request is a KilnCompileRequest
// whose options say isolation "none" or "thread"; the answer a KilnCompileResult.
#include "compiler/codegen/Child.h"
#include "compiler/codegen/CompileMessage.h"

#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

using namespace kiln;

[[noreturn]] static void fail(const std::string &message) {
  std::fprintf(stderr, "kiln-compile-helper: %s\n", message.c_str());
  std::_Exit(2);
}

int main(int argc, char **argv) {
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
