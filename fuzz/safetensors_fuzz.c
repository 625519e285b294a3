/* Parses any bytes as safetensors; of what is accepted, every element is read. */
#include <stddef.h>
#include <stdint.h>

#include "file/safetensors.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    sf_safetensors file;
    sf_diag *diag = sf_diag_new();
    sf_str bytes = {(const char *)data, size};
    if (sf_safetensors_parse(bytes, "fuzz", diag, &file) == SF_OK) {
        double sum = 0;
        for (size_t i = 0; i < file.count; i++)
            for (int64_t k = 0; k < file.tensors[i].tensor.type->count; k++)
                sum += sf_get_f64(&file.tensors[i].tensor, k);
        (void)sum;
        sf_safetensors_close(&file);
    }
    sf_diag_free(diag);
    return 0;
}
