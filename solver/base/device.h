/* One source for the processor and for a card: what stands before a function.
 *
 * The rooms collide, contact, solve and step are C that a card runs too. A backend that wants them
 * there includes their sources in one translation unit of C++ or CUDA with TB_DEVICE defined (see
 * gpu/batch/physics.h); everywhere else these words are those of plain C.
 *
 * With TB_DEVICE, and only then: memory comes from one block that somebody else provides, errors
 * bear no text, there are no threads within a world and nothing is known by name. */
#ifndef TB_DEVICE_H
#define TB_DEVICE_H

/* TB_FN        per-element mathematics of a header, for any side of any language
 * TB_FN_LARGE  the same, too large to be copied into every place that calls it on a card: its
 *              compilers would make a million instructions of a narrow phase
 * TB_EXTERN    a function that other files of the rooms call
 * TB_STATIC    a function of one file
 * TB_CALLED    the same, called on a card and not copied into its callers: what runs there waits for
 *              its code more than for anything else
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
#elif defined(TB_DEVICE) /* all other files are in the same unit */
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

/* For what would take registers from the loop around it. */
#define TB_NO_INLINE __attribute__((noinline))
/* For a loop whose speed depends on its place in a cache line. */
#define TB_ALIGNED_CODE __attribute__((aligned(64)))

/* Before a loop that a card's compiler shall not unroll: much of a step runs once, and there it waits
 * for its code more than for anything else. */
#ifdef __CUDACC__
#define TB_ROLLED _Pragma("unroll 1")
#else
#define TB_ROLLED
#endif

/* Before a loop whose numbers shall be on their way four at a time. */
#ifdef __CUDACC__
#define TB_UNROLLED _Pragma("unroll 4")
#else
#define TB_UNROLLED
#endif

/* Of a struct, before its name: what it is aligned to. */
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
