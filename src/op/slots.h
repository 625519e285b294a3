/* The slots of attributes that code outside of an op's own file reads. */
#ifndef SF_OP_SLOTS_H
#define SF_OP_SLOTS_H

enum { SF_CONSTANT_VALUE };
enum { SF_IOTA_DIMENSION };
enum { SF_BROADCAST_DIMENSIONS };
enum { SF_TRANSPOSE_PERMUTATION };
enum { SF_SLICE_STARTS, SF_SLICE_LIMITS, SF_SLICE_STRIDES };
enum { SF_REVERSE_DIMENSIONS };
enum { SF_COMPARE_DIRECTION, SF_COMPARE_TYPE };
enum { SF_CALL_CALLEE };

#endif
