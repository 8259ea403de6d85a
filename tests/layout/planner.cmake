# The planner: golden answers, named cases, diagnostics, reductions and scans by value, explained plans.
kiln_add_test(kiln-planner-tests
  SOURCES LayoutTestSupport.cpp GoldenPlannerTest.cpp PlannerTest.cpp PlannerLimitsTest.cpp ReductionTest.cpp ExplainTest.cpp
  DEPS kiln-layout kiln-layout-oracle nlohmann_json::nlohmann_json)
