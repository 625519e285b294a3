/* The HLO reader: types and functions that the files of this folder share.
 *
 *     hlo_index.c     the header and the place of every computation
 *     hlo_read.c      the whole: index, computations, aliases
 *     hlo_parse.c     computations and instructions: name = shape opcode(operands), attributes
 *     hlo_shape.c     types; tuples, which our graph does not have
 *     hlo_values.c    the values of a computation by name
 *     hlo_attr.c      attributes, after the schema of the op; hlo_window.c those that HLO writes
 *                     its own way
 *     hlo_constant.c  literals
 *     hlo_to_stablehlo.c   instructions to nodes; hlo_control.c those that have computations
 *
 * All computations are found first, so one may be defined after its use: it is then read when it is
 * first named. A value of HLO is a tree of tensors; here it is the list of its leaves, with the
 * shape of the tree beside it. An instruction that fails is reported once; its value is poisoned,
 * and users of a poisoned value are skipped without a message. */
#ifndef SF_FRONT_HLO_HLO_READER_H
#define SF_FRONT_HLO_HLO_READER_H

#include "base/intern.h"
#include "front/hlo/hlo_scan.h"
#include "front/refused_ops.h"
#include "front/text_module.h"
#include "op/op.h"

/* A type, or a tuple of shapes. */
typedef struct sf_hlo_shape {
    const sf_type *type;  /* NULL: a tuple */
    const uint8_t *order; /* of a type: its dimensions as they lie in memory, major to minor; NULL
                             where that is row-major */
    uint32_t nleaves, nparts;
    uint32_t first; /* the first leaf, counted within the tuple that this is a part of */
    struct sf_hlo_shape *parts;
} sf_hlo_shape;

typedef struct sf_hlo_value {
    sf_str name;
    uint64_t hash;
    sf_hlo_shape shape;
    bool is_poisoned; /* then it has no leaves */
    sf_value leaf;
    const sf_value *leaves; /* of a tuple */
} sf_hlo_value;

typedef enum sf_hlo_state {
    SF_HLO_UNREAD,
    SF_HLO_READING,
    SF_HLO_GOOD,
    SF_HLO_BAD,     /* reported */
    SF_HLO_MISSING, /* named, but not in the text */
} sf_hlo_state;

typedef struct sf_hlo_computation {
    sf_str name;
    sf_loc loc;
    sf_hlo_scan body; /* after the opening brace, up to and with the closing one */
    bool is_entry;
    sf_hlo_state state;
    sf_func *func;
    uint32_t nparameters;
    const sf_hlo_shape *parameters;
    sf_hlo_shape root;
} sf_hlo_computation;

/* The kind of an opcode. */
typedef enum sf_hlo_kind {
    SF_HLO_TABLE, /* a row of our table, and nothing special about it */
    SF_HLO_BITCAST,
    SF_HLO_CALL,
    SF_HLO_CONDITIONAL,
    SF_HLO_CONSTANT,
    SF_HLO_COPY,
    SF_HLO_GET_DIMENSION_SIZE,
    SF_HLO_GET_TUPLE_ELEMENT,
    SF_HLO_MAP,
    SF_HLO_PARAMETER,
    SF_HLO_TUPLE,
    SF_HLO_UNKNOWN,
} sf_hlo_kind;

typedef struct sf_hlo_opcode {
    sf_str name;
    sf_hlo_kind kind;
    const sf_opdef *def; /* of the node that it becomes; may be NULL */
} sf_hlo_opcode;

/* An alias of the header: result `result` becomes parameter `parameter`. Both with a path into the
 * tuple. */
typedef struct sf_hlo_path {
    int count;
    int64_t at[SF_MAX_DEPTH];
} sf_hlo_path;

typedef struct sf_hlo_alias {
    sf_loc loc;
    int64_t parameter;
    sf_hlo_path from, to; /* of the result, and within the parameter */
} sf_hlo_alias;

