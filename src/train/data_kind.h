/* The interface of kinds of data to data.c, and their common functions. */
#ifndef SF_TRAIN_DATA_KIND_H
#define SF_TRAIN_DATA_KIND_H

#include "train/data.h"

/* The functions of a kind of data; `self` is the result of its open function. */
struct sf_data_kind {
    sf_status (*batch)(sf_data *data, int64_t number, const sf_tensor *arguments, sf_diag *diag);
    void (*close)(sf_data *data); /* or NULL */
};

/* The openers of the kinds. */
sf_status sf_data_open_tokens(sf_data *data, sf_diag *diag);
sf_status sf_data_open_batches(sf_data *data, bool is_directory, sf_diag *diag);
sf_status sf_data_open_synthetic(sf_data *data, sf_diag *diag);

/* The item of its epoch at this place of the endless sequence of all epochs. */
int64_t sf_data_item(const sf_data *data, int64_t place);

/* A hash of samples from all over a file: enough to detect another one. */
uint64_t sf_data_fingerprint(sf_str bytes);

/* An argument's type. */
static inline const sf_type *sf_data_type(const sf_data *data, uint32_t index)
{
    return sf_argument_type(data->graph, index);
}

#endif
