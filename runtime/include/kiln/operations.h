/*===- operations.h - The operations of the library for C ---------------------===
 *
 * Made by kiln-door-header of the operations' own tables; do not edit.  Of each operation NAME:
 *
 *   void kiln_NAME_init(struct kiln_NAME *call)         nothing is given
 *   kiln_status kiln_NAME_run(call, options)            options may be NULL
 *   kiln_status kiln_NAME_workspace(call, &bytes)       that the caller may bring
 *   kiln_status kiln_NAME_outputs(call, outputs, &count)  in: how many fit; out: how many there are
 *
 * Tensors that are not optional must be given.  Options that are NaN, KILN_NOT_GIVEN or NULL have their defaults; flags
 * are 0 or 1.
 *
 *===----------------------------------------------------------------------===*/
#ifndef KILN_OPERATIONS_H
#define KILN_OPERATIONS_H

#ifdef __cplusplus
extern "C" {
#endif

/* out = x, for any strides */
typedef struct kiln_copy {
  size_t size;
  /* input: up to four dimensions, any type */
  const DLTensor *x;
  /* output: of x's shape and type */
  const DLTensor *out;
} kiln_copy;
void kiln_copy_init(kiln_copy *call);
kiln_status kiln_copy_run(const kiln_copy *call, const kiln_options *options);
kiln_status kiln_copy_workspace(const kiln_copy *call, size_t *bytes);
kiln_status kiln_copy_outputs(const kiln_copy *call, kiln_output *outputs, size_t *count);

/* out = x + y, element by element */
typedef struct kiln_add {
  size_t size;
  /* input: up to four dimensions, f32, f16 or bf16 */
  const DLTensor *x;
  /* input: of x's shape and type */
  const DLTensor *y;
  /* output: of x's shape and type */
  const DLTensor *out;
} kiln_add;
void kiln_add_init(kiln_add *call);
kiln_status kiln_add_run(const kiln_add *call, const kiln_options *options);
kiln_status kiln_add_workspace(const kiln_add *call, size_t *bytes);
kiln_status kiln_add_outputs(const kiln_add *call, kiln_output *outputs, size_t *count);

/* out[j, i] = x[i, j], for any strides */
typedef struct kiln_transpose {
  size_t size;
  /* input: rows x columns, any type */
  const DLTensor *x;
  /* output: columns x rows, of x's type */
  const DLTensor *out;
} kiln_transpose;
void kiln_transpose_init(kiln_transpose *call);
kiln_status kiln_transpose_run(const kiln_transpose *call, const kiln_options *options);
kiln_status kiln_transpose_workspace(const kiln_transpose *call, size_t *bytes);
kiln_status kiln_transpose_outputs(const kiln_transpose *call, kiln_output *outputs, size_t *count);

/* out[r, :] = exp(x[r, :] - max) / sum, row by row */
typedef struct kiln_softmax {
  size_t size;
  /* input: columns, or rows x columns; f32, f16 or bf16 */
  const DLTensor *x;
  /* output: of x's shape and type */
  const DLTensor *out;
} kiln_softmax;
void kiln_softmax_init(kiln_softmax *call);
kiln_status kiln_softmax_run(const kiln_softmax *call, const kiln_options *options);
kiln_status kiln_softmax_workspace(const kiln_softmax *call, size_t *bytes);
kiln_status kiln_softmax_outputs(const kiln_softmax *call, kiln_output *outputs, size_t *count);

/* out = (x - mean) / sqrt(variance + eps) * weight + bias, row by row */
typedef struct kiln_layer_norm {
  size_t size;
  /* input: columns, or rows x columns; f32, f16 or bf16 */
  const DLTensor *x;
  /* input, optional: columns; with bias */
  const DLTensor *weight;
  /* input, optional: columns; with weight */
  const DLTensor *bias;
  /* output: of x's shape and type */
  const DLTensor *out;
  /* added to the variance */
  double eps;
} kiln_layer_norm;
void kiln_layer_norm_init(kiln_layer_norm *call);
kiln_status kiln_layer_norm_run(const kiln_layer_norm *call, const kiln_options *options);
kiln_status kiln_layer_norm_workspace(const kiln_layer_norm *call, size_t *bytes);
kiln_status kiln_layer_norm_outputs(const kiln_layer_norm *call, kiln_output *outputs, size_t *count);

/* out[r, j] = x[r, 0] + .. + x[r, j], row by row */
typedef struct kiln_cumsum {
  size_t size;
  /* input: columns, or rows x columns; f32, f16 or bf16 */
  const DLTensor *x;
  /* output: of x's shape and type */
  const DLTensor *out;
} kiln_cumsum;
void kiln_cumsum_init(kiln_cumsum *call);
kiln_status kiln_cumsum_run(const kiln_cumsum *call, const kiln_options *options);
kiln_status kiln_cumsum_workspace(const kiln_cumsum *call, size_t *bytes);
kiln_status kiln_cumsum_outputs(const kiln_cumsum *call, kiln_output *outputs, size_t *count);

/* out = the sum of all elements of x, in two launches */
typedef struct kiln_reduce_sum {
  size_t size;
  /* input: any shape, f32, f16 or bf16 */
  const DLTensor *x;
  /* output: one element of x's type */
  const DLTensor *out;
} kiln_reduce_sum;
void kiln_reduce_sum_init(kiln_reduce_sum *call);
kiln_status kiln_reduce_sum_run(const kiln_reduce_sum *call, const kiln_options *options);
kiln_status kiln_reduce_sum_workspace(const kiln_reduce_sum *call, size_t *bytes);
kiln_status kiln_reduce_sum_outputs(const kiln_reduce_sum *call, kiln_output *outputs, size_t *count);

/* o = softmax(mask(softcap(scale q k^T) + alibi + bias)) v for every head; lse: the softmax's logarithm */
typedef struct kiln_attention {
  size_t size;
  /* input, optional: B x Sq x H x D, f16, bf16 or e4m3; other layouts by --layout */
  const DLTensor *q;
  /* input, optional: B x Sk x Hk x D */
  const DLTensor *k;
  /* input, optional: B x Sk x Hk x Dv */
  const DLTensor *v;
  /* input, optional: instead of k and v: B x Sk x 2 x Hk x D */
  const DLTensor *kv;
  /* input, optional: instead of all three: B x S x 3 x H x D, or with --heads S x B x (H + 2 Hk) x D */
  const DLTensor *qkv;
  /* input, optional: H, f32: a logit of each head that has no value */
  const DLTensor *sink;
  /* input, optional: H or B x H, f32: slopes */
  const DLTensor *alibi;
  /* input, optional: B x H x Sq x Sk, each of them or 1, f32 or 16 bits: added to the scores */
  const DLTensor *bias;
  /* input, optional: B + 1, int32: where each sequence's queries start */
  const DLTensor *cu_seqlens_q;
  /* input, optional: B + 1, int32: where each sequence's keys start */
  const DLTensor *cu_seqlens_k;
  /* input, optional: B, int32: how many queries of each sequence count */
  const DLTensor *seqused_q;
  /* input, optional: B, int32: how many keys of each sequence count */
  const DLTensor *seqused_k;
  /* input, optional: B x Hk, f32: what e4m3 numbers of q are multiplied by */
  const DLTensor *q_descale;
  /* input, optional: B x Hk, f32: the same of k */
  const DLTensor *k_descale;
  /* input, optional: B x Hk, f32: the same of v */
  const DLTensor *v_descale;
  /* output: as q, with the columns of v; bf16 for e4m3 */
  const DLTensor *o;
  /* output, optional: B x H x Sq, packed H x T, f32 */
  const DLTensor *lse;
  /* how q, k and v lie in memory; one of bshd_bshd_bshd, sbhd_sbhd_sbhd, bhsd_bhsd_bhsd, thd_thd_thd,
     sbhd_bshd_bshd, bshd_sbhd_sbhd, thd_bshd_bshd, thd_sbhd_sbhd, bshd_bs2hd, sbhd_sb2hd, thd_t2hd, bshd_bsh2d,
     sbhd_sbh2d, thd_th2d, bs3hd, sb3hd, t3hd, bsh3d, sbh3d, th3d, flat_gqa, bs_flat_gqa, t_flat_gqa, grouped_gqa,
     bs_grouped_gqa, t_grouped_gqa */
  const char *layout;
  /* H,Hk: of q and of k, for the flat layouts */
  int64_t heads;
  /*  */
  int64_t key_heads;
  /* of a pair in place of x, its scaled score: an expression */
  const char *score;
  /* which pairs there are: an expression over b, h, i, j and aux tensors */
  const char *mask;
  /* ROWSxKEYS: blocks of so many pairs that the masks hide are not visited */
  const char *block_mask;
  /* a query sees no key after its own */
  int64_t causal;
  /* where the diagonal starts if q and k differ in length; one of bottom_right, top_left */
  const char *align;
  /* L,R: keys on each side that a query sees; -1: all */
  int64_t window_left;
  /*  */
  int64_t window_right;
  /* where the first row of q stands among the keys, in place of --align */
  int64_t position_offset;
  /* scores become X tanh(score / X); 0: they stay */
  double softcap;
  /* of the scores; default 1 / sqrt(D) */
  double scale;
  /* what functions read outside of aux stops the kernel; default: on the emulator */
  int64_t checked;
  /* share of the probabilities that become 0; the others grow by 1 / (1 - P) */
  double dropout_p;
  /* with --dropout-offset: which ones become 0 */
  int64_t dropout_seed;
  /* with --dropout-seed: which ones become 0 */
  int64_t dropout_offset;
  /* as many programs as run at the same time take tile after tile */
  int64_t persistent;
  /* rows of a program's tile; 0: chosen */
  int64_t block_m;
  /* columns of a program's tile, attention: keys of a step; 0: chosen */
  int64_t block_n;
  /* of a program; 0: chosen */
  int64_t warps;
  /* tiles in flight; 0: chosen */
  int64_t stages;
} kiln_attention;
void kiln_attention_init(kiln_attention *call);
kiln_status kiln_attention_run(const kiln_attention *call, const kiln_options *options);
kiln_status kiln_attention_workspace(const kiln_attention *call, size_t *bytes);
kiln_status kiln_attention_outputs(const kiln_attention *call, kiln_output *outputs, size_t *count);

/* gradients of attention by q, k, v, the bias and the sink */
typedef struct kiln_attention_backward {
  size_t size;
  /* input: B x Sq x H x D, f16 or bf16; other layouts by --layout */
  const DLTensor *q;
  /* input: B x Sk x Hk x D */
  const DLTensor *k;
  /* input: B x Sk x Hk x Dv */
  const DLTensor *v;
  /* input: what attention gave for these inputs */
  const DLTensor *o;
  /* input: f32: its lse */
  const DLTensor *lse;
  /* input: as o: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: as lse: the loss's gradient by lse */
  const DLTensor *dlse;
  /* input, optional: H, f32: a logit of each head that has no value */
  const DLTensor *sink;
  /* input, optional: H or B x H, f32: slopes */
  const DLTensor *alibi;
  /* input, optional: B x H x Sq x Sk, each of them or 1, f32 or 16 bits: added to the scores */
  const DLTensor *bias;
  /* input, optional: B + 1, int32: where each sequence's queries start */
  const DLTensor *cu_seqlens_q;
  /* input, optional: B + 1, int32: where each sequence's keys start */
  const DLTensor *cu_seqlens_k;
  /* input, optional: B, int32: how many queries of each sequence count */
  const DLTensor *seqused_q;
  /* input, optional: B, int32: how many keys of each sequence count */
  const DLTensor *seqused_k;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output, optional: H, f32: the gradient by the sink */
  const DLTensor *dsink;
  /* output, optional: as bias: the gradient by it */
  const DLTensor *dbias;
  /* how q, k and v lie in memory, and dq, dk and dv as they; one of bshd_bshd_bshd, sbhd_sbhd_sbhd,
     bhsd_bhsd_bhsd, thd_thd_thd, sbhd_bshd_bshd, bshd_sbhd_sbhd, thd_bshd_bshd, thd_sbhd_sbhd */
  const char *layout;
  /* of a pair in place of x, its scaled score: an expression */
  const char *score;
  /* which pairs there are: an expression over b, h, i, j and aux tensors */
  const char *mask;
  /* ROWSxKEYS: blocks of so many pairs that the masks hide are not visited */
  const char *block_mask;
  /* a query sees no key after its own */
  int64_t causal;
  /* where the diagonal starts if q and k differ in length; one of bottom_right, top_left */
  const char *align;
  /* L,R: keys on each side that a query sees; -1: all */
  int64_t window_left;
  /*  */
  int64_t window_right;
  /* where the first row of q stands among the keys, in place of --align */
  int64_t position_offset;
  /* scores become X tanh(score / X); 0: they stay */
  double softcap;
  /* of the scores; default 1 / sqrt(D) */
  double scale;
  /* what functions read outside of aux stops the kernel; default: on the emulator */
  int64_t checked;
  /* share of the probabilities that become 0; the others grow by 1 / (1 - P) */
  double dropout_p;
  /* with --dropout-offset: which ones become 0 */
  int64_t dropout_seed;
  /* with --dropout-seed: which ones become 0 */
  int64_t dropout_offset;
  /* the same bits in every run, of dq too: sums of dq have one order */
  int64_t deterministic;
  /* dk, dv: rows of a step; 0: chosen */
  int64_t keys_block_m;
  /* dk, dv: keys of a program; 0: chosen */
  int64_t keys_block_n;
  /* dk, dv: of a program; 0: chosen */
  int64_t keys_warps;
  /* dk, dv: steps in flight; 0: chosen */
  int64_t keys_stages;
  /* dq: rows of a program; 0: chosen */
  int64_t queries_block_m;
  /* dq: keys of a step; 0: chosen */
  int64_t queries_block_n;
  /* dq: of a program; 0: chosen */
  int64_t queries_warps;
  /* dq: steps in flight; 0: chosen */
  int64_t queries_stages;
} kiln_attention_backward;
void kiln_attention_backward_init(kiln_attention_backward *call);
kiln_status kiln_attention_backward_run(const kiln_attention_backward *call, const kiln_options *options);
kiln_status kiln_attention_backward_workspace(const kiln_attention_backward *call, size_t *bytes);
kiln_status kiln_attention_backward_outputs(const kiln_attention_backward *call, kiln_output *outputs, size_t *count);

/* attention of few queries over a cache of keys and values, contiguous or in pages; appends new rows to it */
typedef struct kiln_attention_decode {
  size_t size;
  /* input: B x Sq x H x D, f16, bf16 or e4m3 */
  const DLTensor *q;
  /* input: B or more x capacity x Hk x D; with a page table pages x page size x Hk x D */
  const DLTensor *k_cache;
  /* input: as k_cache, with Dv columns */
  const DLTensor *v_cache;
  /* input, optional: B, int32: how many rows of the cache are keys of each sequence; default: all */
  const DLTensor *cache_seqlens;
  /* input, optional: B x Snew x Hk x D: keys that come after the cached ones */
  const DLTensor *k_new;
  /* input, optional: B x Snew x Hk x Dv */
  const DLTensor *v_new;
  /* input, optional: n x r / 2, f32: a row for each position; rotates r columns of q and k_new */
  const DLTensor *rotary_cos;
  /* input, optional: n x r / 2, f32 */
  const DLTensor *rotary_sin;
  /* input, optional: B x pages of a sequence, int32: pages of the cache */
  const DLTensor *page_table;
  /* input, optional: B, int32: where each sequence lies in the cache; default: in order */
  const DLTensor *cache_batch_idx;
  /* input, optional: B, int32: rows of the cache before each sequence's first key */
  const DLTensor *leftpad_k;
  /* input, optional: H, f32: a logit of each head that has no value */
  const DLTensor *sink;
  /* input, optional: H or B x H, f32: slopes */
  const DLTensor *alibi;
  /* input, optional: B x Hk, f32: what e4m3 numbers of q are multiplied by */
  const DLTensor *q_descale;
  /* input, optional: B x Hk, f32: the same of keys, new ones included */
  const DLTensor *k_descale;
  /* input, optional: B x Hk, f32: the same of values */
  const DLTensor *v_descale;
  /* output: as q, with the columns of v; bf16 for e4m3 */
  const DLTensor *o;
  /* output, optional: B x H x Sq, f32 */
  const DLTensor *lse;
  /* output, optional: k_cache with the new rows */
  const DLTensor *k_cache_after;
  /* output, optional: v_cache with the new rows */
  const DLTensor *v_cache_after;
  /* a query sees no key after its own; the last one stands at the last key */
  int64_t causal;
  /* L,R: keys on each side that a query sees; -1: all */
  int64_t window_left;
  /*  */
  int64_t window_right;
  /* scores become X tanh(score / X); 0: they stay */
  double softcap;
  /* of the scores; default 1 / sqrt(D) */
  double scale;
  /* columns 2 t and 2 t + 1 are rotated together, not t and t + r / 2 */
  int64_t rotary_interleaved;
  /* an upper bound of a sequence's keys, for the choice of splits; 0: the room */
  int64_t max_keys;
  /* programs that share the keys of a row, 1 to 256; 0: chosen */
  int64_t splits;
  /* entries of tables that cannot be stop the kernel with a message */
  int64_t checked;
  /* rows of a program's tile; 0: chosen */
  int64_t block_m;
  /* columns of a program's tile, attention: keys of a step; 0: chosen */
  int64_t block_n;
  /* of a program; 0: chosen */
  int64_t warps;
  /* tiles in flight; 0: chosen */
  int64_t stages;
} kiln_attention_decode;
void kiln_attention_decode_init(kiln_attention_decode *call);
kiln_status kiln_attention_decode_run(const kiln_attention_decode *call, const kiln_options *options);
kiln_status kiln_attention_decode_workspace(const kiln_attention_decode *call, size_t *bytes);
kiln_status kiln_attention_decode_outputs(const kiln_attention_decode *call, kiln_output *outputs, size_t *count);

/* out = activation(scale * a x b + bias) */
typedef struct kiln_matmul {
  size_t size;
  /* input: M x K, or B x M x K; f32, f16, bf16, e4m3, e5m2, i8 */
  const DLTensor *a;
  /* input: K x N, or B x K x N; of a's type */
  const DLTensor *b;
  /* input, optional: N, of out's type */
  const DLTensor *bias;
  /* output: M x N, or B x M x N; of a's type, of 8-bit floats f32, of i8 i32 */
  const DLTensor *out;
  /* of the product */
  double scale;
  /* after scale and bias; one of none, relu, gelu, silu */
  const char *activation;
  /* of f32; one of ieee, tf32, tf32x3 */
  const char *precision;
  /* programs that share K; 0: as many as keep the GPU busy */
  int64_t splits;
  /* at most so many, each of which takes tile after tile; 0: chosen */
  int64_t programs;
  /* rows of a program's tile; 0: chosen */
  int64_t block_m;
  /* columns of a program's tile, attention: keys of a step; 0: chosen */
  int64_t block_n;
  /* depth of a step; 0: chosen */
  int64_t block_k;
  /* of a program; 0: chosen */
  int64_t warps;
  /* tiles in flight; 0: chosen */
  int64_t stages;
  /* another type of out; one of f32, f16, bf16 */
  const char *out_dtype;
  /* they add in any order, so that runs may differ in their last bits */
  int64_t atomic;
  /* a is K x M */
  int64_t transpose_a;
  /* b is N x K */
  int64_t transpose_b;
} kiln_matmul;
void kiln_matmul_init(kiln_matmul *call);
kiln_status kiln_matmul_run(const kiln_matmul *call, const kiln_options *options);
kiln_status kiln_matmul_workspace(const kiln_matmul *call, size_t *bytes);
kiln_status kiln_matmul_outputs(const kiln_matmul *call, kiln_output *outputs, size_t *count);

/* the DPLR delta rule: a state that decays, is corrected and read, by chunks */
typedef struct kiln_dplr {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_dplr;
void kiln_dplr_init(kiln_dplr *call);
kiln_status kiln_dplr_run(const kiln_dplr *call, const kiln_options *options);
kiln_status kiln_dplr_workspace(const kiln_dplr *call, size_t *bytes);
kiln_status kiln_dplr_outputs(const kiln_dplr *call, kiln_output *outputs, size_t *count);

/* gradients of the DPLR delta rule by all its inputs */
typedef struct kiln_dplr_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what dplr saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as a */
  const DLTensor *da;
  /* output: as b */
  const DLTensor *db;
  /* output: as g */
  const DLTensor *dg;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_dplr_backward;
void kiln_dplr_backward_init(kiln_dplr_backward *call);
kiln_status kiln_dplr_backward_run(const kiln_dplr_backward *call, const kiln_options *options);
kiln_status kiln_dplr_backward_workspace(const kiln_dplr_backward *call, size_t *bytes);
kiln_status kiln_dplr_backward_outputs(const kiln_dplr_backward *call, kiln_output *outputs, size_t *count);

/* the DPLR delta rule token by token, for decoding */
typedef struct kiln_dplr_step {
  size_t size;
  /* input: B x T x H x K, f32, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
} kiln_dplr_step;
void kiln_dplr_step_init(kiln_dplr_step *call);
kiln_status kiln_dplr_step_run(const kiln_dplr_step *call, const kiln_options *options);
kiln_status kiln_dplr_step_workspace(const kiln_dplr_step *call, size_t *bytes);
kiln_status kiln_dplr_step_outputs(const kiln_dplr_step *call, kiln_output *outputs, size_t *count);

/* RWKV7: the DPLR delta rule under its own names */
typedef struct kiln_rwkv7 {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *r;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as r: natural logarithms of decays, at most 0 */
  const DLTensor *w;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_rwkv7;
void kiln_rwkv7_init(kiln_rwkv7 *call);
kiln_status kiln_rwkv7_run(const kiln_rwkv7 *call, const kiln_options *options);
kiln_status kiln_rwkv7_workspace(const kiln_rwkv7 *call, size_t *bytes);
kiln_status kiln_rwkv7_outputs(const kiln_rwkv7 *call, kiln_output *outputs, size_t *count);

/* gradients of RWKV7 by all its inputs */
typedef struct kiln_rwkv7_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *r;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as r: natural logarithms of decays, at most 0 */
  const DLTensor *w;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what rwkv7 saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as r */
  const DLTensor *dr;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as a */
  const DLTensor *da;
  /* output: as b */
  const DLTensor *db;
  /* output: as w */
  const DLTensor *dw;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_rwkv7_backward;
void kiln_rwkv7_backward_init(kiln_rwkv7_backward *call);
kiln_status kiln_rwkv7_backward_run(const kiln_rwkv7_backward *call, const kiln_options *options);
kiln_status kiln_rwkv7_backward_workspace(const kiln_rwkv7_backward *call, size_t *bytes);
kiln_status kiln_rwkv7_backward_outputs(const kiln_rwkv7_backward *call, kiln_output *outputs, size_t *count);

/* RWKV7 token by token, for decoding */
typedef struct kiln_rwkv7_step {
  size_t size;
  /* input: B x T x H x K, f32, f16 or bf16 */
  const DLTensor *r;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input: B x T x H x K, f32 or as r: natural logarithms of decays, at most 0 */
  const DLTensor *w;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 */
  double scale;
} kiln_rwkv7_step;
void kiln_rwkv7_step_init(kiln_rwkv7_step *call);
kiln_status kiln_rwkv7_step_run(const kiln_rwkv7_step *call, const kiln_options *options);
kiln_status kiln_rwkv7_step_workspace(const kiln_rwkv7_step *call, size_t *bytes);
kiln_status kiln_rwkv7_step_outputs(const kiln_rwkv7_step *call, kiln_output *outputs, size_t *count);

/* the IPLR delta rule: DPLR whose state does not decay */
typedef struct kiln_iplr {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
} kiln_iplr;
void kiln_iplr_init(kiln_iplr *call);
kiln_status kiln_iplr_run(const kiln_iplr *call, const kiln_options *options);
kiln_status kiln_iplr_workspace(const kiln_iplr *call, size_t *bytes);
kiln_status kiln_iplr_outputs(const kiln_iplr *call, kiln_output *outputs, size_t *count);

/* gradients of the IPLR delta rule by all its inputs */
typedef struct kiln_iplr_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K: reads the state before it decays */
  const DLTensor *a;
  /* input: B x T x H x K: where what was read is added */
  const DLTensor *b;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what iplr saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as a */
  const DLTensor *da;
  /* output: as b */
  const DLTensor *db;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
} kiln_iplr_backward;
void kiln_iplr_backward_init(kiln_iplr_backward *call);
kiln_status kiln_iplr_backward_run(const kiln_iplr_backward *call, const kiln_options *options);
kiln_status kiln_iplr_backward_workspace(const kiln_iplr_backward *call, size_t *bytes);
kiln_status kiln_iplr_backward_outputs(const kiln_iplr_backward *call, kiln_output *outputs, size_t *count);

/* the delta rule with a gate for each channel (KDA) */
typedef struct kiln_kda {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_kda;
void kiln_kda_init(kiln_kda *call);
kiln_status kiln_kda_run(const kiln_kda *call, const kiln_options *options);
kiln_status kiln_kda_workspace(const kiln_kda *call, size_t *bytes);
kiln_status kiln_kda_outputs(const kiln_kda *call, kiln_output *outputs, size_t *count);

/* gradients of the delta rule with a gate for each channel */
typedef struct kiln_kda_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what kda saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as beta */
  const DLTensor *dbeta;
  /* output: as g */
  const DLTensor *dg;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_kda_backward;
void kiln_kda_backward_init(kiln_kda_backward *call);
kiln_status kiln_kda_backward_run(const kiln_kda_backward *call, const kiln_options *options);
kiln_status kiln_kda_backward_workspace(const kiln_kda_backward *call, size_t *bytes);
kiln_status kiln_kda_backward_outputs(const kiln_kda_backward *call, kiln_output *outputs, size_t *count);

/* the delta rule with a gate for each head */
typedef struct kiln_gated_delta_rule {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_gated_delta_rule;
void kiln_gated_delta_rule_init(kiln_gated_delta_rule *call);
kiln_status kiln_gated_delta_rule_run(const kiln_gated_delta_rule *call, const kiln_options *options);
kiln_status kiln_gated_delta_rule_workspace(const kiln_gated_delta_rule *call, size_t *bytes);
kiln_status kiln_gated_delta_rule_outputs(const kiln_gated_delta_rule *call, kiln_output *outputs, size_t *count);

/* gradients of the delta rule with a gate for each head */
typedef struct kiln_gated_delta_rule_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what gated_delta_rule saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as beta */
  const DLTensor *dbeta;
  /* output: as g */
  const DLTensor *dg;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_gated_delta_rule_backward;
void kiln_gated_delta_rule_backward_init(kiln_gated_delta_rule_backward *call);
kiln_status kiln_gated_delta_rule_backward_run(const kiln_gated_delta_rule_backward *call, const kiln_options *options);
kiln_status kiln_gated_delta_rule_backward_workspace(const kiln_gated_delta_rule_backward *call, size_t *bytes);
kiln_status kiln_gated_delta_rule_backward_outputs(const kiln_gated_delta_rule_backward *call, kiln_output *outputs, size_t *count);

/* the delta rule: a state that forgets what a key held */
typedef struct kiln_delta_rule {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
} kiln_delta_rule;
void kiln_delta_rule_init(kiln_delta_rule *call);
kiln_status kiln_delta_rule_run(const kiln_delta_rule *call, const kiln_options *options);
kiln_status kiln_delta_rule_workspace(const kiln_delta_rule *call, size_t *bytes);
kiln_status kiln_delta_rule_outputs(const kiln_delta_rule *call, kiln_output *outputs, size_t *count);

/* gradients of the delta rule by all its inputs */
typedef struct kiln_delta_rule_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: how much of what k reads is taken back */
  const DLTensor *beta;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what delta_rule saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as beta */
  const DLTensor *dbeta;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
} kiln_delta_rule_backward;
void kiln_delta_rule_backward_init(kiln_delta_rule_backward *call);
kiln_status kiln_delta_rule_backward_run(const kiln_delta_rule_backward *call, const kiln_options *options);
kiln_status kiln_delta_rule_backward_workspace(const kiln_delta_rule_backward *call, size_t *bytes);
kiln_status kiln_delta_rule_backward_outputs(const kiln_delta_rule_backward *call, kiln_output *outputs, size_t *count);

/* linear attention with a gate for each channel (GLA) */
typedef struct kiln_gla {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_gla;
void kiln_gla_init(kiln_gla *call);
kiln_status kiln_gla_run(const kiln_gla *call, const kiln_options *options);
kiln_status kiln_gla_workspace(const kiln_gla *call, size_t *bytes);
kiln_status kiln_gla_outputs(const kiln_gla *call, kiln_output *outputs, size_t *count);

/* gradients of linear attention with a gate for each channel */
typedef struct kiln_gla_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H x K, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what gla saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as g */
  const DLTensor *dg;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_gla_backward;
void kiln_gla_backward_init(kiln_gla_backward *call);
kiln_status kiln_gla_backward_run(const kiln_gla_backward *call, const kiln_options *options);
kiln_status kiln_gla_backward_workspace(const kiln_gla_backward *call, size_t *bytes);
kiln_status kiln_gla_backward_outputs(const kiln_gla_backward *call, kiln_output *outputs, size_t *count);

/* linear attention with a gate for each head (the SSD of Mamba 2) */
typedef struct kiln_simple_gla {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* output: B x T x H x V */
  const DLTensor *o;
  /* output, optional: N x H x K x V, f32 */
  const DLTensor *final_state;
  /* output, optional: u8: what gradients by the same inputs take in place of making it again */
  const DLTensor *saved;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_simple_gla;
void kiln_simple_gla_init(kiln_simple_gla *call);
kiln_status kiln_simple_gla_run(const kiln_simple_gla *call, const kiln_options *options);
kiln_status kiln_simple_gla_workspace(const kiln_simple_gla *call, size_t *bytes);
kiln_status kiln_simple_gla_outputs(const kiln_simple_gla *call, kiln_output *outputs, size_t *count);

/* gradients of linear attention with a gate for each head */
typedef struct kiln_simple_gla_backward {
  size_t size;
  /* input: B x T x H x K, f16 or bf16 */
  const DLTensor *q;
  /* input: B x T x H x K */
  const DLTensor *k;
  /* input: B x T x H x V */
  const DLTensor *v;
  /* input: B x T x H, f32 or as q: natural logarithms of decays, at most 0 */
  const DLTensor *g;
  /* input, optional: N x H x K x V, f32, f16 or bf16 */
  const DLTensor *initial_state;
  /* input, optional: N + 1, int32 or int64: where each sequence starts; B is 1 */
  const DLTensor *cu_seqlens;
  /* input: B x T x H x V: the loss's gradient by o */
  const DLTensor *do_;
  /* input, optional: u8: what simple_gla saved of the same inputs */
  const DLTensor *saved;
  /* input, optional: N x H x K x V, f32 or as do: the loss's gradient by the last state */
  const DLTensor *dht;
  /* output: as q */
  const DLTensor *dq;
  /* output: as k */
  const DLTensor *dk;
  /* output: as v */
  const DLTensor *dv;
  /* output: as g */
  const DLTensor *dg;
  /* output, optional: N x H x K x V, f32: the gradient by the first state */
  const DLTensor *dh0;
  /* of the outputs; default 1 / sqrt(K) */
  double scale;
  /* tokens of a chunk: 16, 32, 64; 0: chosen */
  int64_t chunk_size;
  /* of a program that works on one chunk: 4 (up to 128 columns), 8, 16; 0: chosen */
  int64_t warps;
  /* columns of v of a program that walks along chunks: 16, 32, 64; 0: chosen */
  int64_t block_v;
  /* of such a program: 1 to 8; 0: chosen */
  int64_t chain_warps;
  /* chunks that it has in flight: 1 to 4; 0: chosen */
  int64_t stages;
  /* chunks of a segment of a long sequence, a power of two (up to 128 columns); 0: chosen */
  int64_t segment_size;
  /* no log decay is below this */
  double lower_bound;
  /* no log decay is below -5 */
  int64_t safe_gate;
} kiln_simple_gla_backward;
void kiln_simple_gla_backward_init(kiln_simple_gla_backward *call);
kiln_status kiln_simple_gla_backward_run(const kiln_simple_gla_backward *call, const kiln_options *options);
kiln_status kiln_simple_gla_backward_workspace(const kiln_simple_gla_backward *call, size_t *bytes);
kiln_status kiln_simple_gla_backward_outputs(const kiln_simple_gla_backward *call, kiln_output *outputs, size_t *count);

#ifdef __cplusplus
}
#endif

#endif /* KILN_OPERATIONS_H */

/* All of the above again, for the library itself. */
#ifdef KILN_FIELD
KILN_OPERATION(copy)
KILN_FIELD(copy, x, "x", Tensor)
KILN_FIELD(copy, out, "out", Tensor)
KILN_OPERATION(add)
KILN_FIELD(add, x, "x", Tensor)
KILN_FIELD(add, y, "y", Tensor)
KILN_FIELD(add, out, "out", Tensor)
KILN_OPERATION(transpose)
KILN_FIELD(transpose, x, "x", Tensor)
KILN_FIELD(transpose, out, "out", Tensor)
KILN_OPERATION(softmax)
KILN_FIELD(softmax, x, "x", Tensor)
KILN_FIELD(softmax, out, "out", Tensor)
KILN_OPERATION(layer_norm)
KILN_FIELD(layer_norm, x, "x", Tensor)
KILN_FIELD(layer_norm, weight, "weight", Tensor)
KILN_FIELD(layer_norm, bias, "bias", Tensor)
KILN_FIELD(layer_norm, out, "out", Tensor)
KILN_FIELD(layer_norm, eps, "eps", Number)
KILN_OPERATION(cumsum)
KILN_FIELD(cumsum, x, "x", Tensor)
KILN_FIELD(cumsum, out, "out", Tensor)
KILN_OPERATION(reduce_sum)
KILN_FIELD(reduce_sum, x, "x", Tensor)
KILN_FIELD(reduce_sum, out, "out", Tensor)
KILN_OPERATION(attention)
KILN_FIELD(attention, q, "q", Tensor)
KILN_FIELD(attention, k, "k", Tensor)
KILN_FIELD(attention, v, "v", Tensor)
KILN_FIELD(attention, kv, "kv", Tensor)
KILN_FIELD(attention, qkv, "qkv", Tensor)
KILN_FIELD(attention, sink, "sink", Tensor)
KILN_FIELD(attention, alibi, "alibi", Tensor)
KILN_FIELD(attention, bias, "bias", Tensor)
KILN_FIELD(attention, cu_seqlens_q, "cu_seqlens_q", Tensor)
KILN_FIELD(attention, cu_seqlens_k, "cu_seqlens_k", Tensor)
KILN_FIELD(attention, seqused_q, "seqused_q", Tensor)
KILN_FIELD(attention, seqused_k, "seqused_k", Tensor)
KILN_FIELD(attention, q_descale, "q_descale", Tensor)
KILN_FIELD(attention, k_descale, "k_descale", Tensor)
KILN_FIELD(attention, v_descale, "v_descale", Tensor)
KILN_FIELD(attention, o, "o", Tensor)
KILN_FIELD(attention, lse, "lse", Tensor)
KILN_FIELD(attention, layout, "layout", Text)
KILN_FIELD(attention, heads, "heads", Whole)
KILN_FIELD(attention, key_heads, "key_heads", Whole)
KILN_FIELD(attention, score, "score", Text)
KILN_FIELD(attention, mask, "mask", Text)
KILN_FIELD(attention, block_mask, "block_mask", Text)
KILN_FIELD(attention, causal, "causal", Flag)
KILN_FIELD(attention, align, "align", Text)
KILN_FIELD(attention, window_left, "window_left", Whole)
KILN_FIELD(attention, window_right, "window_right", Whole)
KILN_FIELD(attention, position_offset, "position_offset", Whole)
KILN_FIELD(attention, softcap, "softcap", Number)
KILN_FIELD(attention, scale, "scale", Number)
KILN_FIELD(attention, checked, "checked", Flag)
KILN_FIELD(attention, dropout_p, "dropout_p", Number)
KILN_FIELD(attention, dropout_seed, "dropout_seed", Whole)
KILN_FIELD(attention, dropout_offset, "dropout_offset", Whole)
KILN_FIELD(attention, persistent, "persistent", Flag)
KILN_FIELD(attention, block_m, "block_m", Whole)
KILN_FIELD(attention, block_n, "block_n", Whole)
KILN_FIELD(attention, warps, "warps", Whole)
KILN_FIELD(attention, stages, "stages", Whole)
KILN_OPERATION(attention_backward)
KILN_FIELD(attention_backward, q, "q", Tensor)
KILN_FIELD(attention_backward, k, "k", Tensor)
KILN_FIELD(attention_backward, v, "v", Tensor)
KILN_FIELD(attention_backward, o, "o", Tensor)
KILN_FIELD(attention_backward, lse, "lse", Tensor)
KILN_FIELD(attention_backward, do_, "do", Tensor)
KILN_FIELD(attention_backward, dlse, "dlse", Tensor)
KILN_FIELD(attention_backward, sink, "sink", Tensor)
KILN_FIELD(attention_backward, alibi, "alibi", Tensor)
KILN_FIELD(attention_backward, bias, "bias", Tensor)
KILN_FIELD(attention_backward, cu_seqlens_q, "cu_seqlens_q", Tensor)
KILN_FIELD(attention_backward, cu_seqlens_k, "cu_seqlens_k", Tensor)
KILN_FIELD(attention_backward, seqused_q, "seqused_q", Tensor)
KILN_FIELD(attention_backward, seqused_k, "seqused_k", Tensor)
KILN_FIELD(attention_backward, dq, "dq", Tensor)
KILN_FIELD(attention_backward, dk, "dk", Tensor)
KILN_FIELD(attention_backward, dv, "dv", Tensor)
KILN_FIELD(attention_backward, dsink, "dsink", Tensor)
KILN_FIELD(attention_backward, dbias, "dbias", Tensor)
KILN_FIELD(attention_backward, layout, "layout", Text)
KILN_FIELD(attention_backward, score, "score", Text)
KILN_FIELD(attention_backward, mask, "mask", Text)
KILN_FIELD(attention_backward, block_mask, "block_mask", Text)
KILN_FIELD(attention_backward, causal, "causal", Flag)
KILN_FIELD(attention_backward, align, "align", Text)
KILN_FIELD(attention_backward, window_left, "window_left", Whole)
KILN_FIELD(attention_backward, window_right, "window_right", Whole)
KILN_FIELD(attention_backward, position_offset, "position_offset", Whole)
KILN_FIELD(attention_backward, softcap, "softcap", Number)
KILN_FIELD(attention_backward, scale, "scale", Number)
KILN_FIELD(attention_backward, checked, "checked", Flag)
KILN_FIELD(attention_backward, dropout_p, "dropout_p", Number)
KILN_FIELD(attention_backward, dropout_seed, "dropout_seed", Whole)
KILN_FIELD(attention_backward, dropout_offset, "dropout_offset", Whole)
KILN_FIELD(attention_backward, deterministic, "deterministic", Flag)
KILN_FIELD(attention_backward, keys_block_m, "keys_block_m", Whole)
KILN_FIELD(attention_backward, keys_block_n, "keys_block_n", Whole)
KILN_FIELD(attention_backward, keys_warps, "keys_warps", Whole)
KILN_FIELD(attention_backward, keys_stages, "keys_stages", Whole)
KILN_FIELD(attention_backward, queries_block_m, "queries_block_m", Whole)
KILN_FIELD(attention_backward, queries_block_n, "queries_block_n", Whole)
KILN_FIELD(attention_backward, queries_warps, "queries_warps", Whole)
KILN_FIELD(attention_backward, queries_stages, "queries_stages", Whole)
KILN_OPERATION(attention_decode)
KILN_FIELD(attention_decode, q, "q", Tensor)
KILN_FIELD(attention_decode, k_cache, "k_cache", Tensor)
KILN_FIELD(attention_decode, v_cache, "v_cache", Tensor)
KILN_FIELD(attention_decode, cache_seqlens, "cache_seqlens", Tensor)
KILN_FIELD(attention_decode, k_new, "k_new", Tensor)
KILN_FIELD(attention_decode, v_new, "v_new", Tensor)
KILN_FIELD(attention_decode, rotary_cos, "rotary_cos", Tensor)
KILN_FIELD(attention_decode, rotary_sin, "rotary_sin", Tensor)
KILN_FIELD(attention_decode, page_table, "page_table", Tensor)
KILN_FIELD(attention_decode, cache_batch_idx, "cache_batch_idx", Tensor)
KILN_FIELD(attention_decode, leftpad_k, "leftpad_k", Tensor)
KILN_FIELD(attention_decode, sink, "sink", Tensor)
KILN_FIELD(attention_decode, alibi, "alibi", Tensor)
KILN_FIELD(attention_decode, q_descale, "q_descale", Tensor)
KILN_FIELD(attention_decode, k_descale, "k_descale", Tensor)
KILN_FIELD(attention_decode, v_descale, "v_descale", Tensor)
KILN_FIELD(attention_decode, o, "o", Tensor)
KILN_FIELD(attention_decode, lse, "lse", Tensor)
KILN_FIELD(attention_decode, k_cache_after, "k_cache_after", Tensor)
KILN_FIELD(attention_decode, v_cache_after, "v_cache_after", Tensor)
KILN_FIELD(attention_decode, causal, "causal", Flag)
KILN_FIELD(attention_decode, window_left, "window_left", Whole)
KILN_FIELD(attention_decode, window_right, "window_right", Whole)
KILN_FIELD(attention_decode, softcap, "softcap", Number)
KILN_FIELD(attention_decode, scale, "scale", Number)
KILN_FIELD(attention_decode, rotary_interleaved, "rotary_interleaved", Flag)
KILN_FIELD(attention_decode, max_keys, "max_keys", Whole)
KILN_FIELD(attention_decode, splits, "splits", Whole)
KILN_FIELD(attention_decode, checked, "checked", Flag)
KILN_FIELD(attention_decode, block_m, "block_m", Whole)
KILN_FIELD(attention_decode, block_n, "block_n", Whole)
KILN_FIELD(attention_decode, warps, "warps", Whole)
KILN_FIELD(attention_decode, stages, "stages", Whole)
KILN_OPERATION(matmul)
KILN_FIELD(matmul, a, "a", Tensor)
KILN_FIELD(matmul, b, "b", Tensor)
KILN_FIELD(matmul, bias, "bias", Tensor)
KILN_FIELD(matmul, out, "out", Tensor)
KILN_FIELD(matmul, scale, "scale", Number)
KILN_FIELD(matmul, activation, "activation", Text)
KILN_FIELD(matmul, precision, "precision", Text)
KILN_FIELD(matmul, splits, "splits", Whole)
KILN_FIELD(matmul, programs, "programs", Whole)
KILN_FIELD(matmul, block_m, "block_m", Whole)
KILN_FIELD(matmul, block_n, "block_n", Whole)
KILN_FIELD(matmul, block_k, "block_k", Whole)
KILN_FIELD(matmul, warps, "warps", Whole)
KILN_FIELD(matmul, stages, "stages", Whole)
KILN_FIELD(matmul, out_dtype, "out_dtype", Text)
KILN_FIELD(matmul, atomic, "atomic", Flag)
KILN_FIELD(matmul, transpose_a, "transpose_a", Flag)
KILN_FIELD(matmul, transpose_b, "transpose_b", Flag)
KILN_OPERATION(dplr)
KILN_FIELD(dplr, q, "q", Tensor)
KILN_FIELD(dplr, k, "k", Tensor)
KILN_FIELD(dplr, v, "v", Tensor)
KILN_FIELD(dplr, a, "a", Tensor)
KILN_FIELD(dplr, b, "b", Tensor)
KILN_FIELD(dplr, g, "g", Tensor)
KILN_FIELD(dplr, initial_state, "initial_state", Tensor)
KILN_FIELD(dplr, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(dplr, o, "o", Tensor)
KILN_FIELD(dplr, final_state, "final_state", Tensor)
KILN_FIELD(dplr, saved, "saved", Tensor)
KILN_FIELD(dplr, scale, "scale", Number)
KILN_FIELD(dplr, chunk_size, "chunk_size", Whole)
KILN_FIELD(dplr, warps, "warps", Whole)
KILN_FIELD(dplr, block_v, "block_v", Whole)
KILN_FIELD(dplr, chain_warps, "chain_warps", Whole)
KILN_FIELD(dplr, stages, "stages", Whole)
KILN_FIELD(dplr, segment_size, "segment_size", Whole)
KILN_FIELD(dplr, lower_bound, "lower_bound", Number)
KILN_FIELD(dplr, safe_gate, "safe_gate", Flag)
KILN_OPERATION(dplr_backward)
KILN_FIELD(dplr_backward, q, "q", Tensor)
KILN_FIELD(dplr_backward, k, "k", Tensor)
KILN_FIELD(dplr_backward, v, "v", Tensor)
KILN_FIELD(dplr_backward, a, "a", Tensor)
KILN_FIELD(dplr_backward, b, "b", Tensor)
KILN_FIELD(dplr_backward, g, "g", Tensor)
KILN_FIELD(dplr_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(dplr_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(dplr_backward, do_, "do", Tensor)
KILN_FIELD(dplr_backward, saved, "saved", Tensor)
KILN_FIELD(dplr_backward, dht, "dht", Tensor)
KILN_FIELD(dplr_backward, dq, "dq", Tensor)
KILN_FIELD(dplr_backward, dk, "dk", Tensor)
KILN_FIELD(dplr_backward, dv, "dv", Tensor)
KILN_FIELD(dplr_backward, da, "da", Tensor)
KILN_FIELD(dplr_backward, db, "db", Tensor)
KILN_FIELD(dplr_backward, dg, "dg", Tensor)
KILN_FIELD(dplr_backward, dh0, "dh0", Tensor)
KILN_FIELD(dplr_backward, scale, "scale", Number)
KILN_FIELD(dplr_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(dplr_backward, warps, "warps", Whole)
KILN_FIELD(dplr_backward, block_v, "block_v", Whole)
KILN_FIELD(dplr_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(dplr_backward, stages, "stages", Whole)
KILN_FIELD(dplr_backward, segment_size, "segment_size", Whole)
KILN_FIELD(dplr_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(dplr_backward, safe_gate, "safe_gate", Flag)
KILN_OPERATION(dplr_step)
KILN_FIELD(dplr_step, q, "q", Tensor)
KILN_FIELD(dplr_step, k, "k", Tensor)
KILN_FIELD(dplr_step, v, "v", Tensor)
KILN_FIELD(dplr_step, a, "a", Tensor)
KILN_FIELD(dplr_step, b, "b", Tensor)
KILN_FIELD(dplr_step, g, "g", Tensor)
KILN_FIELD(dplr_step, initial_state, "initial_state", Tensor)
KILN_FIELD(dplr_step, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(dplr_step, o, "o", Tensor)
KILN_FIELD(dplr_step, final_state, "final_state", Tensor)
KILN_FIELD(dplr_step, saved, "saved", Tensor)
KILN_FIELD(dplr_step, scale, "scale", Number)
KILN_OPERATION(rwkv7)
KILN_FIELD(rwkv7, r, "r", Tensor)
KILN_FIELD(rwkv7, k, "k", Tensor)
KILN_FIELD(rwkv7, v, "v", Tensor)
KILN_FIELD(rwkv7, a, "a", Tensor)
KILN_FIELD(rwkv7, b, "b", Tensor)
KILN_FIELD(rwkv7, w, "w", Tensor)
KILN_FIELD(rwkv7, initial_state, "initial_state", Tensor)
KILN_FIELD(rwkv7, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(rwkv7, o, "o", Tensor)
KILN_FIELD(rwkv7, final_state, "final_state", Tensor)
KILN_FIELD(rwkv7, saved, "saved", Tensor)
KILN_FIELD(rwkv7, scale, "scale", Number)
KILN_FIELD(rwkv7, chunk_size, "chunk_size", Whole)
KILN_FIELD(rwkv7, warps, "warps", Whole)
KILN_FIELD(rwkv7, block_v, "block_v", Whole)
KILN_FIELD(rwkv7, chain_warps, "chain_warps", Whole)
KILN_FIELD(rwkv7, stages, "stages", Whole)
KILN_FIELD(rwkv7, segment_size, "segment_size", Whole)
KILN_FIELD(rwkv7, lower_bound, "lower_bound", Number)
KILN_FIELD(rwkv7, safe_gate, "safe_gate", Flag)
KILN_OPERATION(rwkv7_backward)
KILN_FIELD(rwkv7_backward, r, "r", Tensor)
KILN_FIELD(rwkv7_backward, k, "k", Tensor)
KILN_FIELD(rwkv7_backward, v, "v", Tensor)
KILN_FIELD(rwkv7_backward, a, "a", Tensor)
KILN_FIELD(rwkv7_backward, b, "b", Tensor)
KILN_FIELD(rwkv7_backward, w, "w", Tensor)
KILN_FIELD(rwkv7_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(rwkv7_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(rwkv7_backward, do_, "do", Tensor)
KILN_FIELD(rwkv7_backward, saved, "saved", Tensor)
KILN_FIELD(rwkv7_backward, dht, "dht", Tensor)
KILN_FIELD(rwkv7_backward, dr, "dr", Tensor)
KILN_FIELD(rwkv7_backward, dk, "dk", Tensor)
KILN_FIELD(rwkv7_backward, dv, "dv", Tensor)
KILN_FIELD(rwkv7_backward, da, "da", Tensor)
KILN_FIELD(rwkv7_backward, db, "db", Tensor)
KILN_FIELD(rwkv7_backward, dw, "dw", Tensor)
KILN_FIELD(rwkv7_backward, dh0, "dh0", Tensor)
KILN_FIELD(rwkv7_backward, scale, "scale", Number)
KILN_FIELD(rwkv7_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(rwkv7_backward, warps, "warps", Whole)
KILN_FIELD(rwkv7_backward, block_v, "block_v", Whole)
KILN_FIELD(rwkv7_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(rwkv7_backward, stages, "stages", Whole)
KILN_FIELD(rwkv7_backward, segment_size, "segment_size", Whole)
KILN_FIELD(rwkv7_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(rwkv7_backward, safe_gate, "safe_gate", Flag)
KILN_OPERATION(rwkv7_step)
KILN_FIELD(rwkv7_step, r, "r", Tensor)
KILN_FIELD(rwkv7_step, k, "k", Tensor)
KILN_FIELD(rwkv7_step, v, "v", Tensor)
KILN_FIELD(rwkv7_step, a, "a", Tensor)
KILN_FIELD(rwkv7_step, b, "b", Tensor)
KILN_FIELD(rwkv7_step, w, "w", Tensor)
KILN_FIELD(rwkv7_step, initial_state, "initial_state", Tensor)
KILN_FIELD(rwkv7_step, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(rwkv7_step, o, "o", Tensor)
KILN_FIELD(rwkv7_step, final_state, "final_state", Tensor)
KILN_FIELD(rwkv7_step, saved, "saved", Tensor)
KILN_FIELD(rwkv7_step, scale, "scale", Number)
KILN_OPERATION(iplr)
KILN_FIELD(iplr, q, "q", Tensor)
KILN_FIELD(iplr, k, "k", Tensor)
KILN_FIELD(iplr, v, "v", Tensor)
KILN_FIELD(iplr, a, "a", Tensor)
KILN_FIELD(iplr, b, "b", Tensor)
KILN_FIELD(iplr, initial_state, "initial_state", Tensor)
KILN_FIELD(iplr, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(iplr, o, "o", Tensor)
KILN_FIELD(iplr, final_state, "final_state", Tensor)
KILN_FIELD(iplr, saved, "saved", Tensor)
KILN_FIELD(iplr, scale, "scale", Number)
KILN_FIELD(iplr, chunk_size, "chunk_size", Whole)
KILN_FIELD(iplr, warps, "warps", Whole)
KILN_FIELD(iplr, block_v, "block_v", Whole)
KILN_FIELD(iplr, chain_warps, "chain_warps", Whole)
KILN_FIELD(iplr, stages, "stages", Whole)
KILN_FIELD(iplr, segment_size, "segment_size", Whole)
KILN_OPERATION(iplr_backward)
KILN_FIELD(iplr_backward, q, "q", Tensor)
KILN_FIELD(iplr_backward, k, "k", Tensor)
KILN_FIELD(iplr_backward, v, "v", Tensor)
KILN_FIELD(iplr_backward, a, "a", Tensor)
KILN_FIELD(iplr_backward, b, "b", Tensor)
KILN_FIELD(iplr_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(iplr_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(iplr_backward, do_, "do", Tensor)
KILN_FIELD(iplr_backward, saved, "saved", Tensor)
KILN_FIELD(iplr_backward, dht, "dht", Tensor)
KILN_FIELD(iplr_backward, dq, "dq", Tensor)
KILN_FIELD(iplr_backward, dk, "dk", Tensor)
KILN_FIELD(iplr_backward, dv, "dv", Tensor)
KILN_FIELD(iplr_backward, da, "da", Tensor)
KILN_FIELD(iplr_backward, db, "db", Tensor)
KILN_FIELD(iplr_backward, dh0, "dh0", Tensor)
KILN_FIELD(iplr_backward, scale, "scale", Number)
KILN_FIELD(iplr_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(iplr_backward, warps, "warps", Whole)
KILN_FIELD(iplr_backward, block_v, "block_v", Whole)
KILN_FIELD(iplr_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(iplr_backward, stages, "stages", Whole)
KILN_FIELD(iplr_backward, segment_size, "segment_size", Whole)
KILN_OPERATION(kda)
KILN_FIELD(kda, q, "q", Tensor)
KILN_FIELD(kda, k, "k", Tensor)
KILN_FIELD(kda, v, "v", Tensor)
KILN_FIELD(kda, g, "g", Tensor)
KILN_FIELD(kda, beta, "beta", Tensor)
KILN_FIELD(kda, initial_state, "initial_state", Tensor)
KILN_FIELD(kda, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(kda, o, "o", Tensor)
KILN_FIELD(kda, final_state, "final_state", Tensor)
KILN_FIELD(kda, saved, "saved", Tensor)
KILN_FIELD(kda, scale, "scale", Number)
KILN_FIELD(kda, chunk_size, "chunk_size", Whole)
KILN_FIELD(kda, warps, "warps", Whole)
KILN_FIELD(kda, block_v, "block_v", Whole)
KILN_FIELD(kda, chain_warps, "chain_warps", Whole)
KILN_FIELD(kda, stages, "stages", Whole)
KILN_FIELD(kda, segment_size, "segment_size", Whole)
KILN_FIELD(kda, lower_bound, "lower_bound", Number)
KILN_FIELD(kda, safe_gate, "safe_gate", Flag)
KILN_OPERATION(kda_backward)
KILN_FIELD(kda_backward, q, "q", Tensor)
KILN_FIELD(kda_backward, k, "k", Tensor)
KILN_FIELD(kda_backward, v, "v", Tensor)
KILN_FIELD(kda_backward, g, "g", Tensor)
KILN_FIELD(kda_backward, beta, "beta", Tensor)
KILN_FIELD(kda_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(kda_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(kda_backward, do_, "do", Tensor)
KILN_FIELD(kda_backward, saved, "saved", Tensor)
KILN_FIELD(kda_backward, dht, "dht", Tensor)
KILN_FIELD(kda_backward, dq, "dq", Tensor)
KILN_FIELD(kda_backward, dk, "dk", Tensor)
KILN_FIELD(kda_backward, dv, "dv", Tensor)
KILN_FIELD(kda_backward, dbeta, "dbeta", Tensor)
KILN_FIELD(kda_backward, dg, "dg", Tensor)
KILN_FIELD(kda_backward, dh0, "dh0", Tensor)
KILN_FIELD(kda_backward, scale, "scale", Number)
KILN_FIELD(kda_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(kda_backward, warps, "warps", Whole)
KILN_FIELD(kda_backward, block_v, "block_v", Whole)
KILN_FIELD(kda_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(kda_backward, stages, "stages", Whole)
KILN_FIELD(kda_backward, segment_size, "segment_size", Whole)
KILN_FIELD(kda_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(kda_backward, safe_gate, "safe_gate", Flag)
KILN_OPERATION(gated_delta_rule)
KILN_FIELD(gated_delta_rule, q, "q", Tensor)
KILN_FIELD(gated_delta_rule, k, "k", Tensor)
KILN_FIELD(gated_delta_rule, v, "v", Tensor)
KILN_FIELD(gated_delta_rule, g, "g", Tensor)
KILN_FIELD(gated_delta_rule, beta, "beta", Tensor)
KILN_FIELD(gated_delta_rule, initial_state, "initial_state", Tensor)
KILN_FIELD(gated_delta_rule, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(gated_delta_rule, o, "o", Tensor)
KILN_FIELD(gated_delta_rule, final_state, "final_state", Tensor)
KILN_FIELD(gated_delta_rule, saved, "saved", Tensor)
KILN_FIELD(gated_delta_rule, scale, "scale", Number)
KILN_FIELD(gated_delta_rule, chunk_size, "chunk_size", Whole)
KILN_FIELD(gated_delta_rule, warps, "warps", Whole)
KILN_FIELD(gated_delta_rule, block_v, "block_v", Whole)
KILN_FIELD(gated_delta_rule, chain_warps, "chain_warps", Whole)
KILN_FIELD(gated_delta_rule, stages, "stages", Whole)
KILN_FIELD(gated_delta_rule, segment_size, "segment_size", Whole)
KILN_FIELD(gated_delta_rule, lower_bound, "lower_bound", Number)
KILN_FIELD(gated_delta_rule, safe_gate, "safe_gate", Flag)
KILN_OPERATION(gated_delta_rule_backward)
KILN_FIELD(gated_delta_rule_backward, q, "q", Tensor)
KILN_FIELD(gated_delta_rule_backward, k, "k", Tensor)
KILN_FIELD(gated_delta_rule_backward, v, "v", Tensor)
KILN_FIELD(gated_delta_rule_backward, g, "g", Tensor)
KILN_FIELD(gated_delta_rule_backward, beta, "beta", Tensor)
KILN_FIELD(gated_delta_rule_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(gated_delta_rule_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(gated_delta_rule_backward, do_, "do", Tensor)
KILN_FIELD(gated_delta_rule_backward, saved, "saved", Tensor)
KILN_FIELD(gated_delta_rule_backward, dht, "dht", Tensor)
KILN_FIELD(gated_delta_rule_backward, dq, "dq", Tensor)
KILN_FIELD(gated_delta_rule_backward, dk, "dk", Tensor)
KILN_FIELD(gated_delta_rule_backward, dv, "dv", Tensor)
KILN_FIELD(gated_delta_rule_backward, dbeta, "dbeta", Tensor)
KILN_FIELD(gated_delta_rule_backward, dg, "dg", Tensor)
KILN_FIELD(gated_delta_rule_backward, dh0, "dh0", Tensor)
KILN_FIELD(gated_delta_rule_backward, scale, "scale", Number)
KILN_FIELD(gated_delta_rule_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(gated_delta_rule_backward, warps, "warps", Whole)
KILN_FIELD(gated_delta_rule_backward, block_v, "block_v", Whole)
KILN_FIELD(gated_delta_rule_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(gated_delta_rule_backward, stages, "stages", Whole)
KILN_FIELD(gated_delta_rule_backward, segment_size, "segment_size", Whole)
KILN_FIELD(gated_delta_rule_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(gated_delta_rule_backward, safe_gate, "safe_gate", Flag)
KILN_OPERATION(delta_rule)
KILN_FIELD(delta_rule, q, "q", Tensor)
KILN_FIELD(delta_rule, k, "k", Tensor)
KILN_FIELD(delta_rule, v, "v", Tensor)
KILN_FIELD(delta_rule, beta, "beta", Tensor)
KILN_FIELD(delta_rule, initial_state, "initial_state", Tensor)
KILN_FIELD(delta_rule, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(delta_rule, o, "o", Tensor)
KILN_FIELD(delta_rule, final_state, "final_state", Tensor)
KILN_FIELD(delta_rule, saved, "saved", Tensor)
KILN_FIELD(delta_rule, scale, "scale", Number)
KILN_FIELD(delta_rule, chunk_size, "chunk_size", Whole)
KILN_FIELD(delta_rule, warps, "warps", Whole)
KILN_FIELD(delta_rule, block_v, "block_v", Whole)
KILN_FIELD(delta_rule, chain_warps, "chain_warps", Whole)
KILN_FIELD(delta_rule, stages, "stages", Whole)
KILN_FIELD(delta_rule, segment_size, "segment_size", Whole)
KILN_OPERATION(delta_rule_backward)
KILN_FIELD(delta_rule_backward, q, "q", Tensor)
KILN_FIELD(delta_rule_backward, k, "k", Tensor)
KILN_FIELD(delta_rule_backward, v, "v", Tensor)
KILN_FIELD(delta_rule_backward, beta, "beta", Tensor)
KILN_FIELD(delta_rule_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(delta_rule_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(delta_rule_backward, do_, "do", Tensor)
KILN_FIELD(delta_rule_backward, saved, "saved", Tensor)
KILN_FIELD(delta_rule_backward, dht, "dht", Tensor)
KILN_FIELD(delta_rule_backward, dq, "dq", Tensor)
KILN_FIELD(delta_rule_backward, dk, "dk", Tensor)
KILN_FIELD(delta_rule_backward, dv, "dv", Tensor)
KILN_FIELD(delta_rule_backward, dbeta, "dbeta", Tensor)
KILN_FIELD(delta_rule_backward, dh0, "dh0", Tensor)
KILN_FIELD(delta_rule_backward, scale, "scale", Number)
KILN_FIELD(delta_rule_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(delta_rule_backward, warps, "warps", Whole)
KILN_FIELD(delta_rule_backward, block_v, "block_v", Whole)
KILN_FIELD(delta_rule_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(delta_rule_backward, stages, "stages", Whole)
KILN_FIELD(delta_rule_backward, segment_size, "segment_size", Whole)
KILN_OPERATION(gla)
KILN_FIELD(gla, q, "q", Tensor)
KILN_FIELD(gla, k, "k", Tensor)
KILN_FIELD(gla, v, "v", Tensor)
KILN_FIELD(gla, g, "g", Tensor)
KILN_FIELD(gla, initial_state, "initial_state", Tensor)
KILN_FIELD(gla, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(gla, o, "o", Tensor)
KILN_FIELD(gla, final_state, "final_state", Tensor)
KILN_FIELD(gla, saved, "saved", Tensor)
KILN_FIELD(gla, scale, "scale", Number)
KILN_FIELD(gla, chunk_size, "chunk_size", Whole)
KILN_FIELD(gla, warps, "warps", Whole)
KILN_FIELD(gla, block_v, "block_v", Whole)
KILN_FIELD(gla, chain_warps, "chain_warps", Whole)
KILN_FIELD(gla, stages, "stages", Whole)
KILN_FIELD(gla, segment_size, "segment_size", Whole)
KILN_FIELD(gla, lower_bound, "lower_bound", Number)
KILN_FIELD(gla, safe_gate, "safe_gate", Flag)
KILN_OPERATION(gla_backward)
KILN_FIELD(gla_backward, q, "q", Tensor)
KILN_FIELD(gla_backward, k, "k", Tensor)
KILN_FIELD(gla_backward, v, "v", Tensor)
KILN_FIELD(gla_backward, g, "g", Tensor)
KILN_FIELD(gla_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(gla_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(gla_backward, do_, "do", Tensor)
KILN_FIELD(gla_backward, saved, "saved", Tensor)
KILN_FIELD(gla_backward, dht, "dht", Tensor)
KILN_FIELD(gla_backward, dq, "dq", Tensor)
KILN_FIELD(gla_backward, dk, "dk", Tensor)
KILN_FIELD(gla_backward, dv, "dv", Tensor)
KILN_FIELD(gla_backward, dg, "dg", Tensor)
KILN_FIELD(gla_backward, dh0, "dh0", Tensor)
KILN_FIELD(gla_backward, scale, "scale", Number)
KILN_FIELD(gla_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(gla_backward, warps, "warps", Whole)
KILN_FIELD(gla_backward, block_v, "block_v", Whole)
KILN_FIELD(gla_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(gla_backward, stages, "stages", Whole)
KILN_FIELD(gla_backward, segment_size, "segment_size", Whole)
KILN_FIELD(gla_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(gla_backward, safe_gate, "safe_gate", Flag)
KILN_OPERATION(simple_gla)
KILN_FIELD(simple_gla, q, "q", Tensor)
KILN_FIELD(simple_gla, k, "k", Tensor)
KILN_FIELD(simple_gla, v, "v", Tensor)
KILN_FIELD(simple_gla, g, "g", Tensor)
KILN_FIELD(simple_gla, initial_state, "initial_state", Tensor)
KILN_FIELD(simple_gla, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(simple_gla, o, "o", Tensor)
KILN_FIELD(simple_gla, final_state, "final_state", Tensor)
KILN_FIELD(simple_gla, saved, "saved", Tensor)
KILN_FIELD(simple_gla, scale, "scale", Number)
KILN_FIELD(simple_gla, chunk_size, "chunk_size", Whole)
KILN_FIELD(simple_gla, warps, "warps", Whole)
KILN_FIELD(simple_gla, block_v, "block_v", Whole)
KILN_FIELD(simple_gla, chain_warps, "chain_warps", Whole)
KILN_FIELD(simple_gla, stages, "stages", Whole)
KILN_FIELD(simple_gla, segment_size, "segment_size", Whole)
KILN_FIELD(simple_gla, lower_bound, "lower_bound", Number)
KILN_FIELD(simple_gla, safe_gate, "safe_gate", Flag)
KILN_OPERATION(simple_gla_backward)
KILN_FIELD(simple_gla_backward, q, "q", Tensor)
KILN_FIELD(simple_gla_backward, k, "k", Tensor)
KILN_FIELD(simple_gla_backward, v, "v", Tensor)
KILN_FIELD(simple_gla_backward, g, "g", Tensor)
KILN_FIELD(simple_gla_backward, initial_state, "initial_state", Tensor)
KILN_FIELD(simple_gla_backward, cu_seqlens, "cu_seqlens", Tensor)
KILN_FIELD(simple_gla_backward, do_, "do", Tensor)
KILN_FIELD(simple_gla_backward, saved, "saved", Tensor)
KILN_FIELD(simple_gla_backward, dht, "dht", Tensor)
KILN_FIELD(simple_gla_backward, dq, "dq", Tensor)
KILN_FIELD(simple_gla_backward, dk, "dk", Tensor)
KILN_FIELD(simple_gla_backward, dv, "dv", Tensor)
KILN_FIELD(simple_gla_backward, dg, "dg", Tensor)
KILN_FIELD(simple_gla_backward, dh0, "dh0", Tensor)
KILN_FIELD(simple_gla_backward, scale, "scale", Number)
KILN_FIELD(simple_gla_backward, chunk_size, "chunk_size", Whole)
KILN_FIELD(simple_gla_backward, warps, "warps", Whole)
KILN_FIELD(simple_gla_backward, block_v, "block_v", Whole)
KILN_FIELD(simple_gla_backward, chain_warps, "chain_warps", Whole)
KILN_FIELD(simple_gla_backward, stages, "stages", Whole)
KILN_FIELD(simple_gla_backward, segment_size, "segment_size", Whole)
KILN_FIELD(simple_gla_backward, lower_bound, "lower_bound", Number)
KILN_FIELD(simple_gla_backward, safe_gate, "safe_gate", Flag)
#endif
