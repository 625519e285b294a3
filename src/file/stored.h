/* Tensors of a file, taken for tensors of a step.
 *
 * Whoever wrote the file may have had other types: a Python integer is saved as i64 where the step has i32, a mask as
 * bytes where it has booleans. Numbers are converted where nothing is lost by that; the first one that does not fit is
 * named. All files that bring values come through here, except for checkpoints, which are exact. */
#ifndef SF_FILE_STORED_H
#define SF_FILE_STORED_H

#include "base/diag.h"
#include "ir/tensor.h"

typedef struct sf_stored {
    const sf_tensor *tensor; /* as the file has it, whole */
    const char *name, *path; /* for messages: of the tensor and of the file */
    bool
        rounds; /* floats may be rounded to a narrower type, as weights are; other numbers never change */
} sf_stored;

/* Whether the shapes are the same, whatever pools the two come from. Writers store a scalar as [] or as [1]. */
bool sf_stored_shape_fits(const sf_type *stored, const sf_type *type);

/* Whether elements of one type can be those of another at all, and whether both are floats or both are none: where
 * tensors are found by their types, others are not looked for. */
bool sf_stored_converts(sf_dtype stored, sf_dtype dtype);
bool sf_stored_is_akin(sf_dtype stored, sf_dtype dtype);

/* That `type` is not what is stored, as an error. */
sf_status sf_stored_refuse(const sf_stored *stored, const sf_type *type, sf_diag *diag);

/* Takes `count` elements from `first` on, as elements of `dtype` from `at` on. The one converts to the other. */
sf_status sf_stored_take(const sf_stored *stored, int64_t first, int64_t count, sf_dtype dtype,
                         void *to, int64_t at, sf_diag *diag);

/* The whole as a tensor of that type; a view of what is stored where that will do, else in the arena. */
sf_status sf_stored_view(const sf_stored *stored, const sf_type *type, sf_arena *arena,
                         sf_diag *diag, sf_tensor *out);

#endif
