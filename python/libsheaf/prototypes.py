"""The C interface of the library. scripts/make-prototypes writes this file from include/sheaf; do not edit it.

A pointer to a struct that is not defined is a c_void_p: graphs, plans, clusters and so on are numbers here.
"""

# fmt: off
from ctypes import (CFUNCTYPE, POINTER, Structure, c_bool, c_char, c_char_p, c_double, c_int, c_int64, c_size_t,
                    c_uint32, c_uint64, c_void_p)

SF_EVENT_START = 0
SF_EVENT_STEP = 1
SF_EVENT_SAVED = 2
SF_EVENT_STAGE = 3
SF_EVENT_SOLVE = 4
SF_TENSOR_DIMS = 16
SF_ROLE_PARAM = 0
SF_ROLE_STATE = 1
SF_ROLE_BATCH = 2
SF_ROLE_KEY = 3
SF_ROLE_OTHER = 4
SF_USER_FOR_TIME = 0
SF_USER_FOR_MEMORY = 1
SF_LAYOUT_TEXT = 160
SF_PRIMITIVE_SET = 0
SF_PRIMITIVE_SHARD = 1
SF_PRIMITIVE_SYNC = 2
SF_PRIMITIVE_CHECKPOINT = 3
SF_PRIMITIVE_PIPELINE_SPLIT = 4
SF_PRIMITIVE_DECOMPOSE = 5
SF_PRIMITIVE_ANNOTATE = 6
SF_PRIMITIVE_TRACE = 7
SF_PRIMITIVE_REPLACE = 8
SF_PRIMITIVE_FUSE = 9
SF_PRIMITIVE_TRANS = 10
SF_PRIMITIVE_ASSIGN = 11
SF_PRIMITIVE_ORDER = 12
SF_PRIMITIVE_FORK_RNG = 13
SF_STOP_OPTIMAL = 0
SF_STOP_GAP = 1
SF_STOP_INFEASIBLE = 2
SF_STOP_SECONDS = 3
SF_STOP_WORK = 4
SF_STOP_ASKED = 5
SF_IN_SPACE = 0
SF_IN_TIME = 1
SF_EVERY = -1
SF_PASS_FORWARD = 0
SF_PASS_BACKWARD = 1
SF_PASS_WEIGHTS = 2
SF_OK = 0
SF_EINPUT = 1
SF_EUNSUPPORTED = 2
SF_EMISMATCH = 3
SF_EUSAGE = 4
SF_EIO = 5
SF_ENOMEM = 6
SF_EPEER = 7
SF_SEVERITY_ERROR = 0
SF_SEVERITY_WARNING = 1
SF_ORDER_DEFAULT = 0
SF_ORDER_SEQUENTIAL = 1
SF_ORDER_SHUFFLED = 2


class sf_calibrate_options(Structure): pass
class sf_eval_options(Structure): pass
class sf_difference(Structure): pass
class sf_verify_report(Structure): pass
class sf_verify_options(Structure): pass
class sf_event(Structure): pass
class sf_load_options(Structure): pass
class sf_tensor_type(Structure): pass
class sf_output(Structure): pass
class sf_user_inst(Structure): pass
class sf_user_passing(Structure): pass
class sf_user_pass(Structure): pass
class sf_plan_options(Structure): pass
class sf_sim_options(Structure): pass
class sf_report_options(Structure): pass
class sf_plan_origin(Structure): pass
class sf_box(Structure): pass
class sf_plan_tensor_view(Structure): pass
class sf_kernel_tensor(Structure): pass
class sf_user_kernel(Structure): pass
class sf_plugin_host(Structure): pass
class sf_user_call(Structure): pass
class sf_user_primitive(Structure): pass
class sf_primitive(Structure): pass
class sf_op_view(Structure): pass
class sf_subgraph_view(Structure): pass
class sf_show_options(Structure): pass
class sf_script_options(Structure): pass
class sf_session_options(Structure): pass
class sf_sketch_attr(Structure): pass
class sf_solve_progress(Structure): pass
class sf_solve_options(Structure): pass
class sf_solution(Structure): pass
class sf_task(Structure): pass
class sf_plan_spec(Structure): pass
class sf_diag_entry(Structure): pass
class sf_train_progress(Structure): pass
class sf_train_options(Structure): pass
class sf_train_report(Structure): pass
class sf_tune_options(Structure): pass
class sf_trial(Structure): pass
class sf_tune_report(Structure): pass


