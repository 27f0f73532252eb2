#ifndef CSTEMMA_H
#define CSTEMMA_H

#include <stddef.h>
#include <stdint.h>

// CRC32C (Castagnoli) of `length` bytes, continuing from `crc` (0 to begin).
// Uses the processor's instruction where there is one.
uint32_t stemma_crc32c(uint32_t crc, const void *bytes, size_t length);

// What tells one file from its copy: the inode and the time of birth. Birth time is 0 where the
// file system keeps none. Returns 0, or errno.
struct stemma_file_identity {
  uint64_t inode;
  int64_t birth_seconds;
  uint32_t birth_nanoseconds;
};
int stemma_identity(int descriptor, struct stemma_file_identity *identity);

// Queue for the flock of an open file: each waiter locks one byte (fcntl, F_OFD_SETLK), at the offset that is the time at which it
// came. The kernel releases the byte with the open file, so a waiter that is killed leaves the queue.
// `stemma_queue` takes a place; the place is 0 where there are no queues: with another kernel than Linux, and in file systems where
// a server keeps both kinds of locks as one. Returns 0, or errno.
// `stemma_is_queued` asks for other open files in the queue, before `place` if that is not 0. Returns 1, 0, or -1 with errno.
int stemma_queue(int descriptor, uint64_t *place);
int stemma_is_queued(int descriptor, uint64_t place);

// Inflates raw deflate with libdeflate, which is twice as fast as zlib, if this machine has it (Debian: libdeflate0).
// Returns 1 if the stream gave exactly `count` bytes and ended with its input, 0 if not, -1 without the library. Never
// writes beyond `count`. Unlike zlib it takes some streams that no compressor writes, such as one with a reserved distance.
int stemma_inflate_quickly(const void *bytes, size_t length, void *target, size_t count);

// From now on all threads of the process take memory from two heaps, where the C library would give each one of its own, of
// which the others cannot use what is free; and what takes 768 KB or more is apart from them and goes back to the system when it
// is freed, where it would leave gaps between what stays. Does nothing with a C library other than glibc.
void stemma_keep_heap_small(void);

// Gives memory that was freed back to the system, where the C library would keep it, if it is more than 12 MB. Does nothing with a
// C library other than glibc and macOS's.
void stemma_return_free_memory(void);

// Calls `body` with `context` on a thread of its own, for whose end nobody waits. Returns 0, or an error number: then there is
// no thread, and nothing is called.
int stemma_begin_thread(void *(*body)(void *), void *context);

// How many processors this process may use, 1 at least.
int stemma_processors(void);

// From now on `stemma_keep_current_queue` has the queue of libdispatch on which it is called live as long as the process; before,
// it does nothing. For processes that end soon, and have no use for libdispatch's threads: letting go of a queue that something
// is tied to (dispatch_queue_set_specific) begins one, and waits for ever where none can be made. Set before there are threads.
void stemma_keep_queues(void);
void stemma_keep_current_queue(void);

// Begins `/bin/sh -c command` with `argument` as its $1 (NULL: it has none) and the descriptor `input` as its standard input, in
// the group of processes that the terminal belongs to. Interrupts end it, also where they do not end this process. Returns 0, or
// an error number.
int stemma_begin_shell(const char *command, const char *argument, int input, int *process);

// Waits for its end: its exit code; -1 if a signal ended it, or there is no such process.
int stemma_end_of_shell(int process);

// Asks the processor to have these bytes in its caches soon. Any address will do: nothing is read.
static inline void stemma_prefetch(const void *bytes) { __builtin_prefetch(bytes); }

#endif
