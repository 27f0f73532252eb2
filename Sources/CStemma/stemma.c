#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "CStemma.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#ifdef __GLIBC__
#include <malloc.h>
#elif defined(__APPLE__)
#include <malloc/malloc.h>
#endif
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/stat.h>
#if defined(__linux__)
#include <sys/vfs.h>
#endif
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static uint32_t table[8][256];

// Slicing by eight. The tables are filled before main runs, so that no call has to check them.
__attribute__((constructor)) static void fill_table(void) {
  for (uint32_t i = 0; i < 256; i++) {
    uint32_t c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? (c >> 1) ^ 0x82f63b78u : c >> 1;
    table[0][i] = c;
  }
  for (uint32_t i = 0; i < 256; i++)
    for (int s = 1; s < 8; s++) table[s][i] = (table[s - 1][i] >> 8) ^ table[0][table[s - 1][i] & 255];
}

static uint32_t crc_portable(uint32_t c, const unsigned char *p, size_t n) {
  while (n >= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    w = __builtin_bswap64(w);
#endif
    w ^= c;
    c = table[7][w & 255] ^ table[6][(w >> 8) & 255] ^ table[5][(w >> 16) & 255] ^ table[4][(w >> 24) & 255] ^
        table[3][(w >> 32) & 255] ^ table[2][(w >> 40) & 255] ^ table[1][(w >> 48) & 255] ^ table[0][w >> 56];
    p += 8;
    n -= 8;
  }
  while (n--) c = (c >> 8) ^ table[0][(c ^ *p++) & 255];
  return c;
}

#if defined(__x86_64__)
#include <nmmintrin.h>
__attribute__((target("sse4.2"))) static uint32_t crc_hardware(uint32_t c, const unsigned char *p, size_t n) {
  uint64_t wide = c;
  while (n >= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    wide = _mm_crc32_u64(wide, w);
    p += 8;
    n -= 8;
  }
  c = (uint32_t)wide;
  while (n--) c = _mm_crc32_u8(c, *p++);
  return c;
}
static int has_hardware(void) { return __builtin_cpu_supports("sse4.2"); }
#elif defined(__ARM_FEATURE_CRC32)
#include <arm_acle.h>
static uint32_t crc_hardware(uint32_t c, const unsigned char *p, size_t n) {
  while (n >= 8) {
    uint64_t w;
    memcpy(&w, p, 8);
    c = __crc32cd(c, w);
    p += 8;
    n -= 8;
  }
  while (n--) c = __crc32cb(c, *p++);
  return c;
}
static int has_hardware(void) { return 1; }
#else
static uint32_t crc_hardware(uint32_t c, const unsigned char *p, size_t n) { return crc_portable(c, p, n); }
static int has_hardware(void) { return 0; }
#endif

uint32_t stemma_crc32c(uint32_t crc, const void *bytes, size_t length) {
  const unsigned char *p = bytes;
  return ~(has_hardware() ? crc_hardware(~crc, p, length) : crc_portable(~crc, p, length));
}

int stemma_identity(int descriptor, struct stemma_file_identity *identity) {
  memset(identity, 0, sizeof *identity);
#if defined(__linux__)
  struct statx s;
  if (statx(descriptor, "", AT_EMPTY_PATH, STATX_INO | STATX_BTIME, &s) != 0) return errno;
  identity->inode = s.stx_ino;
  if (s.stx_mask & STATX_BTIME) {
    identity->birth_seconds = s.stx_btime.tv_sec;
    identity->birth_nanoseconds = s.stx_btime.tv_nsec;
  }
#else
  struct stat s;
  if (fstat(descriptor, &s) != 0) return errno;
  identity->inode = s.st_ino;
#if defined(__APPLE__)
  identity->birth_seconds = s.st_birthtimespec.tv_sec;
  identity->birth_nanoseconds = (uint32_t)s.st_birthtimespec.tv_nsec;
#endif
#endif
  return 0;
}

#if defined(__linux__)
// Numbers of linux/magic.h: NFS, CIFS, SMB2, 9P.
static int has_queues(int descriptor) {
  struct statfs s;
  if (fstatfs(descriptor, &s) != 0) return 0;
  uint32_t type = (uint32_t)s.f_type;
  return type != 0x6969 && type != 0xff534d42u && type != 0xfe534d42u && type != 0x01021997;
}

int stemma_queue(int descriptor, uint64_t *place) {
  *place = 0;
  if (!has_queues(descriptor)) return 0;
  struct timespec now;
  if (clock_gettime(CLOCK_MONOTONIC, &now) != 0) return errno;
  uint64_t wanted = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec + 1;
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = (off_t)wanted, .l_len = 1};
  while (fcntl(descriptor, F_OFD_SETLK, &lock) != 0) {
    // A kernel without these locks.
    if (errno == EINVAL || errno == ENOSYS) return 0;
    if (errno != EAGAIN && errno != EACCES) return errno;
    lock.l_start += 1;
  }
  *place = (uint64_t)lock.l_start;
  return 0;
}

int stemma_is_queued(int descriptor, uint64_t place) {
  // Length 0: to the end of all offsets.
  struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = (off_t)place};
  if (fcntl(descriptor, F_OFD_GETLK, &lock) != 0) return errno == EINVAL || errno == ENOSYS ? 0 : -1;
  return lock.l_type != F_UNLCK;
}
#else
int stemma_queue(int descriptor, uint64_t *place) {
  (void)descriptor;
  *place = 0;
  return 0;
}

