// Grid-stride saxpy; softmax and layer norm of one row a block.
extern "C" __global__ void saxpy(float a, const float *x, float *y, int n) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)
    y[i] = a * x[i] + y[i];
}

template <bool MAX> __device__ float blockReduce(float v) {
  __shared__ float partial[32];
  for (int d = 16; d; d >>= 1) {
    float t = __shfl_xor_sync(0xffffffffu, v, d);
    v = MAX ? fmaxf(v, t) : v + t;
  }
  __syncthreads(); // the previous use of `partial` is over
  if ((threadIdx.x & 31) == 0)
    partial[threadIdx.x / 32] = v;
  __syncthreads();
  v = partial[0];
  for (unsigned w = 1; w < blockDim.x / 32; w++)
    v = MAX ? fmaxf(v, partial[w]) : v + partial[w];
  return v;
}

extern "C" __global__ void softmax(const float *in, float *out, int cols) {
  const float *row = in + (long long)blockIdx.x * cols;
  float top = -__int_as_float(0x7f800000), sum = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    top = fmaxf(top, row[c]);
  top = blockReduce<true>(top);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    sum += __expf(row[c] - top);
  sum = blockReduce<false>(sum);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[(long long)blockIdx.x * cols + c] = __fdividef(__expf(row[c] - top), sum);
}

extern "C" __global__ void layerNorm(const float *in, const float *gain, const float *bias, float *out, int cols,
                                     float epsilon) {
  const float *row = in + (long long)blockIdx.x * cols;
  float sum = 0.0f, square = 0.0f;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    sum += row[c];
  float mean = blockReduce<false>(sum) / cols;
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    square += (row[c] - mean) * (row[c] - mean);
  float scale = rsqrtf(blockReduce<false>(square) / cols + epsilon);
  for (int c = threadIdx.x; c < cols; c += blockDim.x)
    out[(long long)blockIdx.x * cols + c] = (row[c] - mean) * scale * gain[c] + bias[c];
}
