// out[c][r] = in[r][c] through a padded 32 x 33 tile, 32 x 8 threads.
template <typename T> __device__ void transposeTile(const T *in, T *out, int rows, int cols) {
  __shared__ T tile[32][33];
  int x = blockIdx.x * 32 + threadIdx.x, y = blockIdx.y * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < cols && y + j < rows)
      tile[threadIdx.y + j][threadIdx.x] = in[(y + j) * cols + x];
  __syncthreads();
  x = blockIdx.y * 32 + threadIdx.x;
  y = blockIdx.x * 32 + threadIdx.y;
  for (int j = 0; j < 32; j += 8)
    if (x < rows && y + j < cols)
      out[(y + j) * rows + x] = tile[threadIdx.x][threadIdx.y + j];
}

extern "C" __global__ void transposeFloat(const float *in, float *out, int rows, int cols) {
  transposeTile(in, out, rows, cols);
}
extern "C" __global__ void transposeBytes(const unsigned char *in, unsigned char *out, int rows, int cols) {
  transposeTile(in, out, rows, cols);
}
extern "C" __global__ void transposeDouble(const double *in, double *out, int rows, int cols) {
  transposeTile(in, out, rows, cols);
}
