# Matrix instructions.
kiln_add_test(kiln-emulator-matrix-tests
  SOURCES MatrixBytesTest.cpp MatrixModelTest.cpp MatrixMoveTest.cpp MmaFormsTest.cpp MmaTest.cpp WmmaTest.cpp
  DEPS kiln-ptx-harness kiln-emulator OPTIMISED)
