#include "compiler/pipeline/PassWatch.h"

#include "mlir/Pass/Pass.h"
#include "mlir/Pass/PassInstrumentation.h"

#include <chrono>

using namespace mlir;

namespace kiln {
namespace {

class PassWatch : public PassInstrumentation {
  using Clock = std::chrono::steady_clock;

public:
  PassWatch(PassManager &pm, Stage stage, const PassWatchers &watchers, std::function<std::string()> print)
      : pm(pm), stage(stage), watchers(watchers), print(std::move(print)) {}

  void runBeforePass(Pass *pass, Operation *) override {
    if (!isOwn(pass))
      return;
    watchers.progress.enter(("stage " + passesName(stage) + ", pass ").str().c_str(), nameOf(pass));
    begin = Clock::now();
  }
  void runAfterPass(Pass *pass, Operation *) override { after(pass, /*failed=*/false); }
  void runAfterPassFailed(Pass *pass, Operation *) override { after(pass, /*failed=*/true); }

private:
  bool isOwn(Pass *pass) const {
    return llvm::any_of(pm.getPasses(), [&](Pass &p) { return &p == pass; });
  }

  static std::string textOf(Pass *pass) {
    std::string text;
    llvm::raw_string_ostream os(text);
    pass->printAsTextualPipeline(os);
    return text;
  }

  /// One that only runs others on nested operations has no argument: "func.func(cse)".
  static std::string nameOf(Pass *pass) {
    const llvm::StringRef argument = pass->getArgument();
    return argument.empty() ? textOf(pass) : argument.str();
  }

  void after(Pass *pass, bool failed) {
    if (!isOwn(pass))
      return;
    if (watchers.times)
      watchers.times->push_back({passesName(stage).str(), nameOf(pass),
                                 std::chrono::duration<double, std::milli>(Clock::now() - begin).count()});
    if (!watchers.dumps.passesWanted())
      return;
    std::vector<std::string> rest;
    bool seen = false;
    for (Pass &p : pm.getPasses()) {
      if (seen || (failed && &p == pass))
        rest.push_back(textOf(&p));
      seen |= &p == pass;
    }
    watchers.dumps.pass(stage, nameOf(pass), print(), rest, failed);
  }

  PassManager &pm;
  const Stage stage;
  const PassWatchers watchers;
  const std::function<std::string()> print;
  Clock::time_point begin;
};

} // namespace

void watchPasses(PassManager &pm, Stage stage, const PassWatchers &watchers, std::function<std::string()> print) {
  pm.addInstrumentation(std::make_unique<PassWatch>(pm, stage, watchers, std::move(print)));
}

} // namespace kiln
