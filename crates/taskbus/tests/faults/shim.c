/*
 * A disk that can be watched and that can fail, for one process: preloaded, it stands between the program and the calls
 * that change files below one directory. It writes down each of them in its order, and it can make one of them fail.
 * For tests only; it never ships.
 *
 *   TASKBUS_SHIM_DIR   the directory that is watched, without a slash at its end
 *   TASKBUS_SHIM_LOG   where everything is written down; nothing is, when it is not set
 *   TASKBUS_SHIM_FAIL  N:KIND, the N-th write, cut or sync fails: eio, enospc, short (half of it is written, as is said),
 *                      torn (half of it is written, and the process is killed), full (as enospc, from there on for ever)
 *   TASKBUS_SHIM_DROP  all: no sync reaches the disk, and all succeed; dir: none of a directory does
 *   TASKBUS_SHIM_STAT  the file of this path is for ever the one that it was when it was first asked about
 *
 * A record is a kind (one byte: Open, Write, Truncate, Sync, Directory, Unlink), the number of the file, a
 * number, a length, and so many bytes. Calls are made one at a time, so that their order is the one written down.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#define FDS 1024
#define FILES 4096

enum kind { NOTHING, FILE_, DIRECTORY, ACKS };

struct __attribute__((packed)) head {
    uint8_t kind;
    uint32_t file;
    uint64_t number;
    uint32_t length;
};

static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER;
static char *paths[FILES];
static uint32_t files;
static struct { enum kind kind; uint32_t file; } fds[FDS];
static const char *dir, *drop, *stat_path;
static int log_fd = -1;
static long calls, fail_at;
static char fail_kind[16];

static void begin(void) __attribute__((constructor));

static void begin(void) {
    dir = getenv("TASKBUS_SHIM_DIR");
    drop = getenv("TASKBUS_SHIM_DROP");
    stat_path = getenv("TASKBUS_SHIM_STAT");
    const char *log = getenv("TASKBUS_SHIM_LOG");
    if (log)
        log_fd = (int)syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    const char *fail = getenv("TASKBUS_SHIM_FAIL");
    if (fail) {
        char *rest;
        fail_at = strtol(fail, &rest, 10);
        strncpy(fail_kind, *rest ? rest + 1 : rest, sizeof fail_kind - 1);
    }
}

static void note(char kind, uint32_t file, uint64_t number, const void *bytes, size_t length) {
    if (log_fd < 0)
        return;
    struct head head = {(uint8_t)kind, file, number, (uint32_t)length};
    struct iovec parts[2] = {{&head, sizeof head}, {(void *)bytes, length}};
    if (syscall(SYS_writev, log_fd, parts, 2) != (long)(sizeof head + length))
        abort();
}

static int ends_with(const char *text, const char *end) {
    size_t a = strlen(text), b = strlen(end);
    return a >= b && strcmp(text + a - b, end) == 0;
}

static enum kind kind_of(const char *path) {
    size_t length = dir ? strlen(dir) : 0;
    if (!length || strncmp(path, dir, length) != 0)
        return NOTHING;
    if (path[length] == 0)
        return DIRECTORY;
    if (path[length] != '/' || ends_with(path, "-shm"))
        return NOTHING;
    return ends_with(path, "/acks.log") ? ACKS : FILE_;
}

/* The number of the file that a path names; a new one for a new file. */
static uint32_t number_of(const char *path, int is_new) {
    for (uint32_t at = files; !is_new && at > 0; at--)
        if (paths[at - 1] && strcmp(paths[at - 1], path) == 0)
            return at - 1;
    if (files == FILES)
        abort();
    paths[files] = strdup(path);
    return files++;
}

static void forget(const char *path) {
    for (uint32_t at = 0; at < files; at++)
        if (paths[at] && strcmp(paths[at], path) == 0)
            paths[at] = NULL;
}

static int opened(int at, const char *path, int flags, mode_t mode) {
    enum kind kind = path[0] == '/' ? kind_of(path) : NOTHING;
    if (kind == NOTHING)
        return (int)syscall(SYS_openat, at, path, flags, mode);
    pthread_mutex_lock(&one_at_a_time);
    int is_new = (flags & O_CREAT) && faccessat(AT_FDCWD, path, F_OK, 0) != 0;
    int fd = (int)syscall(SYS_openat, at, path, flags, mode);
    int error = errno;
    if (fd >= 0 && fd < FDS) {
        fds[fd].kind = kind;
        if (kind != DIRECTORY) {
            uint32_t before = files;
            fds[fd].file = number_of(path, is_new);
            if (files != before)
                note('O', fds[fd].file, 0, path, strlen(path));
            if (flags & O_TRUNC)
                note('T', fds[fd].file, 0, "", 0);
        }
    }
    pthread_mutex_unlock(&one_at_a_time);
    errno = error;
    return fd;
}

static mode_t mode_in(int flags, va_list rest) {
    return flags & (O_CREAT | O_TMPFILE) ? (mode_t)va_arg(rest, int) : 0;
}

