/* c_kernel: a kernel of the caller's own, as text, through Kiln's C interface.  c_kernel FILE: scale.mlir next to it.
 */
#include "kiln/kiln.h"

#include <stdio.h>

static int failed(void) {
  fprintf(stderr, "%s (%s)\n", kiln_error_message(), kiln_error_remedy());
  return 1;
}

int main(int argc, char **argv) {
  static char text[1 << 16];
  FILE *const file = argc == 2 ? fopen(argv[1], "rb") : NULL;
  if (!file) {
    fprintf(stderr, "usage: c_kernel scale.mlir\n");
    return 2;
  }
  const size_t size = fread(text, 1, sizeof text, file);
  fclose(file);

  float x[600], out[600];
  for (int i = 0; i < 600; ++i)
    x[i] = (float)i;
  int64_t shape[1] = {600};
  DLTensor in = {x, {kDLCPU, 0}, 1, {2, 32, 1}, shape, NULL, 0}; /* code 2, 32 bits: f32 */
  DLTensor result = in;
  result.data = out;

  kiln_kernel *scale;
  if (kiln_kernel_open(text, size, NULL, in.device, &scale) != KILN_OK)
    return failed();
  const kiln_value arguments[4] = {{KILN_TENSOR, {.tensor = &in}},
                                   {KILN_TENSOR, {.tensor = &result}},
                                   {KILN_NUMBER, {.number = 0.5}},
                                   {KILN_WHOLE, {.whole = 600}}};
  const uint32_t grid[3] = {2, 1, 1}; /* a program of scale.mlir has 512 elements */
  if (kiln_kernel_launch(scale, grid, arguments, 4, NULL) != KILN_OK)
    return failed();
  kiln_kernel_close(scale);
  printf("%.1f %.1f %.1f\n", out[1], out[2], out[599]);
  return 0;
}
