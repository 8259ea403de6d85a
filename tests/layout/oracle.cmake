# The CPU oracle that executes conversion plans, the fuzzer, and the test of the oracle itself.
kiln_add_library(kiln-layout-oracle
  SOURCES OracleMemory.cpp OracleAccess.cpp OracleChecks.cpp PlanOracle.cpp
  DEPS kiln-layout)
target_sources(kiln-layout-oracle PRIVATE RandomLayouts.cpp PlanMutations.cpp)
kiln_add_test(layout-plan-fuzz-test SOURCES PlanFuzzTest.cpp DEPS kiln-layout-oracle)
kiln_add_test(layout-plan-mutation-test SOURCES PlanMutationTest.cpp DEPS kiln-layout-oracle)
