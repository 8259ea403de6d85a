// Arrays in local memory with indices known only at run time.
extern "C" __global__ void insertionSort(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v[12];
  int count = 0;
  for (int j = 0; j < 12; j++) {
    int x = in[(i * 7 + j * 13) % n], k = count++;
    while (k > 0 && v[k - 1] > x) {
      v[k] = v[k - 1];
      k--;
    }
    v[k] = x;
  }
  for (int j = 0; j < 12; j++)
    out[i * 12 + j] = v[j];
}

// A small stack machine: bytes, shorts and doubles in local memory, addresses taken.
__device__ __noinline__ void push(double *stack, int &top, double v) { stack[top++] = v; }

extern "C" __global__ void stackMachine(const unsigned *program, double *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  double stack[10];
  unsigned char visits[4] = {0, 0, 0, 0};
  int top = 0;
  unsigned p = program[i];
  push(stack, top, 1.0);
  push(stack, top, 2.0);
  for (int s = 0; s < 12; s++, p >>= 2) {
    visits[p & 3]++;
    if ((p & 3) == 0 && top < 10)
      push(stack, top, s + 0.5);
    else if ((p & 3) == 1 && top > 2) {
      stack[top - 2] += stack[top - 1];
      top--;
    } else if ((p & 3) == 2)
      stack[top - 1] = -stack[top - 1];
    else
      stack[0] = stack[top - 1] + stack[0];
  }
  out[i] = stack[top - 1] + stack[0] * 16.0 + visits[p & 1] * 4096.0;
}
