/* safetensors: named tensors in a file.
 *
 *     8 bytes   length of the header, little-endian
 *     header    {"NAME": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}, ...,
 *                "__metadata__": {"KEY": "VALUE", ...}}, padded with spaces
 *     data      packed, row-major, little-endian; offsets count from here
 *
 * The reader is strict: the ranges of the tensors tile the data without gap or overlap, each is as
 * long as its type says, and the header has nothing else. Elements narrower than a byte are
 * refused, because writers do not agree on how to pack them (a BOOL is a byte, 0 or 1). */
#ifndef SF_FILE_SAFETENSORS_H
#define SF_FILE_SAFETENSORS_H

#include "ir/attr.h"
#include "ir/tensor.h"

enum { SF_SAFETENSORS_MOST_HEADER = 100000000 };

typedef struct sf_named_tensor {
    sf_str name;
    sf_tensor tensor; /* whole; the data may be at any address, aligned or not, and is read-only */
} sf_named_tensor;

typedef struct sf_named_text {
    sf_str key, value;
} sf_named_text;

/* An open file. Owns its arena, in which everything lives, and a pool for the types. */
typedef struct sf_safetensors {
    sf_arena arena;
    sf_pool *pool;
    size_t count;
    sf_named_tensor *tensors; /* in the order of the header */
    const sf_named_tensor **by_name;
    size_t nmetadata;
    sf_named_text *metadata;
} sf_safetensors;

/* Reads a whole file, also compressed; "-" is standard input. On success the caller closes it. */
sf_status sf_safetensors_read(const char *path, sf_diag *diag, sf_safetensors *out);

/* The same from memory, which must outlive the result: tensors are views of it if the byte order
 * allows. Messages use `file` as its name. */
sf_status sf_safetensors_parse(sf_str bytes, const char *file, sf_diag *diag, sf_safetensors *out);

/* Frees everything; a zeroed one is closed. */
void sf_safetensors_close(sf_safetensors *file);

/* NULL when there is no tensor of that name. */
const sf_tensor *sf_safetensors_find(const sf_safetensors *file, const char *name);

/* Replaces the file (see sf_file_write) by these tensors, in this order, with the header padded to
 * a multiple of 8 bytes. Names differ and are not "__metadata__". Fails with SF_EUNSUPPORTED for
 * elements narrower than a byte. */
sf_status sf_safetensors_write(const char *path, size_t count, const sf_named_tensor *tensors,
                               sf_diag *diag);

/* Where the data of tensors is, that are not in memory all at once: each is lent, written and given back, one
 * after the other. Neither may allocate (base/mem.h), for a file is open meanwhile. */
typedef struct sf_tensor_source {
    sf_status (*lend)(void *context, size_t index, sf_diag *diag, void **data);
    sf_status (*give_back)(void *context, size_t index, sf_diag *diag);
    void *context;
} sf_tensor_source;

/* The same, of tensors whose data the source has. */
sf_status sf_safetensors_write_from(const char *path, size_t count, const sf_named_tensor *tensors,
                                    const sf_tensor_source *source, sf_diag *diag);

#endif
