# The CPU oracle that executes conversion plans, the fuzzers, and the test of the oracle itself.
kiln_add_library(kiln-layout-oracle
  SOURCES OracleMemory.cpp OracleAccess.cpp OracleChecks.cpp PlanOracle.cpp PlanMutations.cpp RandomLayouts.cpp
  DEPS kiln-layout)
kiln_add_test(kiln-plan-fuzz-tests
  SOURCES PlanFuzzTest.cpp TileFuzzTest.cpp LocalAccessOracleTest.cpp ReductionOracleTest.cpp
  DEPS kiln-layout-oracle OPTIMISED)
kiln_add_test(kiln-plan-mutation-tests SOURCES PlanMutationTest.cpp DEPS kiln-layout-oracle)
