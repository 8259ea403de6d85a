// Shared objects that are no pass plugins for this compiler, made without MLIR's headers.
//   KILN_TEST_ENTRY      it has the entry point
//   KILN_TEST_MARK       the Kiln that it says it is for
//   KILN_TEST_UNDEFINED  it needs a function that does not exist
//   KILN_TEST_FOREIGN    it calls the MLIR of another version
#ifdef KILN_TEST_ENTRY
struct Info {
  unsigned apiVersion;
  const char *name, *version;
  void (*registerPasses)();
};
extern "C" Info mlirGetPassPluginInfo() {
  return {1, "raw", "1", [] {}};
}
#endif
#ifdef KILN_TEST_MARK
extern "C" __attribute__((used)) const char kilnPassPluginMark[];
const char kilnPassPluginMark[] = KILN_TEST_MARK;
#endif
#ifdef KILN_TEST_UNDEFINED
namespace mlir {
void noSuchFunction();
}
extern "C" void callsIt() {
  mlir::noSuchFunction();
}
#endif
#ifdef KILN_TEST_FOREIGN
extern "C" int foreignMlir();
extern "C" int callsForeign() {
  return foreignMlir();
}
#endif
