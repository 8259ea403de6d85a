// A helper process that does what its request says, well or badly.
#include "compiler/codegen/Child.h"
#include "compiler/codegen/Conversation.h"

#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/Support/ErrorHandling.h"

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <unistd.h>

using namespace kiln;

static int overflowStack(volatile int *deep) {
  if (deep && deep[0] < 0)
    return 0; // never
  volatile int here[1024];
  here[0] = deep ? deep[0] + 1 : 0;
  return overflowStack(here) + here[0];
}

static std::string answer(std::string_view request) {
  if (request.starts_with("echo "))
    return std::string(request.substr(5));
  if (request == "null") {
    volatile int *nowhere = nullptr;
    *nowhere = 1;
  }
  if (request == "abort")
    std::abort();
  if (request == "overflow")
    return std::to_string(overflowStack(nullptr));
  if (request == "fatal")
    llvm::report_fatal_error("the test asked for it");
  if (request == "llvm-error") {
    llvm::LLVMContext context; // no handler: LLVM prints and ends the process with status 1
    context.emitError("an error without a handler");
  }
  if (request == "loop")
    for (volatile int i = 0;; i = i + 1) {
    }
  if (request == "sleep")
    for (;;)
      ::pause();
  if (request == "exit")
    std::_Exit(0);
  if (request == "pid")
    return std::to_string(::getpid());
  if (request == "print")
    for (;;)
      std::puts("on and on");
  if (request == "noise") {
    std::puts("on standard output");
    std::fflush(stdout);
    return "still understood";
  }
  if (request == "close") {
    ::close(3); // neither answers nor ends
    for (;;)
      ::pause();
  }
  if (request.starts_with("mark ")) {
    std::FILE *file = std::fopen(std::string(request.substr(5)).c_str(), "w");
    std::fprintf(file, "%d\n", ::getpid());
    std::fclose(file);
    for (;;)
      ::pause();
  }
  if (request == "mask") {
    sigset_t mask;
    ::sigprocmask(SIG_SETMASK, nullptr, &mask);
    struct sigaction action;
    ::sigaction(SIGUSR1, nullptr, &action);
    return std::string(::sigismember(&mask, SIGTERM) ? "blocked" : "open") +
           (action.sa_handler == SIG_DFL ? " default" : " changed");
  }
  return "what?";
}

int main(int argc, char **) {
  if (argc > 1) // a request a line
    return answerRequests([](const std::string &request) { return std::pair(answer(request), true); });
  return serveChild(answer);
}
