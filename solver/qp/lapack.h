/* Routines of LAPACK and BLAS in use, in working precision.
 *
 * Fortran's calling convention as gfortran and its successors have it: everything by address,
 * column-major, and behind the other arguments the length of every text. Calls are made with
 * arguments that LAPACK cannot refuse, because LAPACK would end the program. */
#ifndef TB_LAPACK_H
#define TB_LAPACK_H

#include <stddef.h>

#include "base/real.h"

#ifdef TB_SINGLE
#define TB_LAPACK(name) s##name##_
#else
#define TB_LAPACK(name) d##name##_
#endif

/* Cholesky factorization: dense, and solving with it. info > 0: that pivot is not positive. */
void TB_LAPACK(potrf)(const char *uplo, const int *n, tb_real *a, const int *lda, int *info,
                      size_t uplo_length);
void TB_LAPACK(potrs)(const char *uplo, const int *n, const int *nrhs, const tb_real *a,
                      const int *lda, tb_real *b, const int *ldb, int *info, size_t uplo_length);

/* The same of a band; tbtrs solves with one triangle of it. */
void TB_LAPACK(pbtrf)(const char *uplo, const int *n, const int *kd, tb_real *ab, const int *ldab,
                      int *info, size_t uplo_length);
void TB_LAPACK(pbtrs)(const char *uplo, const int *n, const int *kd, const int *nrhs,
                      const tb_real *ab, const int *ldab, tb_real *b, const int *ldb, int *info,
                      size_t uplo_length);

void TB_LAPACK(tbtrs)(const char *uplo, const char *trans, const char *diag, const int *n,
                      const int *kd, const int *nrhs, const tb_real *ab, const int *ldab,
                      tb_real *b, const int *ldb, int *info, size_t uplo_length,
                      size_t trans_length, size_t diag_length);

/* L D L' of a symmetric indefinite matrix (Bunch and Kaufman), its condition, solving with it. */
void TB_LAPACK(sytrf)(const char *uplo, const int *n, tb_real *a, const int *lda, int *ipiv,
                      tb_real *work, const int *lwork, int *info, size_t uplo_length);
void TB_LAPACK(sytrs)(const char *uplo, const int *n, const int *nrhs, const tb_real *a,
                      const int *lda, const int *ipiv, tb_real *b, const int *ldb, int *info,
                      size_t uplo_length);
void TB_LAPACK(sycon)(const char *uplo, const int *n, const tb_real *a, const int *lda,
                      const int *ipiv, const tb_real *anorm, tb_real *rcond, tb_real *work,
                      int *iwork, int *info, size_t uplo_length);

/* B <- alpha op(A)^-1 B with A triangular, C <- alpha op(A) op(A)' + beta C, and
 * C <- alpha op(A) op(B) + beta C. */
void TB_LAPACK(trsm)(const char *side, const char *uplo, const char *transa, const char *diag,
                     const int *m, const int *n, const tb_real *alpha, const tb_real *a,
                     const int *lda, tb_real *b, const int *ldb, size_t side_length,
                     size_t uplo_length, size_t transa_length, size_t diag_length);
void TB_LAPACK(syrk)(const char *uplo, const char *trans, const int *n, const int *k,
                     const tb_real *alpha, const tb_real *a, const int *lda, const tb_real *beta,
                     tb_real *c, const int *ldc, size_t uplo_length, size_t trans_length);
void TB_LAPACK(gemm)(const char *transa, const char *transb, const int *m, const int *n,
                     const int *k, const tb_real *alpha, const tb_real *a, const int *lda,
                     const tb_real *b, const int *ldb, const tb_real *beta, tb_real *c,
                     const int *ldc, size_t transa_length, size_t transb_length);

#endif
