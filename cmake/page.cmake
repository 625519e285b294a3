# The pages of sheaf report and sheaf tune are plain files, which the library carries with it: the text before the data, and after.

set(page_folder ${CMAKE_SOURCE_DIR}/src/report/page)
set(plan_head begin.html page.css plan.html)
set(plan_tail script.html base.js timeline.js charts.js tables.js tree.js end.html)
set(tune_head begin.html page.css tune.html)
set(tune_tail script.html base.js tune.js end.html)
set(page_files)
set(page_parts)
foreach(page plan tune)
    foreach(part head tail)
        list(TRANSFORM ${page}_${part} PREPEND ${page_folder}/)
        list(APPEND page_parts ${${page}_${part}})
        list(JOIN ${page}_${part} "," joined)
        list(APPEND page_files sf_${page}_page_${part}=${joined})
    endforeach()
endforeach()
set(page_source ${CMAKE_BINARY_DIR}/page_files.c)
add_custom_command(OUTPUT ${page_source}
    COMMAND ${CMAKE_COMMAND} -D OUT=${page_source} -D HEADER=report/page/page_html.h
        -D "FILES=${page_files}" -P ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${page_parts} ${CMAKE_SOURCE_DIR}/cmake/embed.cmake
    VERBATIM)
