#include "front/text_module.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"

sf_module *sf_module_new(sf_pool *pool)
{
    sf_module *module = sf_alloc(sizeof *module);
    module->graph = sf_graph_new(pool);
    return module;
}

void sf_module_free(sf_module *module)
{
    if (!module)
        return;
    sf_graph_free(module->graph);
    sf_free(module);
}

sf_func *sf_module_add(sf_module *module, sf_str name, sf_loc loc)
{
    sf_arena *arena = &module->graph->arena;
    sf_func *func = SF_NEW(arena, sf_func);
    func->name = sf_pool_string(module->graph->pool, name);
    func->block = sf_block_new(module->graph);
    func->loc = loc;
    SF_PUSH(arena, module->funcs, module->nfuncs, module->func_capacity, func);
    return func;
}

sf_func *sf_module_find(const sf_module *module, const char *interned_name)
{
    for (size_t i = 0; i < module->nfuncs; i++)
        if (module->funcs[i]->name == interned_name)
            return module->funcs[i];
    return NULL;
}

static bool is_blank(sf_str text)
{
    for (size_t i = 0; i < text.length; i++)
        if (!strchr(" \t\r\n", text.at[i]) || !text.at[i])
            return false;
    return true;
}

/* Text has no zeros and no control characters; serialized protocol buffers and flat buffers soon have
 * several. A single one may be a slip, which a reader can point at. */
static bool is_binary(sf_str text)
{
    enum { LOOKED_AT = 64 };
    int controls = 0;
    for (size_t i = 0; i < text.length && i < LOOKED_AT; i++) {
        unsigned char c = (unsigned char)text.at[i];
        controls += c < ' ' && c != '\t' && c != '\n' && c != '\r';
        controls += c == 0;
    }
    return controls > 1;
}

static const char how[] = "jax.jit(f).lower(*args).as_text()";
#define FROM_TORCH "in PyTorch write torchax's or torch_xla's StableHLO of the whole training step"

/* What is taken for a step, by how it begins; what is printed of a step often is. */
static const struct {
    const char *begins, *what, *advice;
} others[] = {
    {"ML\xEFR", "MLIR bytecode, not text",
     "in JAX write jax.jit(f).lower(*args).as_text(), or exported.mlir_module(); stablehlo-opt "
     "FILE "
     "also turns bytecode into text"},
    {"PK\003\004", "a zip archive, as torch.save and torch.export.save write them, not text",
     FROM_TORCH},
    {"\xFF\xFE", "UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"},
    {"\xFE\xFF", "UTF-16, not UTF-8", "save it as UTF-8: iconv -f UTF-16 -t UTF-8 FILE"},
    {"\x80\002", "a pickle, not text", NULL},
    {"\x80\003", "a pickle, not text", NULL},
    {"\x80\004", "a pickle, not text", NULL},
    {"\x80\005", "a pickle, not text", NULL},
    {"{ lambda", "a jaxpr, as jax.make_jaxpr prints it", NULL},
    {"{lambda", "a jaxpr, as jax.make_jaxpr prints it", NULL},
    {"let ", "a jaxpr, as jax.make_jaxpr prints it", NULL},
    {"Exported(", "what Python prints of a jax.export.Exported",
     "write exported.mlir_module(), which is the text"},
    {"ExportedProgram", "what Python prints of a torch.export.ExportedProgram",
     FROM_TORCH "; an ExportedProgram is the forward pass alone"},
    {"GraphModule(", "what Python prints of a torch.fx.GraphModule", FROM_TORCH},
    {"class GraphModule", "code of a torch.fx.GraphModule", FROM_TORCH},
    {"graph(", "a graph of TorchScript or torch.fx", FROM_TORCH},
    {"graph():", "a graph of torch.fx", FROM_TORCH},
    {"<jax.", "what Python prints of an object of JAX", NULL},
    {"<jaxlib.", "what Python prints of an object of JAX", NULL},
    {"{", "JSON, as plans, sidecars and devices are", "the step is what a plan was made from"},
    {"import ", "Python source", NULL},
    {"from ", "Python source", NULL},
    {"def ", "Python source", NULL},
    {"@", "Python source", NULL},
    {"#!", "a script", NULL},
    {"\"\"\"", "Python source", NULL},
    {"<", "markup, such as a page that was downloaded", NULL},
};