sf_listener = CFUNCTYPE(c_bool, c_void_p, POINTER(sf_event))
sf_user_pass_get = CFUNCTYPE(POINTER(sf_user_pass))
sf_user_kernel_get = CFUNCTYPE(POINTER(sf_user_kernel))
sf_user_primitive_get = CFUNCTYPE(POINTER(sf_user_primitive))
sf_take_op = CFUNCTYPE(c_bool, c_void_p, POINTER(sf_op_view))
sf_tune_apply = CFUNCTYPE(c_int, c_void_p, c_void_p, c_void_p, c_void_p)


sf_calibrate_options._fields_ = [
    ("size", c_size_t),
    ("ranks", c_int),
    ("threads", c_int),
    ("seconds", c_double),
    ("largest", c_int64),
    ("name", c_char_p),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("engine", c_char_p),
    ("precision", c_char_p),
    ("interrupt", c_void_p)]
sf_eval_options._fields_ = [
    ("size", c_size_t),
    ("inputs", c_char_p),
    ("outputs", c_char_p),
    ("memory", c_int64),
    ("engine", c_char_p),
    ("threads", c_int)]
sf_difference._fields_ = [
    ("size", c_size_t),
    ("name", c_char_p),
    ("error", c_double),
    ("index", c_int64),
    ("ours", c_double),
    ("theirs", c_double),
    ("is_weight", c_bool),
    ("before", c_double),
    ("tolerance", c_double),
    ("differs", c_bool),
    ("unstable", c_int64),
    ("excused", c_int64),
    ("step", c_int),
    ("rank", c_int)]
sf_verify_report._fields_ = [
    ("size", c_size_t),
    ("nresults", c_int),
    ("results", POINTER(POINTER(sf_difference))),
    ("worst", c_int),
    ("nlosses", c_int),
    ("losses", POINTER(c_double)),
    ("expected_losses", POINTER(c_double)),
    ("loss_error", c_double),
    ("loss_tolerance", c_double),
    ("passed", c_bool),
    ("ranks", c_int),
    ("rank", c_int),
    ("noisy_runs", c_int64),
    ("approximate", c_bool)]
sf_verify_options._fields_ = [
    ("size", c_size_t),
    ("against", c_char_p),
    ("tolerance", c_double),
    ("loss_tolerance", c_double),
    ("steps", c_int),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("engine", c_char_p),
    ("threads", c_int),
    ("init", c_char_p),
    ("data", c_char_p),
    ("shrunk", c_bool),
    ("limit", c_double),
    ("check", c_bool),
    ("seed", c_uint64),
    ("device_memory", c_int64),
    ("precision", c_char_p),
    ("interrupt", c_void_p)]
sf_event._fields_ = [
    ("size", c_size_t),
    ("kind", c_int),
    ("rank", c_int),
    ("text", c_char_p),
    ("step", c_int64),
    ("steps", c_int64),
    ("loss", c_double),
    ("train", POINTER(sf_train_progress)),
    ("solve", POINTER(sf_solve_progress))]
sf_load_options._fields_ = [
    ("size", c_size_t),
    ("unroll", c_int64),
    ("most_nodes", c_int64),
    ("sidecar", c_char_p),
    ("state", c_char_p),
    ("assume_trip_count", c_int64),
    ("strict", c_bool)]
sf_tensor_type._fields_ = [
    ("size", c_size_t),
    ("dtype", c_char_p),
    ("bytes", c_int),
    ("rank", c_int),
    ("count", c_int64),
    ("dims", c_int64 * 16)]
sf_output._fields_ = [
    ("size", c_size_t),
    ("path", c_char_p),
    ("write", CFUNCTYPE(c_bool, c_void_p, c_void_p, c_size_t)),
    ("context", c_void_p)]
sf_user_inst._fields_ = [
    ("size", c_size_t),
    ("kind", c_char_p),
    ("scope", c_char_p),
    ("seconds", c_double),
    ("exposed", c_double),
    ("bytes", c_int64),
    ("memory", c_int64),
    ("goes_beside", c_bool),
    ("nbefore", c_uint32),
    ("before", POINTER(c_uint32))]
sf_user_passing._fields_ = [
    ("size", c_size_t),
    ("count", c_uint32),
    ("insts", POINTER(POINTER(sf_user_inst))),
    ("limit", c_int64),
    ("runs", c_double),
    ("order", POINTER(c_uint32)),
    ("note", c_char * 200)]
sf_user_pass._fields_ = [
    ("size", c_size_t),
    ("version", c_int),
    ("name", c_char_p),
    ("aim", c_int),
    ("run", CFUNCTYPE(c_int, POINTER(sf_user_passing)))]
sf_plan_options._fields_ = [
    ("size", c_size_t),
    ("cluster", c_void_p),
    ("margin", c_double),
    ("level", c_int),
    ("seconds", c_double),
    ("recipes", c_bool),
    ("threads", c_int),
    ("step_file", c_char_p),
    ("cluster_name", c_char_p),
    ("misfit", POINTER(sf_output)),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("interrupt", c_void_p),
    ("reserve", c_int64)]
