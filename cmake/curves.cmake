# What was measured on devices of the library is in plain files, which it carries with it.

set(curves_file ${CMAKE_SOURCE_DIR}/src/cluster/h200.json)
set(curves_source ${CMAKE_BINARY_DIR}/curves_files.c)
add_custom_command(OUTPUT ${curves_source}
    COMMAND ${CMAKE_COMMAND} -D OUT=${curves_source} -D HEADER=cluster/device_curves.h -D TYPE=sf_curves_file
        -D "FILES=sf_h200_curves=${curves_file}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${curves_file} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