/* Without the blanks and lines of comments that it begins with. */
static sf_str beginning(sf_str text)
{
    size_t at = 0;
    for (;;) {
        while (at < text.length && text.at[at] && strchr(" \t\r\n", text.at[at]))
            at++;
        bool is_comment = text.length - at > 1 &&
                          (text.at[at] == '/' ? text.at[at + 1] == '/'
                                              : text.at[at] == '#' && text.at[at + 1] == ' ');
        if (!is_comment)
            return (sf_str){text.at + at, text.length - at};
        const char *end = memchr(text.at + at, '\n', text.length - at);
        at = end ? (size_t)(end - text.at) : text.length;
    }
}

static bool holds(sf_str text, const char *word)
{
    return memmem(text.at, text.length, word, strlen(word)) != NULL;
}

/* The name of the op of a line, "%0 = \"torch.add\"(...", and what follows it; empty where the line is none: names and texts in it, such
 * as locations, may say anything. */
static sf_str op_of_line(sf_str line)
{
    size_t at = 0;
    while (at < line.length && (line.at[at] == ' ' || line.at[at] == '\t'))
        at++;
    const char *is =
        at < line.length && line.at[at] == '%' ? memchr(line.at + at, '=', line.length - at) : NULL;
    if (!is || memchr(line.at, '"', (size_t)(is - line.at)))
        return (sf_str){line.at, 0};
    at = (size_t)(is + 1 - line.at);
    while (at < line.length && (line.at[at] == ' ' || line.at[at] == '"'))
        at++;
    return (sf_str){line.at + at, line.length - at};
}

/* MLIR in which no op is of StableHLO: the first of these dialects that it has. */
static const char *other_dialect(sf_str text)
{
    static const char *const dialects[] = {
        "mhlo.",  "torch.",  "tosa.",   "linalg.", "tf.",     "tfl.",  "onnx.", "ttir.", "tt.",
        "arith.", "tensor.", "affine.", "scf.",    "memref.", "llvm.", "gpu.",  "vhlo.",
    };
    const char *found = NULL;
    if (holds(text, "stablehlo.") || holds(text, "chlo.") || holds(text, "HloModule"))
        return NULL;
    for (size_t at = 0; at < text.length && !found;) {
        const char *end = memchr(text.at + at, '\n', text.length - at);
        size_t length = end ? (size_t)(end - text.at) - at : text.length - at;
        sf_str op = op_of_line((sf_str){text.at + at, length});
        for (size_t i = 0; i < sizeof dialects / sizeof *dialects && op.length > 0 && !found; i++)
            if (sf_str_starts(op, dialects[i]))
                found = dialects[i];
        at += length + 1;
    }
    return found;
}

static sf_status refuse_text(const char *what, const char *advice, sf_loc loc, sf_diag *diag)
{
    sf_fail(diag, SF_EINPUT, loc, "this is %s: a step is StableHLO or HLO text", what);
    return advice ? sf_hint(diag, "%s", advice)
                  : sf_hint(diag,
                            "in JAX write %s, which is the text; the same with "
                            "as_text(dialect=\"hlo\") is HLO",
                            how);
}

/* One sentence in place of all that a reader would find wrong in it. */
static sf_status refuse_others(sf_str text, sf_loc loc, sf_diag *diag)
{
    text = beginning(text);
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (sf_str_starts(text, others[i].begins))
            return refuse_text(others[i].what, others[i].advice, loc, diag);
    const char *dialect = other_dialect(text);
    if (!dialect)
        return SF_OK;
    char what[64];
    snprintf(what, sizeof what, "MLIR of dialect %.*s, without StableHLO", (int)strlen(dialect) - 1,
             dialect);
    return refuse_text(what,
                       strcmp(dialect, "vhlo.") == 0 || strcmp(dialect, "mhlo.") == 0
                           ? "stablehlo-opt --vhlo-legalize-to-stablehlo and mlir-hlo-opt "
                             "--hlo-legalize-to-stablehlo turn it into StableHLO"
                           : NULL,
                       loc, diag);
}

sf_status sf_text_check(sf_str *text, const char *file, sf_diag *diag)
{
    static const char mark[] = "\xEF\xBB\xBF";
    sf_loc loc = {file, 0, 0};
    if (sf_str_starts(*text, mark))
        *text = (sf_str){text->at + 3, text->length - 3};
    SF_TRY(refuse_others(*text, loc, diag));
    if (is_binary(*text)) {
        sf_fail(diag, SF_EINPUT, loc, "this is a binary file, not text");
        return sf_hint(diag,
                       "in JAX write %s, or the same with as_text(dialect=\"hlo\"); of an HLO "
                       "proto, XlaComputation(data).as_hlo_text()",
                       how);
    }
    if (is_blank(*text)) {
        sf_fail(diag, SF_EINPUT, loc, "the file is empty");
        return sf_hint(diag, "a step is StableHLO or HLO text, what %s gives", how);
    }
    return SF_OK;
}
