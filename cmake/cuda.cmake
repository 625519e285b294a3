# The common text of the cuda engine's kernels is in plain files, which the library carries with it.

set(cuda_folder ${CMAKE_SOURCE_DIR}/src/run/text/cu)
set(cuda_files
    sf_text_base=${cuda_folder}/kernel_base.cu
    sf_text_vector=${cuda_folder}/vector_begin.cu,${CMAKE_SOURCE_DIR}/src/run/vec/math.h,${cuda_folder}/vector_end.cu
    sf_text_words=${CMAKE_SOURCE_DIR}/src/op/pointwise/special_math.h,${cuda_folder}/kernel_words.cu
    sf_text_key_sort=${cuda_folder}/key_sort.cu
    sf_text_attention=${cuda_folder}/attention_entry.cu
    sf_text_attend=${cuda_folder}/attention_kernel.cu
    sf_text_attend_groups=${cuda_folder}/attention_warpgroups.cu
    sf_text_attend_turn=${cuda_folder}/attention_transpose.cu)
set(cuda_source ${CMAKE_BINARY_DIR}/cuda_files.c)
add_custom_command(OUTPUT ${cuda_source}
    COMMAND ${CMAKE_COMMAND} -D OUT=${cuda_source} -D HEADER=run/text/kernel_text.h -D TYPE=sf_text_file
        -D "FILES=${cuda_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${cuda_folder}/kernel_base.cu ${cuda_folder}/kernel_words.cu ${cuda_folder}/key_sort.cu ${cuda_folder}/attention_entry.cu
        ${cuda_folder}/attention_kernel.cu ${cuda_folder}/attention_warpgroups.cu ${cuda_folder}/attention_transpose.cu
        ${cuda_folder}/vector_begin.cu ${cuda_folder}/vector_end.cu ${CMAKE_SOURCE_DIR}/src/run/vec/math.h
        ${CMAKE_SOURCE_DIR}/src/op/pointwise/special_math.h ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
