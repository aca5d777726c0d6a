# find_package(hurray [CONFIG] [COMPONENTS core io c]): targets hurray::core, hurray::io and
# hurray::c, the last for projects in C, too.
include("${CMAKE_CURRENT_LIST_DIR}/hurrayTargets.cmake")

foreach(component IN LISTS hurray_FIND_COMPONENTS)
  if(TARGET hurray::${component})
    set(hurray_${component}_FOUND TRUE)
  elseif(hurray_FIND_REQUIRED_${component})
    set(hurray_FOUND FALSE)
    set(hurray_NOT_FOUND_MESSAGE "hurray has no component ${component}")
  endif()
endforeach()