#define OPEN(name)                                                                                                     \
    int name(const char *path, int flags, ...) {                                                                       \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_in(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return opened(AT_FDCWD, path, flags, mode);                                                                    \
    }
#define OPENAT(name)                                                                                                   \
    int name(int at, const char *path, int flags, ...) {                                                               \
        va_list rest;                                                                                                  \
        va_start(rest, flags);                                                                                         \
        mode_t mode = mode_in(flags, rest);                                                                            \
        va_end(rest);                                                                                                  \
        return opened(at, path, flags, mode);                                                                          \
    }
OPEN(open)
OPEN(open64)
OPENAT(openat)
OPENAT(openat64)

int close(int fd) {
    pthread_mutex_lock(&one_at_a_time);
    if (fd >= 0 && fd < FDS)
        fds[fd].kind = NOTHING;
    int result = (int)syscall(SYS_close, fd);
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

static enum kind watched(int fd) { return fd >= 0 && fd < FDS ? fds[fd].kind : NOTHING; }

static int is_kind(const char *kind) { return strcmp(fail_kind, kind) == 0; }

/* Whether this call is the one that fails. */
static int fails(void) {
    calls++;
    return fail_at && (calls == fail_at || (is_kind("full") && calls > fail_at));
}

static int error_of_failure(void) { return is_kind("eio") || is_kind("short") || is_kind("torn") ? EIO : ENOSPC; }

static void die_if_torn(void) {
    if (is_kind("torn"))
        syscall(SYS_kill, getpid(), SIGKILL);
}

/* Writes at a place, or where the file stands when that is negative. */
static ssize_t put(int fd, const void *bytes, size_t length, off64_t at) {
    off64_t place = at >= 0 ? at : (off64_t)syscall(SYS_lseek, fd, 0L, SEEK_CUR);
    long wrote = at >= 0 ? syscall(SYS_pwrite64, fd, bytes, length, at) : syscall(SYS_write, fd, bytes, length);
    int error = errno;
    if (wrote > 0) {
        /* A file that is written at its end says where that is only afterwards. */
        if (at < 0 && (fcntl(fd, F_GETFL) & O_APPEND))
            place = (off64_t)syscall(SYS_lseek, fd, 0L, SEEK_CUR) - wrote;
        note('W', fds[fd].file, (uint64_t)place, bytes, (size_t)wrote);
    }
    errno = error;
    return wrote;
}

static ssize_t written(int fd, const void *bytes, size_t length, off64_t at) {
    enum kind kind = watched(fd);
    if (kind != FILE_ && kind != ACKS)
        return at >= 0 ? syscall(SYS_pwrite64, fd, bytes, length, at) : syscall(SYS_write, fd, bytes, length);
    pthread_mutex_lock(&one_at_a_time);
    ssize_t wrote;
    if (kind == FILE_ && fails()) {
        int half = (is_kind("short") || is_kind("torn")) && length > 1;
        wrote = half ? put(fd, bytes, length / 2, at) : -1;
        die_if_torn();
        if (wrote < 0)
            errno = error_of_failure();
    } else {
        wrote = put(fd, bytes, length, at);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return wrote;
}

ssize_t write(int fd, const void *bytes, size_t length) { return written(fd, bytes, length, -1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return written(fd, bytes, length, at); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off64_t at) { return written(fd, bytes, length, at); }

static int cut(int fd, off64_t size) {
    if (watched(fd) != FILE_)
        return (int)syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&one_at_a_time);
    int result = -1;
    if (fails()) {
        die_if_torn();
        errno = error_of_failure();
    } else if ((result = (int)syscall(SYS_ftruncate, fd, size)) == 0) {
        note('T', fds[fd].file, (uint64_t)size, "", 0);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int ftruncate(int fd, off_t size) { return cut(fd, size); }
int ftruncate64(int fd, off64_t size) { return cut(fd, size); }

static int synced(int fd, long call) {
    enum kind kind = watched(fd);
    if (kind == NOTHING)
        return (int)syscall(call, fd);
    pthread_mutex_lock(&one_at_a_time);
    int result = 0;
    if (kind == FILE_ && fails()) {
        die_if_torn();
        errno = error_of_failure();
        result = -1;
    } else if (!drop || (kind != DIRECTORY && strcmp(drop, "dir") == 0)) {
        note(kind == DIRECTORY ? 'D' : 'S', kind == DIRECTORY ? 0 : fds[fd].file, 0, "", 0);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

/* The disk under the test is not asked: what reaches it is what is written down. */
int fsync(int fd) { return synced(fd, SYS_fsync); }
int fdatasync(int fd) { return synced(fd, SYS_fdatasync); }

int unlink(const char *path) {
    enum kind kind = kind_of(path);
    pthread_mutex_lock(&one_at_a_time);
    int result = (int)syscall(SYS_unlinkat, AT_FDCWD, path, 0);
    if (result == 0 && kind == FILE_) {
        note('U', number_of(path, 0), 0, path, strlen(path));
        forget(path);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return result;
}

int statx(int at, const char *path, int flags, unsigned mask, struct statx *facts) {
    static struct statx first;
    static int known;
    /* Who only wants to know whether there is such a call names no path, which the header does not allow. */
    const char *volatile asked = path;
    long result = syscall(SYS_statx, at, path, flags, mask, facts);
    if (stat_path && asked && strcmp(asked, stat_path) == 0) {
        pthread_mutex_lock(&one_at_a_time);
        if (!known && result == 0) {
            first = *facts;
            known = 1;
        } else if (known) {
            *facts = first;
            result = 0;
        }
        pthread_mutex_unlock(&one_at_a_time);
    }
    return (int)result;
}