sf_sim_options._fields_ = [
    ("size", c_size_t),
    ("trace", POINTER(sf_output)),
    ("ranks", c_int),
    ("against", c_char_p)]
sf_report_options._fields_ = [
    ("size", c_size_t),
    ("title", c_char_p),
    ("against", c_char_p),
    ("json", c_bool),
    ("threads", c_int)]
sf_plan_origin._fields_ = [
    ("size", c_size_t),
    ("step", c_char * 4096),
    ("cluster", c_char * 4096)]
sf_box._fields_ = [
    ("size", c_size_t),
    ("rank", c_int),
    ("offset", c_int64 * 16),
    ("extent", c_int64 * 16)]
sf_plan_tensor_view._fields_ = [
    ("size", c_size_t),
    ("name", c_char * 256),
    ("phase", c_char_p),
    ("dtype", c_char_p),
    ("rank", c_int),
    ("dims", c_int64 * 16),
    ("layout", c_char * 160)]
sf_kernel_tensor._fields_ = [
    ("size", c_size_t),
    ("type", POINTER(sf_tensor_type)),
    ("data", c_void_p)]
sf_user_kernel._fields_ = [
    ("size", c_size_t),
    ("version", c_int),
    ("name", c_char_p),
    ("rows", c_int),
    ("run", CFUNCTYPE(c_int, c_int, POINTER(POINTER(sf_kernel_tensor)), c_int, POINTER(POINTER(sf_kernel_tensor))))]
sf_plugin_host._fields_ = [
    ("size", c_size_t),
    ("version", c_int),
    ("add", CFUNCTYPE(c_int, c_void_p, POINTER(sf_primitive), c_void_p, POINTER(c_int))),
    ("modules", CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_char_p))),
    ("find", CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, c_void_p, POINTER(c_int), POINTER(c_int))),
    ("find_modules", CFUNCTYPE(c_int, c_void_p, c_char_p, c_void_p, POINTER(c_int), POINTER(c_int))),
    ("subgraph", CFUNCTYPE(c_bool, c_void_p, c_int, POINTER(sf_subgraph_view))),
    ("subgraph_input", CFUNCTYPE(c_bool, c_void_p, c_int, c_int, POINTER(sf_tensor_type))),
    ("subgraph_result", CFUNCTYPE(c_bool, c_void_p, c_int, c_int, POINTER(sf_tensor_type))),
    ("sketch_new", CFUNCTYPE(c_int, c_void_p, POINTER(c_void_p))),
    ("sketch_free", CFUNCTYPE(None, c_void_p)),
    ("sketch_input", CFUNCTYPE(c_int, c_void_p, c_void_p, POINTER(c_int))),
    ("sketch_number", CFUNCTYPE(c_int, c_void_p, c_double, c_void_p, POINTER(c_int))),
    ("sketch_op", CFUNCTYPE(c_int, c_void_p, c_char_p, c_int, POINTER(c_int), c_int, POINTER(POINTER(sf_sketch_attr)), c_int, POINTER(c_int64), c_char_p, c_void_p, POINTER(c_int))),
    ("sketch_return", CFUNCTYPE(c_int, c_void_p, c_int, POINTER(c_int), c_void_p)),
    ("bind_kernel", CFUNCTYPE(c_int, POINTER(sf_user_kernel), c_void_p))]
sf_user_call._fields_ = [
    ("size", c_size_t),
    ("host", POINTER(sf_plugin_host)),
    ("list", c_void_p),
    ("module", c_char_p),
    ("nvalues", c_int),
    ("texts", POINTER(c_char_p)),
    ("numbers", POINTER(c_double)),
    ("diag", c_void_p),
    ("reason", c_char * 400)]
sf_user_primitive._fields_ = [
    ("size", c_size_t),
    ("version", c_int),
    ("name", c_char_p),
    ("check", CFUNCTYPE(c_int, POINTER(sf_user_call))),
    ("apply", CFUNCTYPE(c_int, POINTER(sf_user_call)))]
sf_primitive._fields_ = [
    ("size", c_size_t),
    ("kind", c_int),
    ("module", c_char_p),
    ("param", c_char_p),
    ("dim", c_int),
    ("axis", c_char_p),
    ("mode", c_char_p),
    ("op", c_char_p),
    ("name", c_char_p),
    ("value", c_char_p),
    ("file", c_char_p),
    ("line", c_int),
    ("subgraphs", POINTER(c_int)),
    ("nsubgraphs", c_int),
    ("sketches", POINTER(c_void_p)),
    ("fragment", c_char_p),
    ("parts", c_int),
    ("microbatch", c_int),
    ("devices", POINTER(c_int)),
    ("ndevices", c_int),
    ("before", POINTER(sf_task)),
    ("after", POINTER(sf_task)),
    ("kernel", c_char_p),
    ("backwards", POINTER(c_void_p)),
    ("backward", c_char_p)]