int stemma_is_queued(int descriptor, uint64_t place) {
  (void)descriptor;
  (void)place;
  return 0;
}
#endif

// The signatures of libdeflate.h, version 1, so that its header is not needed.
static struct {
  void *(*allocate)(void);
  void (*deallocate)(void *);
  int (*decompress)(void *, const void *, size_t, void *, size_t, size_t *, size_t *);
  void *(*allocate_compressor)(int);
  void (*deallocate_compressor)(void *);
  size_t (*compress)(void *, const void *, size_t, void *, size_t);
} libdeflate;
static pthread_once_t libdeflate_once = PTHREAD_ONCE_INIT;

static void load_libdeflate(void) {
#if defined(__APPLE__)
  void *library = dlopen("libdeflate.0.dylib", RTLD_NOW | RTLD_LOCAL);
#else
  void *library = dlopen("libdeflate.so.0", RTLD_NOW | RTLD_LOCAL);
#endif
  if (!library) return;
  void *allocate = dlsym(library, "libdeflate_alloc_decompressor");
  void *deallocate = dlsym(library, "libdeflate_free_decompressor");
  void *decompress = dlsym(library, "libdeflate_deflate_decompress_ex");
  void *allocate_compressor = dlsym(library, "libdeflate_alloc_compressor");
  void *deallocate_compressor = dlsym(library, "libdeflate_free_compressor");
  void *compress = dlsym(library, "libdeflate_deflate_compress");
  if (!allocate || !deallocate || !decompress) return;
  if (!allocate_compressor || !deallocate_compressor || !compress) return;
  memcpy(&libdeflate.allocate_compressor, &allocate_compressor, sizeof allocate_compressor);
  memcpy(&libdeflate.deallocate_compressor, &deallocate_compressor, sizeof deallocate_compressor);
  memcpy(&libdeflate.compress, &compress, sizeof compress);
  memcpy(&libdeflate.deallocate, &deallocate, sizeof deallocate);
  memcpy(&libdeflate.decompress, &decompress, sizeof decompress);
  memcpy(&libdeflate.allocate, &allocate, sizeof allocate);
}

int stemma_inflate_quickly(const void *bytes, size_t length, void *target, size_t count) {
  pthread_once(&libdeflate_once, load_libdeflate);
  if (!libdeflate.allocate) return -1;
  void *decompressor = libdeflate.allocate();
  if (!decompressor) return -1;
  size_t taken = 0, given = 0;
  int outcome = libdeflate.decompress(decompressor, bytes, length, target, count, &taken, &given);
  libdeflate.deallocate(decompressor);
  return outcome == 0 && taken == length && given == count;
}

void *stemma_make_compressor(int level) {
  pthread_once(&libdeflate_once, load_libdeflate);
  return libdeflate.allocate ? libdeflate.allocate_compressor(level) : NULL;
}

size_t stemma_deflate_quickly(void *compressor, const void *bytes, size_t length, void *target, size_t room) {
  return libdeflate.compress(compressor, bytes, length, target, room);
}

void stemma_free_compressor(void *compressor) { libdeflate.deallocate_compressor(compressor); }

void stemma_keep_heap_small(void) {
#ifdef __GLIBC__
  mallopt(M_ARENA_MAX, 2);
  // Setting one of these stops glibc from adapting both to freed sizes (mallopt(3)). Both are set, or
  // the end of the heap would move back and forth.
  mallopt(M_MMAP_THRESHOLD, 768 << 10);
  mallopt(M_TRIM_THRESHOLD, 8 << 20);
#endif
}

void stemma_return_free_memory(void) {
#ifdef __GLIBC__
#if __GLIBC_PREREQ(2, 33)
  // A few megabytes are soon allocated again, and new pages from the system cost milliseconds.
  if (mallinfo2().fordblks < (12u << 20)) return;
#endif
  malloc_trim(0);
#elif defined(__APPLE__)
  malloc_zone_pressure_relief(NULL, 0);
#endif
}

extern char **environ;

int stemma_begin_shell(const char *command, const char *argument, int input, int *process) {
  char *const arguments[] = {"sh", "-c", (char *)command, "stemma", (char *)argument, NULL};
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  sigset_t interrupts;
  pid_t id = 0;
  int code = posix_spawn_file_actions_init(&actions);
  if (code != 0) return code;
  code = posix_spawnattr_init(&attributes);
  if (code == 0) {
    sigemptyset(&interrupts);
    sigaddset(&interrupts, SIGINT);
    sigaddset(&interrupts, SIGQUIT);
    posix_spawnattr_setsigdefault(&attributes, &interrupts);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    if (input != 0) code = posix_spawn_file_actions_adddup2(&actions, input, 0);
    if (code == 0) code = posix_spawn(&id, "/bin/sh", &actions, &attributes, arguments, environ);
    posix_spawnattr_destroy(&attributes);
  }
  posix_spawn_file_actions_destroy(&actions);
  *process = (int)id;
  return code;
}

int stemma_end_of_shell(int process) {
  int status = 0;
  while (waitpid((pid_t)process, &status, 0) < 0)
    if (errno != EINTR) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
