#ifndef NPUC_CLIENT_OPERATOR_NPUC_OPERATOR_H_
#define NPUC_CLIENT_OPERATOR_NPUC_OPERATOR_H_

/* The C interface between npuc and a library with an operator of your own. client/PLUGINS.md,
 * "Native operators", has a tutorial. A library is C or C++, compiled as a shared library:
 *
 *   cc -shared -fPIC -O2 -I/usr/include/npuc -o abs.so abs.c
 *
 * npuc loads it in a process of its own without files, network, threads and further processes, with
 * 10 s of processor time and 1 GiB of memory. It calls each function several times with the same
 * arguments, in several processes, and refuses a library that gives different bytes.
 *
 * Buffers of operands are read-only. All pointers are valid during the call alone. */

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The version of this interface. It changes whenever a structure or a function below does, and npuc
 * refuses a library of another version. */
#define NPUC_OPERATOR_ABI 1u
#define NPUC_OPERATOR_MAX_RANK 8

#define NPUC_OPERATOR_EXPORT __attribute__((visibility("default")))

/* Stands once in each library, outside of functions, and states the version of this interface. */
#ifdef __cplusplus
#define NPUC_OPERATOR_LIBRARY \
  extern "C" NPUC_OPERATOR_EXPORT const uint32_t npuc_operator_abi = NPUC_OPERATOR_ABI;
#else
#define NPUC_OPERATOR_LIBRARY \
  NPUC_OPERATOR_EXPORT const uint32_t npuc_operator_abi = NPUC_OPERATOR_ABI;
#endif

/* The type of an attribute, as its declaration in YAML has it. */
enum { NPUC_BOOL = 0, NPUC_INT = 1, NPUC_FLOAT = 2, NPUC_INTS = 3, NPUC_FLOATS = 4 };

typedef struct npuc_attribute {
  const char* name;     /* as declared */
  uint32_t type;        /* NPUC_BOOL ... NPUC_FLOATS */
  uint32_t count;       /* 1, but for lists */
  const int64_t* ints;  /* count numbers of NPUC_BOOL (0, 1), NPUC_INT and NPUC_INTS; else NULL */
  const double* floats; /* count numbers of NPUC_FLOAT and NPUC_FLOATS; else NULL */
} npuc_attribute;

typedef struct npuc_shape {
  uint32_t rank;                        /* 0: a single number */
  int64_t dims[NPUC_OPERATOR_MAX_RANK]; /* rank of them, each at least 1 */
} npuc_shape;

typedef struct npuc_operand {
  npuc_shape shape;
  const float* data; /* row-major; NULL in npuc_operator_shapes */
} npuc_operand;

typedef struct npuc_result {
  npuc_shape shape; /* as npuc_operator_shapes set it */
  float* data;      /* row-major, to be written: each element, and nothing beside them */
} npuc_result;

typedef struct npuc_call {
  const char* op; /* the operator's name in the declaration, for a library that has several */
  uint32_t attribute_count;
  uint32_t operand_count;
  uint32_t result_count; /* as many as the declaration names */
  uint32_t error_bytes;
  const npuc_attribute* attributes; /* in the declaration's order, defaults filled in */
  const npuc_operand* operands;
  char* error; /* error_bytes of room for a text that ends with 0, which npuc shows */
} npuc_call;

/* A library defines these two. 0: done. Else the call is refused with the text in call->error.
 *
 * Sets the shapes of all results from those of the operands. At most 2^24 elements each. */
NPUC_OPERATOR_EXPORT int npuc_operator_shapes(const npuc_call* call, npuc_shape* results);
/* Computes the elements of all results. */
NPUC_OPERATOR_EXPORT int npuc_operator_compute(const npuc_call* call, npuc_result* results);

/* The number of elements of a tensor. */
static inline int64_t npuc_element_count(const npuc_shape* shape) {
  int64_t count = 1;
  for (uint32_t i = 0; i < shape->rank; ++i) count *= shape->dims[i];
  return count;
}

/* The attribute of a name; NULL where the declaration has none. */
static inline const npuc_attribute* npuc_find_attribute(const npuc_call* call, const char* name) {
  for (uint32_t i = 0; i < call->attribute_count; ++i) {
    const char* a = call->attributes[i].name;
    const char* b = name;
    while (*a != 0 && *a == *b) ++a, ++b;
    if (*a == *b) return &call->attributes[i];
  }
  return 0;
}

/* The first number of an attribute; 0 where the declaration has none of the name. */
static inline double npuc_number(const npuc_call* call, const char* name) {
  const npuc_attribute* attribute = npuc_find_attribute(call, name);
  if (attribute == 0 || attribute->count == 0) return 0;
  return attribute->floats != 0 ? attribute->floats[0] : (double)attribute->ints[0];
}

/* Sets the text of an error and returns 1: `return npuc_fail(call, "x must have 4 axes");` */
static inline int npuc_fail(const npuc_call* call, const char* text) {
  uint32_t i = 0;
  for (; i + 1 < call->error_bytes && text[i] != 0; ++i) call->error[i] = text[i];
  if (call->error_bytes > 0) call->error[i] = 0;
  return 1;
}

#ifdef __cplusplus
}
#endif

#endif /* NPUC_CLIENT_OPERATOR_NPUC_OPERATOR_H_ */
