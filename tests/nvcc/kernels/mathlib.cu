// nvcc's inlined mathematics, slow paths included (sinf of large arguments uses a table of 2/pi in local memory).
#define UNARY(name, expression)                                                                                        \
  extern "C" __global__ void name(const float *in, float *out, int n) {                                                \
    int i = blockIdx.x * blockDim.x + threadIdx.x;                                                                     \
    if (i < n) {                                                                                                       \
      float x = in[i];                                                                                                 \
      out[i] = expression;                                                                                             \
    }                                                                                                                  \
  }
UNARY(mathExp, expf(x))
UNARY(mathSin, sinf(x))
UNARY(mathLog, logf(x))
UNARY(mathErf, erff(x))
UNARY(mathRsqrt, rsqrtf(x))
UNARY(mathTanh, tanhf(x))
UNARY(mathDivide, 1.5f / x)
UNARY(mathSqrt, sqrtf(x))

extern "C" __global__ void mathPow(const float *in, const float *exponents, float *out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n)
    out[i] = powf(in[i], exponents[i]);
}
