// Control flow that takes lanes apart and brings them together again.
extern "C" __global__ void collatz(const unsigned *in, unsigned *steps, unsigned *peak, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  unsigned v = in[i], count = 0, top = v;
  while (v != 1) {
    v = v & 1 ? 3 * v + 1 : v / 2;
    top = max(top, v);
    count++;
  }
  steps[i] = count;
  peak[i] = top;
}

// Nested loops with break, continue and return inside; the host mirrors it line by line.
extern "C" __global__ void nested(const int *in, int *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n)
    return;
  int v = in[i], acc = 0;
  if (v == 0) {
    out[i] = -1;
    return;
  }
  for (int a = 0; a < (v & 7); a++) {
    if (((v >> a) & 3) == 1)
      continue;
    for (int b = a;; b++) {
      if (b > 12 || ((v >> b) & 5) == 5)
        break;
      acc = acc * 3 + b;
      if ((acc & 0xff) == 0x77) {
        out[i] = acc;
        return;
      }
      switch (acc & 3) {
      case 0:
        acc += v;
        break;
      case 1:
        acc ^= v >> 2; // falls through
      case 2:
        acc -= 7;
        break;
      default:
        goto next;
      }
    }
    acc ^= a << 8;
  next:
    acc += 1;
  }
  do {
    acc = acc * 1103515245 + 12345;
  } while ((acc & 0x3000) != 0);
  out[i] = acc;
}

// Every lane of every warp takes the same lock; hangs where lanes of a warp cannot progress independently.
extern "C" __global__ void laneLock(int *lock, int *counter, int *squares) {
  while (atomicCAS(lock, 0, 1) != 0) {
  }
  __threadfence();
  int old = *(volatile int *)counter;
  *(volatile int *)counter = old + 1;
  *(volatile int *)squares += old * old;
  __threadfence();
  atomicExch(lock, 0);
}

// Lanes of one warp hand a token round in lane order through shared memory.
extern "C" __global__ void tokenRing(int *out) {
  __shared__ volatile int turn;
  if (threadIdx.x == 0)
    turn = 0;
  __syncthreads();
  bool done = false;
  while (!done) {
    if (turn == (int)threadIdx.x) {
      out[blockIdx.x * blockDim.x + threadIdx.x] = (int)(threadIdx.x * 3 + blockIdx.x);
      __threadfence_block();
      turn = turn + 1;
      done = true;
    }
  }
}
