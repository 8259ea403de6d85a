/* Calls through kiln/kiln.h as a C99 program: attention and softmax on the emulator against loops in double. */
#include "kiln/kiln.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { batch = 1, rows = 20, keys = 35, heads = 2, dim = 16, columns = 70 };

static int failures;

static void expect(int holds, const char *what) {
  if (holds)
    return;
  ++failures;
  fprintf(stderr, "not so: %s: '%s' '%s'\n", what, kiln_error_message(), kiln_error_remedy());
}

static float randomValue(void) {
  static uint32_t state = 12345;
  state = state * 1664525u + 1013904223u;
  return (float)(state >> 8) / 8388608.0f - 1.0f;
}

/* bfloat16 as its bits, rounded towards zero. */
static uint16_t bits(float value) {
  uint32_t all;
  memcpy(&all, &value, sizeof all);
  return (uint16_t)(all >> 16);
}

static double valueOf(uint16_t half) {
  const uint32_t all = (uint32_t)half << 16;
  float value;
  memcpy(&value, &all, sizeof value);
  return (double)value;
}

static DLTensor halves(DLTensor t) {
  t.dtype.code = 4, t.dtype.bits = 16;
  return t;
}

static DLTensor dense(void *data, int rank, int64_t *shape) {
  DLTensor t;
  memset(&t, 0, sizeof t);
  t.data = data;
  t.device.device_type = kDLCPU;
  t.ndim = rank;
  t.dtype.code = 2, t.dtype.bits = 32, t.dtype.lanes = 1;
  t.shape = shape;
  return t;
}

static void softmax(void) {
  static float x[rows][columns], out[rows][columns];
  int64_t shape[2] = {rows, columns};
  DLTensor in = dense(x, 2, shape), result = dense(out, 2, shape);
  kiln_softmax call;
  kiln_options options;
  size_t bytes = 1;
  double worst = 0;
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      x[r][c] = 4 * randomValue(), out[r][c] = NAN;
  kiln_softmax_init(&call);
  kiln_options_init(&options);
  expect(kiln_softmax_run(&call, &options) == KILN_INVALID_ARGUMENT && strstr(kiln_error_message(), "'x'"),
         "a missing tensor is named");
  call.x = &in;
  call.out = &result;
  expect(kiln_softmax_workspace(&call, &bytes) == KILN_OK && bytes == 0, "the host's memory needs no workspace");
  expect(kiln_softmax_run(&call, &options) == KILN_OK, "softmax runs");
  for (int r = 0; r < rows; ++r) {
    double sum = 0;
    for (int c = 0; c < columns; ++c)
      sum += exp((double)x[r][c]);
    for (int c = 0; c < columns; ++c) {
      const double off = fabs(exp((double)x[r][c]) / sum - (double)out[r][c]);
      if (!(off <= worst))
        worst = off;
    }
  }
  expect(worst < 1e-6, "softmax is right");
}

static void attention(void) {
  static uint16_t q[rows][heads][dim], k[keys][heads][dim], v[keys][heads][dim];
  static float lse[heads][rows];
  /* The result's heads lie apart, and what is between them is the caller's. */
  static uint16_t o[rows][heads][2 * dim];
  int64_t shapeQ[4] = {batch, rows, heads, dim}, shapeK[4] = {batch, keys, heads, dim},
          shapeLse[3] = {batch, heads, rows};
  int64_t stridesO[4] = {rows * heads * 2 * dim, heads * 2 * dim, 2 * dim, 1};
  DLTensor tq = dense(q, 4, shapeQ), tk = dense(k, 4, shapeK), tv = dense(v, 4, shapeK), to = dense(o, 4, shapeQ);
  DLTensor tl = dense(lse, 3, shapeLse);
  kiln_attention call;
  kiln_output outputs[4];
  size_t count = 4;
  double worst = 0;
  for (int r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h)
      for (int d = 0; d < 2 * dim; ++d)
        o[r][h][d] = 77;
  for (int h = 0; h < heads; ++h)
    for (int d = 0; d < dim; ++d) {
      for (int r = 0; r < rows; ++r)
        q[r][h][d] = bits(randomValue());
      for (int r = 0; r < keys; ++r)
        k[r][h][d] = bits(randomValue()), v[r][h][d] = bits(randomValue());
    }
  tq = halves(tq), tk = halves(tk), tv = halves(tv), to = halves(to);
  to.strides = stridesO;
  kiln_attention_init(&call);
  call.q = &tq, call.k = &tk, call.v = &tv, call.lse = KILN_ASKED;
  call.causal = 1;
  call.scale = 0.5;
  expect(kiln_attention_outputs(&call, outputs, &count) == KILN_OK && count == 2, "attention has two outputs");
  expect(!strcmp(outputs[0].name, "o") && outputs[0].ndim == 4 && outputs[0].shape[1] == rows &&
             outputs[0].dtype.code == 4,
         "o is described");
  expect(!strcmp(outputs[1].name, "lse") && outputs[1].ndim == 3, "lse is described");
  count = 1;
  expect(kiln_attention_outputs(&call, outputs, &count) == KILN_INVALID_ARGUMENT && count == 2,
         "too little room is refused");
  call.o = &to;
  expect(kiln_attention_run(&call, NULL) == KILN_INVALID_ARGUMENT && strstr(kiln_error_message(), "'lse'"),
         "KILN_ASKED is no tensor to write to");
  call.lse = &tl;
  expect(kiln_attention_run(&call, NULL) == KILN_OK, "attention runs");
  for (int r = 0; r < rows; ++r)
    for (int h = 0; h < heads; ++h) {
      double p[keys], sum = 0;
      const int visible = r + keys - rows + 1; /* the last row sees all keys */
      for (int c = 0; c < visible; ++c) {
        double s = 0;
        for (int d = 0; d < dim; ++d)
          s += valueOf(q[r][h][d]) * valueOf(k[c][h][d]);
        sum += p[c] = exp(0.5 * s);
      }
      for (int d = 0; d < dim; ++d) {
        double wanted = 0;
        for (int c = 0; c < visible; ++c)
          wanted += p[c] / sum * valueOf(v[c][h][d]);
        const double off = fabs(wanted - valueOf(o[r][h][d]));
        if (!(off <= worst))
          worst = off;
        if (o[r][h][dim + d] != 77)
          worst = 1e9;
      }
      if (!(fabs(log(sum) - (double)lse[h][r]) < 1e-5))
        worst = 1e9;
    }
  expect(worst < 8e-3, "attention is right, and nothing between its rows was written");
}

int main(void) {
  expect(kiln_version() >= 0x100, "there is a version");
  expect(strstr(kiln_describe(), "\"attention\"") != NULL, "operations describe themselves");
  expect(!strcmp(kiln_error_message(), ""), "nothing was wrong yet");
  softmax();
  attention();
  if (!failures)
    puts("all as it should be");
  return failures != 0;
}
