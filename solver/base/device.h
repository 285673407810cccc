/* Function qualifiers for sources that CPU and GPU share.
 *
 * The folders collide, contact, solve and step are C that a GPU runs too. A GPU backend includes
 * their sources in one translation unit of C++ or CUDA with TB_DEVICE defined (see
 * gpu/batch/physics.h); everywhere else these macros expand to plain C.
 *
 * With TB_DEVICE only: the backend provides one block of memory, errors carry no text, a world
 * has no threads, and names are not available. */
#ifndef TB_DEVICE_H
#define TB_DEVICE_H

/* TB_FN        per-element mathematics of a header, for any side of any language
 * TB_FN_LARGE  the same, too large to inline on a GPU: inlining everywhere would
 *              make a million instructions of a narrow phase
 * TB_EXTERN    a function that other source files call
 * TB_STATIC    a function of one file
 * TB_CALLED    the same, never inlined on a GPU, where instruction fetch dominates the time of code
 *              that runs once
 * TB_TABLE     constant arrays of one file */
#ifdef __CUDACC__
#define TB_FN       __host__ __device__ static inline
#define TB_FN_LARGE __host__ __device__ __noinline__ static
#else
#define TB_FN       static inline
#define TB_FN_LARGE static inline
#endif

#if defined(TB_DEVICE) && defined(__CUDACC__)
#define TB_EXTERN static __device__ __noinline__
#define TB_STATIC static __device__
#define TB_CALLED static __device__ __noinline__
#define TB_TABLE  static __device__ const
#elif defined(TB_DEVICE) /* all other files are in the same translation unit */
#define TB_EXTERN static
#define TB_STATIC static
#define TB_CALLED static
#define TB_TABLE  static const
#else
#define TB_EXTERN
#define TB_STATIC static
#define TB_CALLED static
#define TB_TABLE  static const
#endif

/* Keeps a function out of line, so that its registers do not burden the loop around it. */
#define TB_NO_INLINE __attribute__((noinline))
/* For a function whose loop's speed depends on its alignment in a cache line. */
#define TB_ALIGNED_CODE __attribute__((aligned(64)))

/* Before a loop that the GPU compiler must not unroll: much of a step runs once, where
 * instruction fetch dominates the time. */
#ifdef __CUDACC__
#define TB_ROLLED _Pragma("unroll 1")
#else
#define TB_ROLLED
#endif

/* Before a loop that is unrolled by four, so that four loads are in flight. */
#ifdef __CUDACC__
#define TB_UNROLLED _Pragma("unroll 4")
#else
#define TB_UNROLLED
#endif

/* Alignment of a struct, before its name. */
#define TB_ALIGNED(bytes) __attribute__((aligned(bytes)))

/* A value of a struct type from its fields, in the order of their declaration. */
#ifdef __cplusplus
#define TB_VALUE(type) type
#else
#define TB_VALUE(type) (type)
#endif

#if defined(__cplusplus)
#define TB_RESTRICT __restrict__
#else
#define TB_RESTRICT restrict
#endif

#endif
