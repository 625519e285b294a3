"""Writes a program that calls every exported function with each pointer argument NULL in turn.

    nulls.py HEADERS >program.c

A pointer must not be NULL unless OPTIONAL says so: then the function returns SF_EUSAGE with a message that names the
parameter or, without a status, the value for "none". A parameter of a type that is not in VALUES is an error of this script:
new functions get their rows by themselves, new types get a line here.
"""

import re
import sys

import headers

OPTIONAL = {
    "sf_assign": ["ops", "devices"],
    "sf_diag_clear": ["diag"],
    "sf_diag_count": ["diag"],
    "sf_diag_get": ["diag"],
    "sf_diag_text": ["diag"],
    "sf_graph_scopes": ["out"],
    "sf_interrupt_clear": ["interrupt"],
    "sf_interrupt_is_raised": ["interrupt"],
    "sf_interrupt_raise": ["interrupt"],
    "sf_plan_explain": ["what"],
    "sf_plan_load_step": ["step"],
    "sf_plan_tensors": ["name", "out"],
    "sf_plan_use_passes": ["cluster"],
    "sf_primitives_add": ["number"],
    "sf_primitives_apply": ["texts", "numbers", "file", "first", "count"],
    "sf_primitives_find_where": ["context"],
    "sf_primitives_modules": ["pattern", "out"],
    "sf_primitives_params": ["modules", "param", "out"],
    "sf_session_init": ["init"],
    "sf_session_read": ["data"],
    "sf_session_read_named": ["data"],
    "sf_session_read_result": ["data"],
    "sf_session_read_result_named": ["data"],
    "sf_session_read_result_shard": ["data"],
    "sf_session_read_shard": ["data"],
    "sf_session_run": ["loss"],
    "sf_session_write": ["data"],
    "sf_session_write_named": ["data"],
    "sf_session_write_shard": ["data"],
    "sf_settings_choice": ["settings"],
    "sf_settings_int": ["settings"],
    "sf_sketch_op": ["operands", "attrs", "dims", "dtype"],
    "sf_space_factors": ["ops"],
    "sf_train": ["report"],
    "sf_trans": ["ops"],
    "sf_tune": ["context"],
}

# Types whose NULL is nothing special in any function.
ALWAYS_OPTIONAL = re.compile(r"sf_diag \*$|_options \*$|const sf_output \*$|const sf_plan_spec \*$")

# Calls that do all of what they do for a NULL, for seconds: only with SHEAF_NIGHTLY.
SLOW = {("sf_calibrate", "options")}

# What stands for an argument that is not NULL, by its type without const, and by its name where that matters.
VALUES = {
    "sf_graph *": "graph", "sf_plan *": "plan", "sf_cluster *": "cluster", "sf_diag *": "diag",
    "sf_primitives *": "list", "sf_sketch *": "sketch", "sf_session *": "session",
    "sf_choices *": "choices", "sf_solution *": "solution", "sf_space *": "space",
    "sf_console *": "console", "sf_interrupt *": "interrupt", "sf_verify_report *": "report",
    "sf_tune_report *": "tuned", "sf_settings *": "NULL", "sf_output *": "&nowhere",
    "sf_tensor_type *": "&SIZED(sf_tensor_type)", "sf_box *": "&SIZED(sf_box)",
    "sf_op_view *": "&SIZED(sf_op_view)", "sf_subgraph_view *": "&SIZED(sf_subgraph_view)",
    "sf_plan_origin *": "&SIZED(sf_plan_origin)", "sf_diag_entry *": "&SIZED(sf_diag_entry)",
    "sf_plan_tensor_view *": "&SIZED(sf_plan_tensor_view)",
    "sf_train_report *": "&SIZED(sf_train_report)", "sf_primitive *": "&note", "sf_task *": "&task",
    "sf_user_kernel *": "&kernel", "sf_user_primitive *": "&primitive",
    "sf_sketch_attr *const *": "&attr", "sf_take_op *": "take", "sf_tune_apply *": "apply",
    "void *": "room", "char *": "text", "char *const *": "texts", "char * *": "(void *)room",
    "int *": "(int *)room", "int64_t *": "(int64_t *)room", "double *": "(double *)room",
    "sf_calibrate_options *": "&hurry", "sf_plan_spec *": "&SIZED(sf_plan_spec)",
    "const char *step": "STEP", "const char *path": "STEP", "const char *passes": '"none"',
    "const char *against": "STEP",
}
NUMBERS = {"devices": "2", "step": "1", "high": "1", "index": "0", "rank": "0"}


def value(kind, name):
    plain = re.sub(r"\bconst (?!\*)", "", kind).strip()
    if "*" not in kind and not kind.startswith(("sf_take_op", "sf_tune_apply")):
        return NUMBERS.get(name, "0")
    for key in (f"{kind}{name}", plain):
        if key in VALUES:
            return VALUES[key]
    if plain.endswith("_options *"):
        return f"&SIZED({plain[:-2]})"
    if re.fullmatch(r"sf_\w+ \*\*", plain) or plain == "char **":
        return "(void *)room"
    sys.exit(f"nulls.py: there is no value for {kind}{name}")


def is_pointer(kind):
    return "*" in kind


def rows(functions):
    for result, function, parameters in functions:
        optional = OPTIONAL.pop(function, [])
        for name in optional:
            if name not in [own for _, own in parameters]:
                sys.exit(f"nulls.py: {function} has no parameter {name}")
        for at, (kind, name) in enumerate(parameters):
            if not is_pointer(kind):
                continue
            free = function.endswith(("_free", "_close"))
            may = free or name in optional or ALWAYS_OPTIONAL.search(kind)
            values = [value(*p) for p in parameters]
            values[at] = "NULL"
            yield result, function, name, bool(may), ", ".join(values)
    if OPTIONAL:
        sys.exit(f"nulls.py: there is no function {', '.join(OPTIONAL)}")


def verdict(result, call, name, may):
    if result == "void":
        return f"{call}; return true;"
    if may:
        return f"(void){call}; return true;"
    if result == "sf_status":
        return f"return is_refused({call}, \"'{name}' is NULL\");"
    if "*" in result:
        return f"return {call} == NULL;"
    if result == "sf_role":
        return f"return {call} == SF_ROLE_OTHER;"
    return f"double got = (double){call}; return got == 0 || got == -1;"


def main():
    text = headers.read(sys.argv[1])
    table = []
    print('#include "nulls.h"\n')
    for number, (result, function, name, may, values) in enumerate(rows(headers.functions(text))):
        print(f"static bool row_{number}(void)\n{{")
        print(f"    {verdict(result, f'{function}({values})', name, may)}\n}}")
        slow = "true" if (function, name) in SLOW else "false"
        table.append(f'    {{"{function}", "{name}", row_{number}, {slow}}},')
    print("\nstatic const row rows[] = {")
    print("\n".join(table))
    print("};\n\nint main(void)\n{\n    return run_rows(sizeof rows / sizeof *rows, rows);\n}")


main()
