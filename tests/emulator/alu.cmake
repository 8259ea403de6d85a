# Arithmetic instructions, one at a time.
kiln_add_test(kiln-emulator-integer-tests SOURCES IntegerTest.cpp CompareTest.cpp DEPS kiln-emulator OPTIMISED)