sf_op_view._fields_ = [
    ("size", c_size_t),
    ("op", c_char_p),
    ("scope", c_char_p),
    ("type", POINTER(sf_tensor_type))]
sf_subgraph_view._fields_ = [
    ("size", c_size_t),
    ("ops", c_int),
    ("inputs", c_int),
    ("results", c_int)]
sf_show_options._fields_ = [
    ("size", c_size_t),
    ("file", c_char_p),
    ("json", c_bool),
    ("all", c_bool),
    ("depth", c_int),
    ("width", c_int),
    ("colour", c_bool)]
sf_script_options._fields_ = [
    ("size", c_size_t),
    ("unsafe", c_bool),
    ("instructions", c_int64),
    ("memory", c_int64),
    ("ranks", c_int),
    ("settings", c_void_p),
    ("seconds", c_double)]
sf_session_options._fields_ = [
    ("size", c_size_t),
    ("plan", c_void_p),
    ("engine", c_char_p),
    ("threads", c_int),
    ("memory", c_int64),
    ("limit", c_double),
    ("check", c_bool),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("interrupt", c_void_p)]
sf_sketch_attr._fields_ = [
    ("size", c_size_t),
    ("name", c_char_p),
    ("count", c_int),
    ("integer", c_int64),
    ("ints", POINTER(c_int64)),
    ("text", c_char_p)]
sf_solve_progress._fields_ = [
    ("size", c_size_t),
    ("seconds", c_double),
    ("feasible", c_bool),
    ("cost", c_int64),
    ("bound", c_int64)]
sf_solve_options._fields_ = [
    ("size", c_size_t),
    ("seconds", c_double),
    ("work", c_int64),
    ("threads", c_int),
    ("seed", c_uint64),
    ("gap", c_double),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("interrupt", c_void_p)]
sf_solution._fields_ = [
    ("size", c_size_t),
    ("stop", c_int),
    ("feasible", c_bool),
    ("nodes", c_uint32),
    ("choice", POINTER(c_uint32)),
    ("cost", c_int64),
    ("bound", c_int64),
    ("gap", c_double),
    ("time", c_int64),
    ("over", c_int64),
    ("work", c_int64),
    ("seconds", c_double)]
sf_task._fields_ = [
    ("size", c_size_t),
    ("ops", c_char_p),
    ("pass", c_int),
    ("microbatch", c_int),
    ("round", c_int)]
sf_plan_spec._fields_ = [
    ("size", c_size_t),
    ("mesh", c_char_p),
    ("pins", POINTER(c_char_p)),
    ("npins", c_int),
    ("ranks", c_int),
    ("recipe", c_char_p),
    ("stages", c_char_p),
    ("schedule", c_char_p),
    ("micro_batches", c_int),
    ("recompute", c_char_p),
    ("co_shard", c_char_p),
    ("shard_state", c_char_p),
    ("passes", c_char_p),
    ("kernels", c_char_p),
    ("memory", c_int64)]
sf_diag_entry._fields_ = [
    ("size", c_size_t),
    ("code", c_int),
    ("severity", c_int),
    ("file", c_char_p),
    ("line", c_int),
    ("column", c_int),
    ("text", c_char_p),
    ("hint", c_char_p)]
sf_train_progress._fields_ = [
    ("size", c_size_t),
    ("seconds", c_double),
    ("rate", c_double),
    ("counts_tokens", c_bool),
    ("flops", c_double),
    ("left", c_double),
    ("memory", c_int64),
    ("parameters", c_int64),
    ("threads", c_int),
    ("ranks", c_int),
    ("engine", c_char_p),
    ("data", c_char_p),
    ("computed", c_double),
    ("waited", c_double)]
sf_train_options._fields_ = [
    ("size", c_size_t),
    ("steps", c_int64),
    ("data", c_char_p),
    ("tokens_type", c_char_p),
    ("order", c_int),
    ("init", c_char_p),
    ("set", c_char_p),
    ("seed", c_uint64),
    ("has_seed", c_bool),
    ("save", c_char_p),
    ("save_every", c_int64),
    ("keep", c_int64),
    ("resume", c_bool),
    ("resume_from", c_char_p),
    ("log", c_char_p),
    ("profile", POINTER(sf_output)),
    ("engine", c_char_p),
    ("threads", c_int),
    ("memory", c_int64),
    ("plan", c_void_p),
    ("limit", c_double),
    ("check", c_bool),
    ("ignore_nan", c_bool),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("trace", POINTER(sf_output)),
    ("device_memory", c_int64),
    ("host_link", c_int64),
    ("precision", c_char_p),
    ("interrupt", c_void_p)]
