# The text that kernels of the cuda engine stand on lives in plain files, which the library carries with it.

set(cuda_folder ${CMAKE_SOURCE_DIR}/src/run/text/cu)
set(cuda_files
    sf_text_base=${cuda_folder}/base.cu
    sf_text_vector=${cuda_folder}/vector_begin.cu,${CMAKE_SOURCE_DIR}/src/run/vec/math.h,${cuda_folder}/vector_end.cu
    sf_text_words=${CMAKE_SOURCE_DIR}/src/op/pointwise/special_math.h,${cuda_folder}/words.cu
    sf_text_attention=${cuda_folder}/attention.cu
    sf_text_attend=${cuda_folder}/attend.cu
    sf_text_attend_groups=${cuda_folder}/attend_groups.cu
    sf_text_attend_turn=${cuda_folder}/attend_turn.cu)
set(cuda_source ${CMAKE_BINARY_DIR}/cuda_files.c)
add_custom_command(OUTPUT ${cuda_source}
    COMMAND ${CMAKE_COMMAND} -D OUT=${cuda_source} -D HEADER=run/text/text.h -D TYPE=sf_text_file
        -D "FILES=${cuda_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${cuda_folder}/base.cu ${cuda_folder}/words.cu ${cuda_folder}/attention.cu
        ${cuda_folder}/attend.cu ${cuda_folder}/attend_groups.cu ${cuda_folder}/attend_turn.cu
        ${cuda_folder}/vector_begin.cu ${cuda_folder}/vector_end.cu ${CMAKE_SOURCE_DIR}/src/run/vec/math.h
        ${CMAKE_SOURCE_DIR}/src/op/pointwise/special_math.h ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
