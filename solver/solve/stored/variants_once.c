/* The variants of the stored iterations by name: Nützi's table 6.1, his sparse designs, and two that go
 * through all iterations in one launch. */
#include "solve/stored/stored.h"

#include <string.h>

static const tb_stored_variant VARIANTS[] = {
    {"jor1", "JOR: cuBLAS gemv, addition, projection", TB_STORED_LIBRARY, 0, true},
    {"jor2", "JOR: cuBLAS gemv, addition with projection", TB_STORED_LIBRARY_FUSED, 0, true},
    {"jor3", "JOR: jorProxGPU, 126 rows and 128 threads a block", TB_STORED_FUSED, 126, true},
    {"jor4", "JOR: jorProxGPU, 192 rows and threads a block", TB_STORED_FUSED, 192, true},
    {"jor5", "JOR: matrixVectorMultGPU, proxGPU", TB_STORED_SPLIT, 0, true},
    {"jor5-unaligned", "JOR: the same with columns that are not padded", TB_STORED_SPLIT, 0, false},
    {"jor7", "JOR: the threads of the processor", TB_STORED_CORES, 0, true},
    {"jor", "JOR: all iterations in one launch", TB_STORED_ALL_IN_ONE, 0, true},
    {"full-sor-32", "SOR: steps A and B, 32 contacts a diagonal block", TB_STORED_FULL, 32, true},
    {"full-sor-64", "SOR: steps A and B, 64 contacts a diagonal block", TB_STORED_FULL, 64, true},
    {"full-sor", "SOR: all iterations in one launch", TB_STORED_FULL_IN_ONE, 32, true},
    {"relaxed-sor-2", "Jacobi within 2 contacts, SOR between", TB_STORED_RELAXED, 2, true},
    {"relaxed-sor-4", "Jacobi within 4 contacts, SOR between", TB_STORED_RELAXED, 4, true},
    {"relaxed-sor-16", "Jacobi within 16 contacts, SOR between", TB_STORED_RELAXED, 16, true},
    {"relaxed-sor-32", "Jacobi within 32 contacts, SOR between", TB_STORED_RELAXED, 32, true},
    {"relaxed-sor-128", "Jacobi within 128 contacts, SOR between", TB_STORED_RELAXED, 128, true},
    {"sparse-jor", "JOR on block CSR: a relaxed group of all contacts", TB_STORED_SPARSE_RELAXED,
     INT32_MAX, true},
    {"sparse-full-sor", "SOR on block CSR with a count of finished contacts", TB_STORED_SPARSE_FULL,
     1, true},
    {"sparse-relaxed-sor-32", "relaxed SOR on block CSR with pointers of groups",
     TB_STORED_SPARSE_RELAXED, 32, true},
    {"sparse-relaxed-sor-128", "the same with groups of 128", TB_STORED_SPARSE_RELAXED, 128, true},
};
enum { NUMBER_OF_VARIANTS = sizeof VARIANTS / sizeof VARIANTS[0] };

const char *tb_prox_variant_name(int32_t index)
{
    return index >= 0 && index < NUMBER_OF_VARIANTS ? VARIANTS[index].name : NULL;
}

const char *tb_prox_variant_summary(int32_t index)
{
    return index >= 0 && index < NUMBER_OF_VARIANTS ? VARIANTS[index].summary : NULL;
}

const tb_stored_variant *tb_stored_variant_find(const char *name)
{
    for (int i = 0; i < NUMBER_OF_VARIANTS; i++)
        if (strcmp(VARIANTS[i].name, name) == 0) return &VARIANTS[i];
    return NULL;
}

bool tb_stored_is_sparse(tb_stored_form form)
{
    return form == TB_STORED_SPARSE_FULL || form == TB_STORED_SPARSE_RELAXED;
}
