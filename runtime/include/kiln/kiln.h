/*===- kiln.h - Kiln for C, and for whoever can call C ------------------------===
 *
 * Operations on tensors that the caller owns.  Link with -lkiln (or open
 * libkiln.so); nothing of C++ crosses this interface, no exception either.
 *
 * A tensor is DLPack's DLTensor.  On a CUDA device a call launches on `stream` and returns; in the host's memory it runs
 * on the emulator and is over when it returns.  All of a call's tensors lie on one device.
 *
 * Structs begin with their size, which the init functions write.  Fields are appended, never moved or taken away: a
 * program that was compiled against an older header keeps working.
 *
 * Functions may be called by several threads.  After a failure kiln_error_message and kiln_error_remedy of the same
 * thread say what was wrong and what to do.  After fork() the child is refused.
 *
 *===----------------------------------------------------------------------===*/
#ifndef KILN_H
#define KILN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__has_include)
#if __has_include(<dlpack/dlpack.h>)
#include <dlpack/dlpack.h>
#endif
#endif
#ifndef DLPACK_DLPACK_H_
/* What is used of DLPack 1.x, whose layout is fixed.  A program that has its header includes that before this one. */
#define DLPACK_DLPACK_H_
typedef enum { kDLCPU = 1, kDLCUDA = 2, kDLCUDAHost = 3 } DLDeviceType;
typedef struct {
  DLDeviceType device_type;
  int32_t device_id;
} DLDevice;
typedef struct {
  uint8_t code; /* 0: signed, 1: unsigned, 2: float, 4: bfloat, 6: bool, 10: float8 e4m3fn, 12: float8 e5m2 */
  uint8_t bits;
  uint16_t lanes; /* 1 */
} DLDataType;
typedef struct {
  void *data;
  DLDevice device;
  int32_t ndim;
  DLDataType dtype;
  int64_t *shape;
  int64_t *strides; /* in elements; NULL: dense, in C order */
  uint64_t byte_offset;
} DLTensor;
#endif

#ifdef __cplusplus
extern "C" {
#endif

typedef enum kiln_status {
  KILN_OK = 0,
  KILN_FINDINGS = 1, /* the kernel ran on the emulator, which found a race or an access out of bounds */
  KILN_INVALID_ARGUMENT = 2,
  KILN_NOT_FOUND = 3,
  KILN_IO_ERROR = 4,
  KILN_COMPILE_ERROR = 5,
  KILN_NOT_SUPPORTED = 6,
  KILN_DEVICE_ERROR = 7,
  KILN_OUT_OF_MEMORY = 8,
  KILN_NOT_READY = 9, /* cannot be done now, can be later: a first call while a graph is captured */
  KILN_INTERNAL = 10
} kiln_status;

/* Of the last failure of this thread; "" if there was none.  Valid until the thread's next call. */
const char *kiln_error_message(void);
const char *kiln_error_remedy(void);

/* Of the library: major * 65536 + minor * 256 + patch. */
uint32_t kiln_version(void);
/* All operations as JSON: names, tensors, options with kinds, defaults and texts; the knobs.  Valid for good. */
const char *kiln_describe(void);

/* Where a call runs. */
typedef struct kiln_options {
  size_t size;
  void *stream;           /* CUstream of the tensors' device; NULL: its default stream */
  void *workspace;        /* memory of the device between launches, 256-byte aligned; NULL: Kiln's own */
  size_t workspace_bytes; /* at least what kiln_NAME_workspace says */
} kiln_options;
void kiln_options_init(kiln_options *options);

/* What a call does not say. */
#define KILN_NOT_GIVEN INT64_MIN
/* For kiln_NAME_outputs in the place of an optional output that has no memory yet. */
#define KILN_ASKED ((const DLTensor *)(intptr_t)-1)

/* An output that a call would write. */
typedef struct kiln_output {
  const char *name; /* valid for good */
  DLDataType dtype;
  int32_t ndim;
  int64_t shape[8];
} kiln_output;

/* A kernel of the caller's own: a text of the tile dialect on a device. */
typedef struct kiln_kernel kiln_kernel;

/* Reads the kernel `name` (NULL: the only one) of a text of `size` bytes.  It is compiled at its first launch with
 * arguments of a class, in a process of its own.  The same text opened again is not read again. */
kiln_status kiln_kernel_open(const char *text, size_t size, const char *name, DLDevice device, kiln_kernel **kernel);

/* A value of a kernel's argument.  A parameter that is a pointer takes a tensor: of its type, and in the host's memory
 * dense; it may be written.  Whole numbers are also passed where a parameter is a float. */
typedef enum kiln_value_kind { KILN_TENSOR = 0, KILN_WHOLE = 1, KILN_NUMBER = 2 } kiln_value_kind;
typedef struct kiln_value {
  kiln_value_kind kind;
  union {
    const DLTensor *tensor;
    int64_t whole;
    double number;
  } of;
} kiln_value;

/* A launch of grid[0] x grid[1] x grid[2] programs with `count` arguments, in the order of the kernel's parameters.
 * options: the stream, and no workspace; NULL: the device's default stream. */
kiln_status kiln_kernel_launch(kiln_kernel *kernel, const uint32_t grid[3], const kiln_value *arguments, size_t count,
                               const kiln_options *options);

/* What was launched goes on.  A kernel that is closed, or closed twice, is refused; NULL is nothing to close. */
kiln_status kiln_kernel_close(kiln_kernel *kernel);

#ifdef __cplusplus
}
#endif

#include "kiln/operations.h"

#endif /* KILN_H */