typedef struct sf_hlo_reader {
    sf_arena arena; /* lives as long as the reading */
    sf_module *module;
    sf_diag *diag;
    sf_hlo_computation **computations;
    size_t ncomputations, computation_capacity;
    sf_interner by_name; /* of computations */
    sf_interner opcodes;
    sf_hlo_alias *aliases;
    size_t naliases, alias_capacity;
    const char **paths; /* by node id */
    size_t path_capacity;
    sf_loc end; /* of the text */
    int errors;
    sf_status status; /* of the first error */
    size_t budget;    /* leaves of tuples that may still be passed as operands */
} sf_hlo_reader;

/* The computations that an instruction names. Regions of a node are in this order. */
typedef enum sf_hlo_callee {
    SF_HLO_TO_APPLY,
    SF_HLO_CONDITION,
    SF_HLO_BODY,
    SF_HLO_SELECT,
    SF_HLO_SCATTER,
    SF_HLO_FALSE,
    SF_HLO_TRUE,
    SF_HLO_CALLEES
} sf_hlo_callee;

enum { SF_HLO_MAX_ATTRS = 32, SF_HLO_MAX_ERRORS = 20 };

typedef struct sf_hlo_instruction {
    sf_loc loc;
    sf_str name;
    bool is_root;
    bool is_read;     /* to its end: nothing has to be skipped when it fails */
    bool is_poisoned; /* it uses something that failed */
    sf_hlo_shape shape;
    const sf_hlo_opcode *op;
    uint32_t *operands; /* into the values of the frame */
    uint32_t noperands;
    int64_t parameter; /* number of a parameter */
    int64_t index;     /* of get-tuple-element and get-dimension-size; -1 when absent */
    const sf_attr *attrs[SF_HLO_MAX_ATTRS];
    sf_hlo_computation *callees[SF_HLO_CALLEES];
    sf_hlo_computation **branches;
    size_t nbranches;
    sf_str path, sharding; /* as in the text */
} sf_hlo_instruction;

/* A parameter that was met, by the order of the text. */
typedef struct sf_hlo_parameter {
    int64_t number;
    uint32_t value; /* in the frame */
    sf_str name, path, sharding;
    sf_loc loc;
} sf_hlo_parameter;

/* A computation while it is read. */
typedef struct sf_hlo_frame {
    sf_hlo_reader *reader;
    sf_hlo_computation *computation;
    sf_hlo_scan scan;
    int depth;
    bool is_bad;
    sf_hlo_value *values;
    size_t nvalues, value_capacity;
    uint32_t *slots; /* hash table: number of a value plus one */
    size_t nslots;
    uint32_t root; /* number of a value, or SF_NONE */
    sf_hlo_parameter *parameters;
    size_t nparameters, parameter_capacity;
    uint32_t *operands; /* of the current instruction */
    size_t operand_capacity;
} sf_hlo_frame;

/* hlo_reader.c. Counts a failed status; true while there is room for more errors. */
bool sf_hlo_count_error(sf_hlo_reader *reader, sf_status status);

/* After this error nothing more is read. SF_OK passes. */
sf_status sf_hlo_end(sf_hlo_reader *reader, sf_status status);

/* Sets an attribute of the node by the name of its slot. False when the op has no such slot. */
bool sf_hlo_set_attr(sf_hlo_instruction *inst, const char *name, const sf_attr *value);

/* "{1, 2}" into `out`, which holds `capacity` numbers. */
sf_status sf_hlo_read_ints(sf_hlo_frame *frame, int64_t *out, int capacity, int *count);

/* hlo_index.c. Errors are counted in the reader. */
void sf_hlo_index(sf_hlo_reader *reader, sf_str text, const char *file);

/* Never NULL: a name that the text does not define gives a computation that is MISSING. */
sf_hlo_computation *sf_hlo_find_computation(sf_hlo_reader *reader, sf_str name);

