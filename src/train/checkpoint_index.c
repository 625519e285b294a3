#include "train/checkpoint_index.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "base/json.h"
#include "ir/name.h"

void sf_checkpoint_shards_name(int rank, int ranks, const char *ending, char out[SF_SHARDS_NAME])
{
    snprintf(out, SF_SHARDS_NAME, "state-%05d-of-%05d%s", rank, ranks, ending);
}

uint64_t sf_tensor_hash(const sf_tensor *tensor)
{
    enum { CHUNK = 4096 };
    const uint16_t probe = 1;
    bool little = *(const unsigned char *)&probe == 1;
    sf_dtype dtype = tensor->type->dtype;
    size_t size = sf_dtype_get(dtype)->bytes;
    uint64_t hash = sf_hash_mix(0, (uint64_t)tensor->type->count);
    unsigned char swapped[CHUNK * 8];
    for (int64_t at = 0; at < tensor->type->count; at += CHUNK) {
        int64_t rest = tensor->type->count - at, count = rest < CHUNK ? rest : CHUNK;
        const unsigned char *bytes = (const unsigned char *)tensor->data + (size_t)at * size;
        for (int64_t i = 0; !little && i < count; i++)
            for (size_t b = 0; b < size; b++)
                swapped[(size_t)i * size + b] = bytes[(size_t)(i + 1) * size - 1 - b];
        hash = sf_hash_bytes(hash, little ? bytes : swapped, (size_t)count * size);
    }
    return hash;
}

static void put_saved_text(sf_json_writer *json, const char *key, const char *value)
{
    sf_json_key(json, key);
    sf_json_put_string(json, value);
}

static void put_int(sf_json_writer *json, const char *key, int64_t value)
{
    sf_json_key(json, key);
    sf_json_put_int(json, value);
}

static void put_hex(sf_json_writer *json, const char *key, uint64_t value)
{
    sf_json_key(json, key);
    sf_json_put_hex(json, value);
}

static void put_saved_layout(sf_json_writer *json, const sf_rank_shards *shards, uint32_t argument)
{
    const sf_type *type = sf_rank_shards_type(shards, argument);
    sf_buf text = {0};
    sf_layout_print(&shards->layouts[argument], &shards->mesh, type->rank, type->dims, &text);
    put_saved_text(json, "layout", text.text);
    sf_buf_free(&text);
}

static void put_saved_tensor(sf_json_writer *json, const sf_state *state, const uint64_t *hashes,
                             uint32_t argument)
{
    const sf_type *type = sf_rank_shards_type(state->shards, argument);
    sf_json_begin_object(json);
    put_saved_text(json, "name", state->names[argument]);
    put_saved_text(json, "dtype", sf_dtype_get(type->dtype)->safetensors);
    sf_json_key(json, "shape");
    sf_json_begin_row(json);
    for (int i = 0; i < type->rank; i++)
        sf_json_put_int(json, type->dims[i]);
    sf_json_end_array(json);
    if (sf_mesh_size(&state->shards->mesh) > 1) {
        put_saved_layout(json, state->shards, argument);
    } else {
        put_saved_text(json, "file", SF_CHECKPOINT_STATE);
        put_hex(json, "hash", hashes[argument]);
    }
    sf_json_end_object(json);
}

uint64_t sf_text_hash(sf_str text)
{
    return sf_hash_bytes(0, text.at, text.length);
}

static bool separates(char c)
{
    return c == ' ' || c == '\n' || c == ',';
}

bool sf_checkpoint_digest(sf_str index, uint64_t *out)
{
    static const char key[] = "\"" SF_CHECKPOINT_DIGEST "\"";
    size_t length = strlen(key), at = index.length < length ? 0 : index.length - length + 1;
    while (at > 0 && memcmp(index.at + at - 1, key, length) != 0)
        at--;
    if (at == 0)
        return false;
    for (at--; at > 0 && separates(index.at[at - 1]);)
        at--;
    *out = sf_text_hash((sf_str){index.at, at});
    return true;
}

static void put_digest(sf_json_writer *json)
{
    put_hex(json, SF_CHECKPOINT_DIGEST, sf_text_hash((sf_str){json->buf->text, json->buf->length}));
}

void sf_checkpoint_put_index(const sf_state *state, const sf_checkpoint_info *info,
                             const uint64_t *hashes, const uint64_t *shards, sf_buf *out)
{
    const sf_graph *graph = state->shards->graph;
    bool split = sf_mesh_size(&state->shards->mesh) > 1;
    sf_json_writer json = {.buf = out, .indent = true};
    int64_t bytes = 0;
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            bytes += sf_type_bytes(sf_rank_shards_type(state->shards, i));
    sf_json_begin_object(&json);
    put_saved_text(&json, "format", "sheaf checkpoint");
    put_int(&json, "version", SF_CHECKPOINT_VERSION);
    put_int(&json, "step", info->step);
    put_hex(&json, "seed", info->seed);
    put_hex(&json, "graph", info->graph);
    put_saved_text(&json, "data", info->data);
    put_int(&json, "position", info->step);
    put_int(&json, "bytes", bytes);
    if (split) {
        sf_json_key(&json, "mesh");
        sf_mesh_put_json(&state->shards->mesh, &json);
        sf_json_key(&json, "pieces");
        sf_json_begin_array(&json);
        for (int r = 0; r < sf_mesh_size(&state->shards->mesh); r++)
            sf_json_put_hex(&json, shards[r]);
        sf_json_end_array(&json);
    }
    sf_json_key(&json, "tensors");
    sf_json_begin_array(&json);
    for (uint32_t i = 0; i < graph->top->narguments; i++)
        if (sf_argument_is_kept(&graph->arguments[i]))
            put_saved_tensor(&json, state, hashes, i);
    sf_json_end_array(&json);
    put_digest(&json);
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}

void sf_checkpoint_put_hashes(const sf_state *state, size_t count, const uint32_t *arguments,
                              const uint64_t *hashes, sf_buf *out)
{
    sf_json_writer json = {.buf = out, .indent = true};
    sf_json_begin_object(&json);
    for (size_t i = 0; i < count; i++) {
        sf_json_key(&json, state->names[arguments[i]]);
        sf_json_put_hex(&json, hashes[arguments[i]]);
    }
    sf_json_end_object(&json);
    sf_buf_putc(out, '\n');
}