sf_train_report._fields_ = [
    ("size", c_size_t),
    ("first", c_int64),
    ("step", c_int64),
    ("loss", c_double),
    ("seconds", c_double),
    ("interrupted", c_bool)]
sf_tune_options._fields_ = [
    ("size", c_size_t),
    ("cluster", c_void_p),
    ("cluster_name", c_char_p),
    ("by_run", c_bool),
    ("algorithm", c_char_p),
    ("trials", c_int),
    ("seed", c_uint64),
    ("ranks", c_int),
    ("memory", c_int64),
    ("steps", c_int),
    ("threads", c_int),
    ("log", c_char_p),
    ("program", c_uint64),
    ("listener", sf_listener),
    ("context", c_void_p),
    ("by_processor", c_bool),
    ("interrupt", c_void_p)]
sf_trial._fields_ = [
    ("size", c_size_t),
    ("setting", c_char_p),
    ("values", POINTER(c_char_p)),
    ("seconds", c_double),
    ("memory", c_int64),
    ("pruned", c_bool),
    ("logged", c_bool),
    ("why", c_char_p)]
sf_tune_report._fields_ = [
    ("size", c_size_t),
    ("points", c_int64),
    ("nvariables", c_int),
    ("variables", POINTER(c_char_p)),
    ("ntrials", c_int),
    ("trials", POINTER(POINTER(sf_trial))),
    ("best", c_int),
    ("room", c_int64),
    ("plan", c_void_p),
    ("step", c_void_p)]