/* hlo_parse.c. Reads a computation that was not read yet. `depth` says how many are being read already. */
void sf_hlo_read_computation(sf_hlo_reader *reader, sf_hlo_computation *computation, int depth);

/* hlo_shape.c */
sf_status sf_hlo_read_shape(sf_hlo_reader *reader, sf_hlo_scan *scan, sf_hlo_shape *out);
bool sf_hlo_same_shape(const sf_hlo_shape *a, const sf_hlo_shape *b);

/* The types of the leaves, in order; `out` holds nleaves. */
void sf_hlo_leaf_types(const sf_hlo_shape *shape, const sf_type **out);

/* The shape for messages, cut off at the length of `text`. */
const char *sf_hlo_shape_text(const sf_hlo_shape *shape, char text[SF_TYPE_TEXT]);

/* hlo_values.c. The number of a value in the frame; SF_NONE when the name is unknown. */
uint32_t sf_hlo_find_value(const sf_hlo_frame *frame, sf_str name);

/* Adds a value; false when the name is taken, and then it only stays the older one. */
bool sf_hlo_add_value(sf_hlo_frame *frame, const sf_hlo_value *value, uint32_t *out);

static inline const sf_value *sf_hlo_leaves(const sf_hlo_value *value)
{
    return value->shape.type ? &value->leaf : value->leaves;
}

/* hlo_attr.c. Reads ", key=value, ..." after the operands. */
sf_status sf_hlo_read_attrs(sf_hlo_frame *frame, sf_hlo_instruction *inst);

/* hlo_window.c: attributes that HLO writes in a way of its own. */
sf_status sf_hlo_read_window(sf_hlo_frame *frame, sf_hlo_instruction *inst);
sf_status sf_hlo_read_dim_labels(sf_hlo_frame *frame, sf_hlo_instruction *inst);
sf_status sf_hlo_read_slice(sf_hlo_frame *frame, sf_hlo_instruction *inst);
sf_status sf_hlo_read_padding(sf_hlo_frame *frame, sf_hlo_instruction *inst);

/* hlo_constant.c. The text between the parentheses of a constant. */
sf_status sf_hlo_read_literal(sf_hlo_frame *frame, const sf_type *type, const sf_attr **out);

/* hlo_to_stablehlo.c. Adds the nodes of an instruction and its value. */
sf_status sf_hlo_convert(sf_hlo_frame *frame, sf_hlo_instruction *inst);

/* hlo_build.c. Adds one node with the path of the instruction. */
sf_status sf_hlo_build(sf_hlo_frame *frame, const sf_hlo_instruction *inst, sf_block *block,
                       const sf_node_spec *spec, sf_node **out);

/* The value of the instruction; `leaves` is kept by those that are tuples. */
sf_status sf_hlo_define_leaves(sf_hlo_frame *frame, sf_hlo_instruction *inst,
                               const sf_value *leaves);

/* The same: its leaves are result, result + 1, ... of a node. */
sf_status sf_hlo_define(sf_hlo_frame *frame, sf_hlo_instruction *inst, sf_value result);

/* The leaves of operands from `first` on, as one list. */
sf_status sf_hlo_flatten(sf_hlo_frame *frame, const sf_hlo_instruction *inst, uint32_t first,
                         uint32_t end, const sf_value **out, uint32_t *count);

/* The types of the results as declared. */
const sf_type **sf_hlo_declared(sf_hlo_frame *frame, const sf_hlo_instruction *inst);

/* hlo_control.c */
sf_status sf_hlo_convert_call(sf_hlo_frame *frame, sf_hlo_instruction *inst);
sf_status sf_hlo_convert_conditional(sf_hlo_frame *frame, sf_hlo_instruction *inst);
sf_status sf_hlo_convert_map(sf_hlo_frame *frame, sf_hlo_instruction *inst);

#endif
