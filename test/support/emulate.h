/* The emulator of a GPU (test/emulator), for tests of the engine cuda on any machine. */
#ifndef TEST_SUPPORT_EMULATE_H
#define TEST_SUPPORT_EMULATE_H

/* Has SHEAF_CUDA name it, unless that has something else. */
void test_emulate_gpu(void);

#endif
