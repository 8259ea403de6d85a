/* c_softmax: softmax of a matrix in the host's memory, through Kiln's C interface. */
#include "kiln/kiln.h"

#include <stdio.h>

int main(void) {
  float x[2][3] = {{1, 2, 3}, {0, 0, 0}}, out[2][3];
  int64_t shape[2] = {2, 3};
  DLTensor in = {x, {kDLCPU, 0}, 2, {2, 32, 1}, shape, NULL, 0}; /* code 2, 32 bits: f32 */
  DLTensor result = in;
  result.data = out;

  kiln_softmax call;
  kiln_softmax_init(&call);
  call.x = &in;
  call.out = &result;
  if (kiln_softmax_run(&call, NULL) != KILN_OK) {
    fprintf(stderr, "%s (%s)\n", kiln_error_message(), kiln_error_remedy());
    return 1;
  }
  for (int row = 0; row < 2; ++row)
    printf("%.4f %.4f %.4f\n", out[row][0], out[row][1], out[row][2]);
  return 0;
}
