/* Primitives and kernels of your own, in C: shared objects that schedules use like built-in ones.
 * docs/reference/schedules.md describes them, examples/c/bind.c is one.
 *
 * An object exports sheaf_primitive, which gives a primitive: a name, a check, and an apply
 * function that calls the host's functions. It is linked with no library: each call passes the
 * host's functions. A schedule that is run with --unsafe loads it, sheaf.plugin("./mine.so"), and
 * modules then have a method of its name. */
#ifndef SHEAF_PLUGIN_H
#define SHEAF_PLUGIN_H

#include "sheaf/primitive.h"

#ifdef __cplusplus
extern "C" {
#endif

#define SF_PLUGIN_VERSION 1

/* A tensor that a kernel reads or writes: the shard of a rank, row-major. */
typedef struct sf_kernel_tensor {
    size_t size; /* of this struct, as the library has it */
    const sf_tensor_type *type;
    void *data;
} sf_kernel_tensor;

/* A kernel: custom_call @NAME calls it, on CPUs, as long as the process runs. Several threads call
 * it at the same time, each with its own tensors. Equal inputs must give equal results. */
typedef struct sf_user_kernel {
    size_t size; /* sizeof this struct, see api.h */
    int version; /* SF_PLUGIN_VERSION */
    const char *name;
    /* So many first dimensions of the results, and of operands with as many dimensions as the first result, are independent: a
     * rank may have a shard along each. 0: none; all tensors are then replicated. */
    int rows;
    /* in[nin] and out[nout] point to the tensors. 0: good */
    int (*run)(int nin, const sf_kernel_tensor *const *in, int nout,
               const sf_kernel_tensor *const *out);
} sf_user_kernel;

/* The function that an object with a kernel may export. */
typedef const sf_user_kernel *sf_user_kernel_get(void);
#define SF_USER_KERNEL_SYMBOL "sheaf_kernel"

/* Lets custom calls of its name call it. SF_EUSAGE where another has the name. The struct outlives the process' last run. */
SF_API sf_status sf_bind_kernel(const sf_user_kernel *kernel, sf_diag *diag);

/* The functions of this library that a primitive is made of. */
typedef struct sf_plugin_host {
    size_t size; /* of this struct, as the library has it */
    int version; /* SF_PLUGIN_VERSION */
    sf_status (*add)(sf_primitives *list, const sf_primitive *primitive, sf_diag *diag,
                     int *number);
    int (*modules)(const sf_primitives *list, const char *pattern, int capacity, const char **out);
    sf_status (*find)(sf_primitives *list, const char *module, const sf_sketch *pattern,
                      sf_diag *diag, int *first, int *count);
    sf_status (*find_modules)(sf_primitives *list, const char *module, sf_diag *diag, int *first,
                              int *count);
    bool (*subgraph)(const sf_primitives *list, int number, sf_subgraph_view *out);
    bool (*subgraph_input)(const sf_primitives *list, int number, int index, sf_tensor_type *out);
    bool (*subgraph_result)(const sf_primitives *list, int number, int index, sf_tensor_type *out);
    sf_status (*sketch_new)(sf_diag *diag, sf_sketch **out);
    void (*sketch_free)(sf_sketch *sketch);
    sf_status (*sketch_input)(sf_sketch *sketch, sf_diag *diag, int *out);
    sf_status (*sketch_number)(sf_sketch *sketch, double number, sf_diag *diag, int *out);
    sf_status (*sketch_op)(sf_sketch *sketch, const char *op, int noperands, const int *operands,
                           int nattrs, const sf_sketch_attr *const *attrs, int rank,
                           const int64_t *dims, const char *dtype, sf_diag *diag, int *out);
    sf_status (*sketch_return)(sf_sketch *sketch, int count, const int *results, sf_diag *diag);
    sf_status (*bind_kernel)(const sf_user_kernel *kernel, sf_diag *diag);
} sf_plugin_host;

/* A call of a primitive by a schedule: the module, then nvalues values. Value i is the text texts[i], or where that is NULL
 * numbers[i]. */
typedef struct sf_user_call {
    size_t size; /* of this struct, as the library has it */
    const sf_plugin_host *host;
    sf_primitives *list;
    const char *module; /* a pattern */
    int nvalues;
    const char *const *texts;
    const double *numbers;
    sf_diag *diag;    /* for the host's functions */
    char reason[400]; /* the reason if it does not apply; or "": then `diag` has the reason */
} sf_user_call;

typedef struct sf_user_primitive {
    size_t size; /* sizeof this struct, see api.h */
    int version; /* SF_PLUGIN_VERSION */
    const char *name;
    int (*check)(sf_user_call *call); /* 0: it may be applied; or NULL: always */
    int (*apply)(sf_user_call *call); /* 0: good */
} sf_user_primitive;

typedef const sf_user_primitive *sf_user_primitive_get(void);
#define SF_USER_PRIMITIVE_SYMBOL "sheaf_primitive"

/* Loads one from a shared object, which stays loaded. SF_EUSAGE where there is none, or of another version. */
SF_API sf_status sf_primitive_load(const char *path, sf_diag *diag, const sf_user_primitive **out);

/* Checks the primitive and applies it to a module, with messages about `file` and `line`. Adds an
 * ANNOTATE with its name and all its primitives, or nothing. *first and *count (or NULL) are for
 * undoing it. SF_EMISMATCH if its check or its apply function fails. */
SF_API sf_status sf_primitives_apply(sf_primitives *list, const sf_user_primitive *primitive,
                                     const char *module, int nvalues, const char *const *texts,
                                     const double *numbers, const char *file, int line,
                                     sf_diag *diag, int *first, int *count);

#ifdef __cplusplus
}
#endif

#endif
