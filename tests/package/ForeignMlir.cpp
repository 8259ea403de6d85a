extern "C" int foreignMlir() {
  return 21;
}
