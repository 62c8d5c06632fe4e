# find_package(vef_replay) gives the targets vef_replay::shared and vef_replay::static, and vef_replay::vef_replay, the shared one.
# Everything is found from where this file lies: an installed tree can be moved.
get_filename_component(_vef_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

if(NOT TARGET vef_replay::shared)
    add_library(vef_replay::shared SHARED IMPORTED)
    set_target_properties(vef_replay::shared PROPERTIES
        IMPORTED_LOCATION "${_vef_prefix}/lib/libvef_replay.so"
        IMPORTED_SONAME "libvef_replay.so.@ABI@"
        INTERFACE_INCLUDE_DIRECTORIES "${_vef_prefix}/include")

    add_library(vef_replay::static STATIC IMPORTED)
    set_target_properties(vef_replay::static PROPERTIES
        IMPORTED_LOCATION "${_vef_prefix}/lib/libvef_replay.a"
        INTERFACE_LINK_LIBRARIES "gcc_s;util;rt;pthread;m;dl;c"
        INTERFACE_INCLUDE_DIRECTORIES "${_vef_prefix}/include")

    add_library(vef_replay::vef_replay INTERFACE IMPORTED)
    set_target_properties(vef_replay::vef_replay PROPERTIES INTERFACE_LINK_LIBRARIES vef_replay::shared)
endif()
unset(_vef_prefix)
