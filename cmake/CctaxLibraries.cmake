# SPDX-License-Identifier: Apache-2.0
# The outside libraries, each found once. GSL and jansson are linked statically so that a build made here also runs where
# only their shared objects, or none, are installed; cctax itself links neither MPI nor CUDA.
find_package(PkgConfig REQUIRED)
find_package(Threads REQUIRED)
find_package(OpenSSL 3.0 REQUIRED COMPONENTS Crypto SSL)
find_package(MPI REQUIRED COMPONENTS C)
find_package(BLAS REQUIRED)
pkg_check_modules(HWLOC REQUIRED IMPORTED_TARGET hwloc)

find_library(CCT_JANSSON_A NAMES libjansson.a REQUIRED)
find_library(CCT_GSL_A NAMES libgsl.a REQUIRED)
find_library(CCT_GSLCBLAS_A NAMES libgslcblas.a REQUIRED)
find_path(CCT_GSL_INCLUDE gsl/gsl_cdf.h REQUIRED)
find_path(CCT_JANSSON_INCLUDE jansson.h REQUIRED)
add_library(cct_jansson INTERFACE)
target_include_directories(cct_jansson SYSTEM INTERFACE ${CCT_JANSSON_INCLUDE})
target_link_libraries(cct_jansson INTERFACE ${CCT_JANSSON_A})
add_library(cct_gsl INTERFACE)
target_include_directories(cct_gsl SYSTEM INTERFACE ${CCT_GSL_INCLUDE})
target_link_libraries(cct_gsl INTERFACE ${CCT_GSL_A} ${CCT_GSLCBLAS_A} m)

# Serial HDF5 by its own name: the MPI build, where installed, takes over the plain `hdf5` name.
pkg_check_modules(HDF5 REQUIRED IMPORTED_TARGET hdf5-serial)

find_library(CCT_CMOCKA cmocka REQUIRED)
add_library(cmocka INTERFACE)
target_link_libraries(cmocka INTERFACE ${CCT_CMOCKA})

# CUDA is optional: without nvcc the build has no backend_cuda, and says so.
include(CheckLanguage)
set(CCT_HAVE_CUDA OFF)
if(CCT_CUDA AND NOT CCT_SANITIZE)
  check_language(CUDA)
  if(CMAKE_CUDA_COMPILER)
    find_package(CUDAToolkit QUIET)
    find_path(CCT_NCCL_INCLUDE nccl.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
    find_library(CCT_NCCL NAMES nccl HINTS ${CUDAToolkit_LIBRARY_DIR})
    if(CUDAToolkit_FOUND AND CCT_NCCL_INCLUDE AND CCT_NCCL)
      set(CCT_HAVE_CUDA ON)
    endif()
  endif()
endif()
message(STATUS "CUDA backend: ${CCT_HAVE_CUDA}")
