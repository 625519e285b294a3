# CBC (coinor-libcbc-dev), an independent judge of the solver. Only tests and the bench link it.

set(SF_HAVE_CBC OFF)
if(SF_CBC)
    find_path(SF_CBC_INCLUDE coin/Cbc_C_Interface.h)
    find_library(SF_CBC_SOLVER CbcSolver)
    find_library(SF_CBC_LIBRARY Cbc)
    mark_as_advanced(SF_CBC_INCLUDE SF_CBC_SOLVER SF_CBC_LIBRARY)
    if(SF_CBC_INCLUDE AND SF_CBC_SOLVER AND SF_CBC_LIBRARY)
        set(SF_HAVE_CBC ON)
        set(SF_CBC_LIBRARIES ${SF_CBC_SOLVER} ${SF_CBC_LIBRARY})
    endif()
endif()
