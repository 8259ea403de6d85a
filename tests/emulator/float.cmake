# Floating-point instructions, one at a time.
kiln_add_test(kiln-emulator-float-tests
  SOURCES FloatTest.cpp HalfTest.cpp ConvertTest.cpp ApproximateTest.cpp DEPS kiln-emulator OPTIMISED)
