/* Loads HDF5 by the name that the linker would have written down (TB_HDF5_SONAME). */
#define TB_HDF5_LOADER
#include "contact/files/hdf5_once.h"

#include <dlfcn.h>

#include "base/error.h"

tb_hdf5 tb_hdf5_library;

/* Symbols by their names, into the members of that name; the first that is missing, or NULL. */
static const char *find_symbols(void *object, tb_hdf5 *library)
{
    /* POSIX lets dlsym's pointer be a function's, which ISO C cannot say by a cast */
#define FIND(name)                                                                                 \
    *(void **)&library->name = dlsym(object, #name);                                               \
    if (library->name == NULL) return #name;
    TB_HDF5_FUNCTIONS(FIND)
    TB_HDF5_NUMBERS(FIND)
#undef FIND
    return NULL;
}

tb_status tb_hdf5_load(tb_error *error)
{
    tb_hdf5 library = {0};
    if (tb_hdf5_library.H5open != NULL) return TB_OK;
    void *object = dlopen(TB_HDF5_SONAME, RTLD_NOW | RTLD_LOCAL);
    if (object == NULL)
        return tb_fail(error, TB_FAILED_PRECONDITION,
                       "this format needs the HDF5 library, which cannot be loaded: %s", dlerror());
    const char *missing = find_symbols(object, &library);
    if (missing == NULL && library.H5open() >= 0) {
        tb_hdf5_library = library;
        return TB_OK;
    }
    dlclose(object);
    return tb_fail(error, TB_FAILED_PRECONDITION, "the HDF5 library %s does not work: %s",
                   TB_HDF5_SONAME, missing != NULL ? missing : "H5open");
}