# name: (result, parameters)
FUNCTIONS = {
    "sf_cache_show": (c_int, [POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_cache_clear": (c_int64, []),
    "sf_cluster_open": (c_int, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "sf_cluster_free": (None, [c_void_p]),
    "sf_cluster_measured": (c_int, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "sf_cluster_save": (c_int, [c_void_p, POINTER(sf_output), c_void_p]),
    "sf_cluster_show": (c_int, [c_void_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_cluster_list": (c_int, [POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_cluster_devices": (c_int, [c_void_p]),
    "sf_calibrate": (c_int, [POINTER(sf_calibrate_options), c_void_p, POINTER(c_void_p)]),
    "sf_eval_file": (c_int, [c_void_p, POINTER(sf_eval_options), c_void_p]),
    "sf_graph_checks": (c_int64, [c_void_p]),
    "sf_verify": (c_int, [c_void_p, POINTER(sf_verify_options), c_void_p, POINTER(POINTER(sf_verify_report))]),
    "sf_verify_free": (None, [POINTER(sf_verify_report)]),
    "sf_verify_plan": (c_int, [c_void_p, c_void_p, POINTER(sf_verify_options), c_void_p, POINTER(POINTER(sf_verify_report))]),
    "sf_interrupt_new": (c_void_p, []),
    "sf_interrupt_free": (None, [c_void_p]),
    "sf_interrupt_raise": (None, [c_void_p]),
    "sf_interrupt_clear": (None, [c_void_p]),
    "sf_interrupt_is_raised": (c_bool, [c_void_p]),
    "sf_load": (c_int, [c_char_p, POINTER(sf_load_options), c_void_p, POINTER(c_void_p)]),
    "sf_load_text": (c_int, [c_void_p, c_size_t, c_char_p, POINTER(sf_load_options), c_void_p, POINTER(c_void_p)]),
    "sf_graph_free": (None, [c_void_p]),
    "sf_graph_hash": (c_uint64, [c_void_p]),
    "sf_graph_arguments": (c_int, [c_void_p]),
    "sf_graph_results": (c_int, [c_void_p]),
    "sf_graph_argument_name": (c_char_p, [c_void_p, c_int]),
    "sf_graph_result_name": (c_char_p, [c_void_p, c_int]),
    "sf_graph_find_argument": (c_int, [c_void_p, c_char_p]),
    "sf_graph_find_result": (c_int, [c_void_p, c_char_p]),
    "sf_graph_argument_type": (c_bool, [c_void_p, c_int, POINTER(sf_tensor_type)]),
    "sf_graph_result_type": (c_bool, [c_void_p, c_int, POINTER(sf_tensor_type)]),
    "sf_graph_argument_role": (c_int, [c_void_p, c_int]),
    "sf_role_name": (c_char_p, [c_int]),
    "sf_graph_argument_next": (c_int, [c_void_p, c_int]),
    "sf_graph_loss": (c_int, [c_void_p]),
    "sf_graph_scopes": (c_int, [c_void_p, c_int, POINTER(c_char_p)]),
    "sf_save_stablehlo": (c_int, [c_void_p, POINTER(sf_output), c_void_p]),
    "sf_plan_use_passes": (c_int, [c_void_p, c_char_p, c_void_p, c_int64, c_void_p]),
    "sf_plan_passes_of": (c_char_p, [c_void_p]),
    "sf_passes_show": (c_int, [POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_pass_name": (c_char_p, [c_int]),
    "sf_pass_about": (c_char_p, [c_int]),
    "sf_pin_step": (c_int, [c_void_p, POINTER(sf_plan_spec), c_void_p, POINTER(c_void_p)]),
    "sf_pin_names": (c_int, [c_void_p, POINTER(sf_output), c_void_p]),
    "sf_plan_search": (c_int, [c_void_p, POINTER(sf_plan_spec), POINTER(sf_plan_options), c_void_p, POINTER(c_void_p)]),
    "sf_plan_explain": (c_int, [c_void_p, c_void_p, c_void_p, c_char_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_plan_simulate": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(sf_sim_options), POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_plan_report": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(sf_report_options), POINTER(sf_output), c_void_p]),
    "sf_plan_origin_of": (c_int, [c_char_p, c_void_p, POINTER(sf_plan_origin)]),
    "sf_plan_load_step": (c_int, [c_char_p, c_char_p, POINTER(sf_load_options), c_void_p, POINTER(c_void_p)]),
    "sf_plan_diff": (c_int, [c_void_p, c_void_p, c_void_p, c_char_p, c_char_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_plan_diff_on": (c_int, [c_void_p, c_void_p, c_void_p, c_char_p, c_char_p, c_void_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_plan_load": (c_int, [c_void_p, c_char_p, c_void_p, POINTER(c_void_p)]),
    "sf_plan_save": (c_int, [c_void_p, c_void_p, POINTER(sf_output), c_void_p]),
    "sf_plan_free": (None, [c_void_p]),
    "sf_plan_ranks": (c_int, [c_void_p]),
    "sf_plan_seconds": (c_double, [c_void_p]),
    "sf_plan_axes": (c_int, [c_void_p]),
    "sf_plan_axis_name": (c_char_p, [c_void_p, c_int]),
    "sf_plan_axis_size": (c_int, [c_void_p, c_int]),
    "sf_plan_argument_layout": (c_char_p, [c_void_p, c_void_p, c_int, c_char_p]),
    "sf_plan_result_layout": (c_char_p, [c_void_p, c_void_p, c_int, c_char_p]),
    "sf_plan_boxes": (c_int64, [c_void_p, c_void_p, c_int, c_int]),
    "sf_plan_box": (c_bool, [c_void_p, c_void_p, c_int, c_int, c_int64, POINTER(sf_box)]),
    "sf_plan_result_boxes": (c_int64, [c_void_p, c_void_p, c_int, c_int]),
    "sf_plan_result_box": (c_bool, [c_void_p, c_void_p, c_int, c_int, c_int64, POINTER(sf_box)]),
    "sf_plan_tensors": (c_int, [c_void_p, c_void_p, c_char_p, c_int, POINTER(c_int)]),
    "sf_plan_tensor": (c_bool, [c_void_p, c_void_p, c_int, POINTER(sf_plan_tensor_view)]),
    "sf_plan_show_program": (c_int, [c_void_p, c_void_p, c_int, POINTER(sf_output), c_void_p]),
    "sf_plan_save_stablehlo": (c_int, [c_void_p, c_void_p, POINTER(sf_output), c_void_p]),
    "sf_plan_check": (c_int, [c_void_p, c_void_p, c_int64, c_void_p]),
    "sf_plan_shrink": (c_int, [c_void_p, c_void_p, c_void_p, POINTER(c_void_p), POINTER(c_void_p), POINTER(c_char_p)]),
    "sf_plan_show": (c_int, [c_void_p, c_void_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_ranks_started": (c_int, []),
    "sf_ranks_agree": (c_int, [c_int, c_double, c_void_p]),
    "sf_recipe_name": (c_char_p, [c_int]),
    "sf_recipe_about": (c_char_p, [c_int]),
    "sf_bind_kernel": (c_int, [POINTER(sf_user_kernel), c_void_p]),
    "sf_primitive_load": (c_int, [c_char_p, c_void_p, POINTER(POINTER(sf_user_primitive))]),
    "sf_primitives_apply": (c_int, [c_void_p, POINTER(sf_user_primitive), c_char_p, c_int, POINTER(c_char_p), POINTER(c_double), c_char_p, c_int, c_void_p, POINTER(c_int), POINTER(c_int)]),
    "sf_primitives_new": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "sf_primitives_free": (None, [c_void_p]),
    "sf_primitives_modules": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_char_p)]),
    "sf_primitives_params": (c_int, [c_void_p, c_char_p, c_char_p, c_int, POINTER(c_char_p)]),
    "sf_primitives_add": (c_int, [c_void_p, POINTER(sf_primitive), c_void_p, POINTER(c_int)]),
    "sf_primitives_undo": (c_int, [c_void_p, c_int, c_void_p]),
    "sf_primitives_find": (c_int, [c_void_p, c_char_p, c_void_p, c_void_p, POINTER(c_int), POINTER(c_int)]),
    "sf_primitives_find_where": (c_int, [c_void_p, c_char_p, sf_take_op, c_void_p, c_void_p, POINTER(c_int), POINTER(c_int)]),
    "sf_primitives_find_modules": (c_int, [c_void_p, c_char_p, c_void_p, POINTER(c_int), POINTER(c_int)]),
    "sf_primitives_subgraph": (c_bool, [c_void_p, c_int, POINTER(sf_subgraph_view)]),
    "sf_primitives_subgraph_op": (c_bool, [c_void_p, c_int, c_int, POINTER(sf_op_view)]),
    "sf_primitives_subgraph_op_type": (c_bool, [c_void_p, c_int, c_int, POINTER(sf_tensor_type)]),
    "sf_primitives_subgraph_input": (c_bool, [c_void_p, c_int, c_int, POINTER(sf_tensor_type)]),
    "sf_primitives_subgraph_result": (c_bool, [c_void_p, c_int, c_int, POINTER(sf_tensor_type)]),
    "sf_primitives_graph": (c_void_p, [c_void_p]),
    "sf_primitives_copy_graph": (c_int, [c_void_p, c_void_p, POINTER(c_void_p)]),
    "sf_primitives_count": (c_int, [c_void_p]),
    "sf_primitives_text": (c_char_p, [c_void_p, c_int]),
    "sf_primitives_pin": (c_int, [c_void_p, POINTER(sf_plan_spec), c_void_p, POINTER(c_void_p)]),
    "sf_primitives_search": (c_int, [c_void_p, POINTER(sf_plan_spec), POINTER(sf_plan_options), c_void_p, POINTER(c_void_p)]),
    "sf_primitives_verify": (c_int, [c_void_p, POINTER(sf_plan_spec), POINTER(sf_verify_options), c_void_p, POINTER(POINTER(sf_verify_report)), POINTER(c_int)]),
    "sf_show": (c_int, [c_void_p, POINTER(sf_show_options), POINTER(sf_output), c_void_p]),
    "sf_show_program": (c_int, [c_void_p, POINTER(sf_output), c_void_p]),
    "sf_show_ops": (c_int, [POINTER(sf_output), c_void_p]),
    "sf_script_run": (c_int, [c_char_p, POINTER(sf_script_options), c_void_p, c_void_p]),
    "sf_console_new": (c_int, [c_char_p, POINTER(sf_script_options), c_void_p, c_void_p, POINTER(c_void_p)]),
    "sf_console_run": (c_int, [c_void_p, c_void_p, c_size_t, c_void_p]),
    "sf_console_free": (None, [c_void_p]),
    "sf_session_open": (c_int, [c_void_p, POINTER(sf_session_options), c_void_p, POINTER(c_void_p)]),
    "sf_session_close": (None, [c_void_p]),
    "sf_session_init": (c_int, [c_void_p, c_char_p, c_uint64, c_void_p]),
    "sf_session_write": (c_int, [c_void_p, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_read": (c_int, [c_void_p, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_read_result": (c_int, [c_void_p, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_write_named": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p]),
    "sf_session_read_named": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p]),
    "sf_session_read_result_named": (c_int, [c_void_p, c_char_p, c_void_p, c_size_t, c_void_p]),
    "sf_session_rank": (c_int, [c_void_p, c_int]),
    "sf_session_shard_bytes": (c_int64, [c_void_p, c_int, c_int]),
    "sf_session_result_shard_bytes": (c_int64, [c_void_p, c_int, c_int]),
    "sf_session_write_shard": (c_int, [c_void_p, c_int, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_read_shard": (c_int, [c_void_p, c_int, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_read_result_shard": (c_int, [c_void_p, c_int, c_int, c_void_p, c_size_t, c_void_p]),
    "sf_session_run": (c_int, [c_void_p, c_int64, c_void_p, POINTER(c_double)]),
    "sf_session_steps": (c_int64, [c_void_p]),
    "sf_session_save": (c_int, [c_void_p, c_char_p, c_int64, c_void_p]),
    "sf_session_load": (c_int, [c_void_p, c_char_p, c_void_p]),
    "sf_version": (c_char_p, []),
    "sf_has_gpu": (c_bool, []),
    "sf_limit_input": (None, [c_int64]),
    "sf_sketch_new": (c_int, [c_void_p, POINTER(c_void_p)]),
    "sf_sketch_free": (None, [c_void_p]),
    "sf_sketch_input": (c_int, [c_void_p, c_void_p, POINTER(c_int)]),
    "sf_sketch_number": (c_int, [c_void_p, c_double, c_void_p, POINTER(c_int)]),
    "sf_sketch_op": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_int), c_int, POINTER(POINTER(sf_sketch_attr)), c_int, POINTER(c_int64), c_char_p, c_void_p, POINTER(c_int)]),
    "sf_sketch_return": (c_int, [c_void_p, c_int, POINTER(c_int), c_void_p]),
    "sf_choices_new": (c_int, [c_void_p, POINTER(c_void_p)]),
    "sf_choices_load": (c_int, [c_char_p, c_void_p, POINTER(c_void_p)]),
    "sf_choices_free": (None, [c_void_p]),
    "sf_choices_add_node": (c_int, [c_void_p, c_uint32, POINTER(c_int64), c_void_p]),
    "sf_choices_add_use": (c_int, [c_void_p, c_uint32, c_int64, c_int64, POINTER(c_int64), c_void_p]),
    "sf_choices_add_edge": (c_int, [c_void_p, c_uint32, c_uint32, POINTER(c_int64), c_void_p]),
    "sf_choices_set_limit": (None, [c_void_p, c_int64]),
    "sf_choices_nodes": (c_uint32, [c_void_p]),
    "sf_choices_solve": (c_int, [c_void_p, POINTER(sf_solve_options), c_void_p, POINTER(POINTER(sf_solution))]),
    "sf_solution_free": (None, [POINTER(sf_solution)]),
    "sf_solution_save": (c_int, [POINTER(sf_solution), POINTER(sf_output), c_void_p]),
    "sf_space_new": (c_int, [c_void_p, c_int, c_void_p, POINTER(c_void_p)]),
    "sf_space_free": (None, [c_void_p]),
    "sf_space_factors": (c_int, [c_void_p, c_char_p, POINTER(sf_output), c_void_p]),
    "sf_trans": (c_int, [c_void_p, c_char_p, c_char_p, c_int, c_int, c_void_p]),
    "sf_trans_name": (c_char_p, [c_int]),
    "sf_assign": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_int), c_int, c_void_p]),
    "sf_order": (c_int, [c_void_p, POINTER(sf_task), POINTER(sf_task), c_void_p]),
    "sf_space_plan": (c_int, [c_void_p, POINTER(sf_plan_spec), c_void_p, POINTER(c_void_p)]),
    "sf_plan_spec_set": (c_int, [POINTER(sf_plan_spec), c_char_p, c_char_p, c_void_p]),
    "sf_diag_new": (c_void_p, []),
    "sf_diag_free": (None, [c_void_p]),
    "sf_diag_count": (c_int, [c_void_p]),
    "sf_diag_text": (c_char_p, [c_void_p, c_int]),
    "sf_diag_clear": (None, [c_void_p]),
    "sf_diag_get": (c_bool, [c_void_p, c_int, POINTER(sf_diag_entry)]),
    "sf_status_name": (c_char_p, [c_int]),
    "sf_train": (c_int, [c_void_p, POINTER(sf_train_options), c_void_p, POINTER(sf_train_report)]),
    "sf_settings_int": (c_int, [c_void_p, c_char_p, c_int64, c_int64, c_int64, c_void_p, POINTER(c_int64)]),
    "sf_settings_choice": (c_int, [c_void_p, c_char_p, c_int, POINTER(c_char_p), c_void_p, POINTER(c_int)]),
    "sf_tune": (c_int, [c_void_p, sf_tune_apply, c_void_p, POINTER(sf_tune_options), c_void_p, POINTER(POINTER(sf_tune_report))]),
    "sf_tune_free": (None, [POINTER(sf_tune_report)]),
    "sf_tune_page": (c_int, [POINTER(sf_tune_report), c_char_p, POINTER(sf_output), c_void_p]),
    "sf_tune_algorithm": (c_char_p, [c_int]),
    "sf_tune_script": (c_int, [c_void_p, c_char_p, POINTER(sf_script_options), POINTER(sf_tune_options), c_void_p, POINTER(POINTER(sf_tune_report))]),
}
