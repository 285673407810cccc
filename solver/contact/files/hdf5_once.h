/* HDF5's library, loaded when the first file in its format is read or written.
 *
 * A program that links it starts with libcurl, Kerberos and twenty more behind it, which few of its
 * runs need. Files that include this header instead of hdf5.h call the functions by their names. */
#ifndef CONTACT_HDF5_ONCE_H
#define CONTACT_HDF5_ONCE_H

#include <hdf5.h>

#include "tribo.h"

#define TB_HDF5_FUNCTIONS(X)                                                                       \
    X(H5open)                                                                                      \
    X(H5check_version)                                                                             \
    X(H5Dclose)                                                                                    \
    X(H5Dcreate2)                                                                                  \
    X(H5Dget_space)                                                                                \
    X(H5Dopen2)                                                                                    \
    X(H5Dread)                                                                                     \
    X(H5Dwrite)                                                                                    \
    X(H5Eclear2)                                                                                   \
    X(H5Eget_auto2)                                                                                \
    X(H5Eset_auto2)                                                                                \
    X(H5Fclose)                                                                                    \
    X(H5Fcreate)                                                                                   \
    X(H5Fopen)                                                                                     \
    X(H5Gclose)                                                                                    \
    X(H5Gcreate2)                                                                                  \
    X(H5Gopen2)                                                                                    \
    X(H5Lexists)                                                                                   \
    X(H5Pclose)                                                                                    \
    X(H5Pcreate)                                                                                   \
    X(H5Pset_fapl_core)                                                                            \
    X(H5Pset_file_image)                                                                           \
    X(H5Sclose)                                                                                    \
    X(H5Screate)                                                                                   \
    X(H5Screate_simple)                                                                            \
    X(H5Sget_simple_extent_npoints)                                                                \
    X(H5Tclose)                                                                                    \
    X(H5Tcopy)                                                                                     \
    X(H5Tset_size)

/* Numbers of types and classes, which H5open fills in. */
#define TB_HDF5_NUMBERS(X)                                                                         \
    X(H5P_CLS_FILE_ACCESS_ID_g)                                                                    \
    X(H5T_C_S1_g)                                                                                  \
    X(H5T_NATIVE_DOUBLE_g)                                                                         \
    X(H5T_NATIVE_INT32_g)

typedef struct tb_hdf5 {
#define TB_HDF5_MEMBER(name) __typeof__(name) *name;
    TB_HDF5_FUNCTIONS(TB_HDF5_MEMBER)
    TB_HDF5_NUMBERS(TB_HDF5_MEMBER)
#undef TB_HDF5_MEMBER
} tb_hdf5;

/* Loads the library unless it is loaded; one thread at a time. TB_FAILED_PRECONDITION where this
 * machine has none that fits. */
tb_status tb_hdf5_load(tb_error *error);

/* Valid once it is loaded. */
extern tb_hdf5 tb_hdf5_library;

/* HDF5's own macros, such as H5T_NATIVE_DOUBLE, name some of these. */
#ifndef TB_HDF5_LOADER
#define H5check_version              tb_hdf5_library.H5check_version
#define H5open                       tb_hdf5_library.H5open
#define H5Dclose                     tb_hdf5_library.H5Dclose
#define H5Dcreate2                   tb_hdf5_library.H5Dcreate2
#define H5Dget_space                 tb_hdf5_library.H5Dget_space
#define H5Dopen2                     tb_hdf5_library.H5Dopen2
#define H5Dread                      tb_hdf5_library.H5Dread
#define H5Dwrite                     tb_hdf5_library.H5Dwrite
#define H5Eclear2                    tb_hdf5_library.H5Eclear2
#define H5Eget_auto2                 tb_hdf5_library.H5Eget_auto2
#define H5Eset_auto2                 tb_hdf5_library.H5Eset_auto2
#define H5Fclose                     tb_hdf5_library.H5Fclose
#define H5Fcreate                    tb_hdf5_library.H5Fcreate
#define H5Fopen                      tb_hdf5_library.H5Fopen
#define H5Gclose                     tb_hdf5_library.H5Gclose
#define H5Gcreate2                   tb_hdf5_library.H5Gcreate2
#define H5Gopen2                     tb_hdf5_library.H5Gopen2
#define H5Lexists                    tb_hdf5_library.H5Lexists
#define H5Pclose                     tb_hdf5_library.H5Pclose
#define H5Pcreate                    tb_hdf5_library.H5Pcreate
#define H5Pset_fapl_core             tb_hdf5_library.H5Pset_fapl_core
#define H5Pset_file_image            tb_hdf5_library.H5Pset_file_image
#define H5Sclose                     tb_hdf5_library.H5Sclose
#define H5Screate                    tb_hdf5_library.H5Screate
#define H5Screate_simple             tb_hdf5_library.H5Screate_simple
#define H5Sget_simple_extent_npoints tb_hdf5_library.H5Sget_simple_extent_npoints
#define H5Tclose                     tb_hdf5_library.H5Tclose
#define H5Tcopy                      tb_hdf5_library.H5Tcopy
#define H5Tset_size                  tb_hdf5_library.H5Tset_size
#define H5P_CLS_FILE_ACCESS_ID_g     (*tb_hdf5_library.H5P_CLS_FILE_ACCESS_ID_g)
#define H5T_C_S1_g                   (*tb_hdf5_library.H5T_C_S1_g)
#define H5T_NATIVE_DOUBLE_g          (*tb_hdf5_library.H5T_NATIVE_DOUBLE_g)
#define H5T_NATIVE_INT32_g           (*tb_hdf5_library.H5T_NATIVE_INT32_g)
#endif

#endif
