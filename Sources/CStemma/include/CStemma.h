#ifndef CSTEMMA_H
#define CSTEMMA_H

#include <stddef.h>
#include <stdint.h>

// CRC32C (Castagnoli) of `length` bytes, continuing from `crc` (0 to begin).
// Uses the instruction of the processor if it has one.
uint32_t stemma_crc32c(uint32_t crc, const void *bytes, size_t length);

// Distinguishes a file from its copy, by the inode and the time of birth. The time of birth is 0 if
// the file system has none. Returns 0, or errno.
struct stemma_file_identity {
  uint64_t inode;
  int64_t birth_seconds;
  uint32_t birth_nanoseconds;
};
int stemma_identity(int descriptor, struct stemma_file_identity *identity);

// Queue for the flock of an open file. Each waiter locks one byte (fcntl, F_OFD_SETLK), at an
// offset that is its time of arrival. The kernel releases the byte with the open file, so a killed
// waiter leaves the queue.
// `stemma_queue` takes a place. The place is 0 if there are no queues: on other kernels than Linux,
// and in file systems whose server treats both kinds of locks as one. Returns 0, or errno.
// `stemma_is_queued` returns 1 if other open files are in the queue (before `place` if that is not
// 0), 0 if not, -1 with errno.
int stemma_queue(int descriptor, uint64_t *place);
int stemma_is_queued(int descriptor, uint64_t place);

// Inflates raw deflate with libdeflate (Debian: libdeflate0), which is twice as fast as zlib.
// Returns 1 if the stream gave exactly `count` bytes and ended with its input, 0 if not, -1 without
// the library. Never writes beyond `count`. Accepts some streams that zlib rejects and no
// compressor writes, such as one with a reserved distance.
int stemma_inflate_quickly(const void *bytes, size_t length, void *target, size_t count);

// A compressor of libdeflate, for one thread at a time; NULL without the library. `level`: 1 … 9.
void *stemma_make_compressor(int level);
// Writes the raw deflate of `bytes` to `target`. Returns its length, 0 if it is longer than `room`.
size_t stemma_deflate_quickly(void *compressor, const void *bytes, size_t length, void *target, size_t room);
void stemma_free_compressor(void *compressor);

// Makes all threads of the process allocate from two heaps. By default, glibc gives each thread its
// own, whose free memory other threads cannot use. Allocations from 768 KB on are mapped separately
// and return to the system when freed, so they leave no gaps. Does nothing on other C libraries
// than glibc.
void stemma_keep_heap_small(void);

// Returns freed memory that the C library keeps to the system, with new versions of glibc only if
// it is more than 12 MB. Does nothing on other C libraries than those of glibc and macOS.
void stemma_return_free_memory(void);

// Starts `/bin/sh -c command` in the process group of this process, with `argument` as its $1
// (NULL: none) and the descriptor `input` as its standard input. Interrupts of the terminal end it,
// even if this process ignores them. Returns 0, or an error number.
int stemma_begin_shell(const char *command, const char *argument, int input, int *process);

// Waits for its end. Returns its exit code; -1 if a signal ended it, or there is no such process.
int stemma_end_of_shell(int process);

// Prefetches these bytes into the caches of the processor. Any address is valid: nothing is read.
static inline void stemma_prefetch(const void *bytes) { __builtin_prefetch(bytes); }

#endif
