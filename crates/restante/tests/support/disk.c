/*
 * Injects disk faults, for tests of the durability of stored messages.
 *
 * The server loads this library with LD_PRELOAD. It intercepts the calls that change files below FAULTS_DIR, except for
 * SQLite's "-shm" files, which are shared memory and recreated after a crash.
 *
 *   FAULTS_DIR    the directory of the files: an absolute path without symbolic links
 *   FAULTS_LOG    receives one line for each step: its number, kind, length and path
 *   FAULTS_PLAN   a file with the planned fault; it can be created, replaced (by rename) and removed at any time
 *
 * A step is one change, of a kind that has a letter: w overwrites bytes, g writes and makes the file grow, s syncs a
 * file or directory, t truncates, c creates a file or directory, u removes a file, r renames one. A plan is one line,
 * "AT FAULT COUNT KINDS SEED": of the steps of these KINDS, counted from 1 since the plan was set, COUNT steps from the
 * one numbered AT on have the FAULT:
 *
 *   ENOSPC EDQUOT EIO   the call fails
 *   HANG                the call does not return until the plan changes, at most for a minute; then it does its work.
 *                       Steps of other kinds are not delayed meanwhile.
 *   SHORT               half of the bytes are written, and the step after it fails with ENOSPC
 *   EXIT                the process is killed before the step
 *   TORN                half of the bytes are written, then the process is killed
 *   POWER               the process is killed, and the files are as after a power loss: changes that were not synced
 *                       are undone. With SEED 0 all of them; otherwise each write is randomly kept, lost, or kept in
 *                       some of its sectors, and the last changes to directories are lost.
 *
 * Only fsync makes bytes durable, and only fsync of the directory makes a name in it, or its removal, durable: this is less
 * than ext4 guarantees, and all that POSIX guarantees. When a sync fails, its bytes are never written, even if the next
 * sync succeeds: Linux does the same, because it drops pages that it could not write.
 *
 * Punching holes into files is not a step. Holes are never undone, as if they reached the disk at once.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { SECTOR = 512, MAX_HANG_MS = 60 * 1000, POLL_INTERVAL_MS = 10 };

/* The kinds of steps, in the order of their letters. */
enum kind { WRITE, GROW, SYNC, TRUNCATE, CREATE, UNLINK, RENAME };
static const char letters[] = "wgstcur";
static const char *const names[] = {"write", "grow", "sync", "truncate", "create", "unlink", "rename"};

/* The outcome of a step; errno is set if it fails. */
enum verdict { GO, FAIL, HALF, HALF_THEN_KILL };

/* A change of bytes that is not durable yet, with the data to undo and to redo it. */
struct change {
    off_t at, old_size, new_size; /* new_size is used by truncations only, which have no bytes */
    char *bytes, *old;
    size_t length, old_length;
    enum { PENDING, SYNCING, DURABLE, LOST } state;
};

struct file {
    dev_t device;
    ino_t inode;
    int fd; /* Opened here and never closed: closing any descriptor of a file drops SQLite's locks on it. */
    struct change *changes;
    size_t count;
};

/* A change of a name that is not durable yet. The replaced or removed file is kept in the backup directory. */
struct name_change {
    enum kind kind;
    char path[PATH_MAX], from[PATH_MAX], backup[PATH_MAX];
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static char dir[PATH_MAX], plan_path[PATH_MAX], backup_dir[PATH_MAX];
static int log_fd = -1;
static struct file *files;
static struct name_change *name_changes;
static size_t file_count, name_change_count, backup_count;
static long steps;
static int next_is_full;

static struct {
    struct stat stat;
    long at, count, seen;
    char fault[16], kinds[16];
    unsigned long seed;
} plan;

__attribute__((constructor)) static void start(void) {
    const char *root = getenv("FAULTS_DIR"), *log = getenv("FAULTS_LOG"), *plan_file = getenv("FAULTS_PLAN");
    if (!root || !log || !plan_file) return;
    snprintf(plan_path, sizeof plan_path, "%s", plan_file);
    snprintf(backup_dir, sizeof backup_dir, "%.*s.backup", PATH_MAX - 32, root);
    log_fd = syscall(SYS_openat, AT_FDCWD, log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (log_fd < 0 || (syscall(SYS_mkdirat, AT_FDCWD, backup_dir, 0755) && errno != EEXIST)) abort();
    snprintf(dir, sizeof dir, "%s", root);
    dprintf(log_fd, "loaded\n");
}

/* ---- Selection of files ---- */

static int ends_with(const char *text, const char *end) {
    size_t length = strlen(text), tail = strlen(end);
    return length >= tail && !strcmp(text + length - tail, end);
}

static int is_watched(const char *path) {
    size_t length = strlen(dir);
    return length && !strncmp(path, dir, length) && (path[length] == '/' || !path[length]) && !ends_with(path, "-shm");
}

/* Returns the path of a call with a directory descriptor. */
static int path_at(int at, const char *path, char *full) {
    if (*path == '/' || at == AT_FDCWD) return snprintf(full, PATH_MAX, "%s", path), is_watched(full);
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", at);
    ssize_t length = readlink(link, full, PATH_MAX - 1);
    if (length < 0) return 0;
    snprintf(full + length, PATH_MAX - length, "/%s", path);
    return is_watched(full);
}

/* Returns the path of a descriptor if it is a file or directory below FAULTS_DIR. */
static int path_of(int fd, char *path) {
    struct stat stat;
    if (!*dir || fstat(fd, &stat) || (!S_ISREG(stat.st_mode) && !S_ISDIR(stat.st_mode))) return 0;
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, PATH_MAX - 1);
    if (length < 0) return 0;
    path[length] = 0;
    return is_watched(path) || (!strncmp(path, backup_dir, strlen(backup_dir)) && !ends_with(path, "-shm"));
}

static off_t size_of(int fd) {
    struct stat stat;
    return fstat(fd, &stat) ? 0 : stat.st_size;
}

static struct file *file_of(int fd) {
    struct stat stat;
    if (fstat(fd, &stat)) abort();
    for (size_t i = 0; i < file_count; i++)
        if (files[i].inode == stat.st_ino && files[i].device == stat.st_dev) return &files[i];
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    int own = syscall(SYS_openat, AT_FDCWD, link, O_RDWR | O_CLOEXEC, 0);
    files = realloc(files, (file_count + 1) * sizeof *files);
    if (own < 0 || !files) abort();
    files[file_count] = (struct file){.device = stat.st_dev, .inode = stat.st_ino, .fd = own};
    return &files[file_count++];
}

/* ---- Changes that are not durable yet ---- */

static void *copy_of(const void *bytes, size_t length) {
    void *copy = malloc(length ? length : 1);
    if (!copy) abort();
    return bytes ? memcpy(copy, bytes, length) : copy;
}

/* Records a change before it is made: bytes at an offset, or without bytes a new size. */
static void record_change(int fd, const void *bytes, size_t length, off_t at) {
    struct file *file = file_of(fd);
    off_t size = size_of(fd), end = bytes ? at + (off_t)length : size;
    struct change change = {.at = at, .old_size = size, .new_size = at, .length = length};
    change.bytes = bytes ? copy_of(bytes, length) : NULL;
    if (end > size) end = size;
    change.old_length = end > at ? end - at : 0;
    change.old = copy_of(NULL, change.old_length);
    if (pread(file->fd, change.old, change.old_length, at) != (ssize_t)change.old_length) abort();
    file->changes = realloc(file->changes, (file->count + 1) * sizeof change);
    if (!file->changes) abort();
    file->changes[file->count++] = change;
}

/* Starts a sync of everything written so far; if it fails, all of that is marked as lost. */
static void begin_sync(struct file *file, int fails) {
    for (size_t i = 0; i < file->count; i++)
        if (file->changes[i].state == PENDING) file->changes[i].state = fails ? LOST : SYNCING;
}

/* Ends a sync. Durable changes after one that is not durable are kept, to be redone when that one is undone. */
static void finish_sync(struct file *file) {
    for (size_t i = 0; i < file->count; i++)
        if (file->changes[i].state == SYNCING) file->changes[i].state = DURABLE;
    size_t done = 0;
    for (; done < file->count && file->changes[done].state == DURABLE; done++)
        free(file->changes[done].bytes), free(file->changes[done].old);
    file->count -= done;
    memmove(file->changes, file->changes + done, file->count * sizeof *file->changes);
}

static void record_name_change(enum kind kind, const char *path, const char *from, const char *backup) {
    name_changes = realloc(name_changes, (name_change_count + 1) * sizeof *name_changes);
    if (!name_changes) abort();
    struct name_change *name_change = &name_changes[name_change_count++];
    name_change->kind = kind;
    snprintf(name_change->path, PATH_MAX, "%s", path);
    snprintf(name_change->from, PATH_MAX, "%s", from ? from : "");
    snprintf(name_change->backup, PATH_MAX, "%s", backup ? backup : "");
}

/* Marks the names in a synced directory as durable. */
static void mark_names_durable(const char *path) {
    size_t kept = 0, length = strlen(path);
    for (size_t i = 0; i < name_change_count; i++) {
        struct name_change *name_change = &name_changes[i];
        int inside = !strncmp(name_change->path, path, length) && strrchr(name_change->path, '/') == name_change->path + length;
        if (!inside) name_changes[kept++] = *name_change;
        else if (*name_change->backup) syscall(SYS_unlinkat, AT_FDCWD, name_change->backup, 0);
    }
    name_change_count = kept;
}

static void new_backup_path(char *backup) {
    snprintf(backup, PATH_MAX, "%.*s/%d-%zu", PATH_MAX - 64, backup_dir, getpid(), backup_count++);
}

static int rename_file(const char *from, const char *to) {
    return syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0);
}

/* ---- Killing the process ---- */

static unsigned long random_below(unsigned long n) {
    plan.seed ^= plan.seed << 13, plan.seed ^= plan.seed >> 7, plan.seed ^= plan.seed << 17;
    return (plan.seed >> 11) % n;
}

static void undo_changes(const struct file *file) {
    for (size_t i = file->count; i--;) {
        const struct change *change = &file->changes[i];
        if (syscall(SYS_ftruncate, file->fd, change->old_size)) abort();
        syscall(SYS_pwrite64, file->fd, change->old, change->old_length, change->at);
    }
}

static void redo(const struct file *file, const struct change *change) {
    /* One third of the writes is kept, one third is lost, and one third is kept in some sectors. */
    unsigned long outcome = change->state == DURABLE ? 0 : change->state == LOST || !plan.seed ? 1 : random_below(3);
    if (outcome == 1) return;
    if (!change->bytes) {
        syscall(SYS_ftruncate, file->fd, change->new_size);
        return;
    }
    for (size_t done = 0; done < change->length;) {
        size_t piece = SECTOR - (change->at + done) % SECTOR;
        if (piece > change->length - done) piece = change->length - done;
        if (outcome == 0 || random_below(2))
            syscall(SYS_pwrite64, file->fd, change->bytes + done, piece, change->at + done);
        done += piece;
    }
}

static void lose_power(void) {
    for (size_t i = 0; i < file_count; i++) {
        undo_changes(&files[i]);
        for (size_t k = 0; k < files[i].count; k++) redo(&files[i], &files[i].changes[k]);
    }
    size_t kept = plan.seed ? random_below(name_change_count + 1) : 0;
    while (name_change_count > kept) {
        struct name_change *name_change = &name_changes[--name_change_count];
        char backup[PATH_MAX];
        new_backup_path(backup);
        if (name_change->kind == CREATE) rename_file(name_change->path, backup);
        if (name_change->kind == RENAME) rename_file(name_change->path, name_change->from);
        if (*name_change->backup) rename_file(name_change->backup, name_change->path);
    }
}

static void kill_process(void) {
    kill(getpid(), SIGKILL);
    for (;;) pause();
}

/* ---- Steps ---- */

static void load_plan(void) {
    struct stat stat;
    if (lstat(plan_path, &stat)) {
        memset(&plan, 0, sizeof plan);
        return;
    }
    if (stat.st_ino == plan.stat.st_ino && !memcmp(&stat.st_mtim, &plan.stat.st_mtim, sizeof stat.st_mtim)) return;
    memset(&plan, 0, sizeof plan);
    char line[128] = "";
    int fd = syscall(SYS_openat, AT_FDCWD, plan_path, O_RDONLY | O_CLOEXEC, 0);
    if (fd < 0 || read(fd, line, sizeof line - 1) < 0) abort();
    syscall(SYS_close, fd);
    if (sscanf(line, "%ld %15s %ld %15s %lu", &plan.at, plan.fault, &plan.count, plan.kinds, &plan.seed) != 5) abort();
    plan.stat = stat;
}

/* Returns when the plan has changed. Releases the mutex while waiting. */
static void hang(void) {
    for (int waited = 0; waited < MAX_HANG_MS && !strcmp(plan.fault, "HANG"); waited += POLL_INTERVAL_MS) {
        pthread_mutex_unlock(&mutex);
        usleep(POLL_INTERVAL_MS * 1000);
        pthread_mutex_lock(&mutex);
        load_plan();
    }
}

/* Called before every change of a file, with the mutex held. */
static enum verdict step(enum kind kind, const char *path, long long length) {
    dprintf(log_fd, "%ld %s %lld %s\n", ++steps, names[kind], length, path);
    load_plan();
    if (next_is_full) {
        next_is_full = 0;
        errno = ENOSPC;
        return FAIL;
    }
    if (!plan.at || !strchr(plan.kinds, letters[kind])) return GO;
    plan.seen++;
    if (plan.seen < plan.at || plan.seen >= plan.at + plan.count) return GO;
    dprintf(log_fd, "%s\n", plan.fault);
    if (!strcmp(plan.fault, "HANG")) return hang(), GO;
    int writes = (kind == WRITE || kind == GROW) && length > 1;
    if (!strcmp(plan.fault, "SHORT") && writes) return next_is_full = 1, HALF;
    if (!strcmp(plan.fault, "TORN") && writes) return HALF_THEN_KILL;
    if (!strcmp(plan.fault, "POWER")) lose_power();
    if (!strcmp(plan.fault, "POWER") || !strcmp(plan.fault, "EXIT") || !strcmp(plan.fault, "TORN")) kill_process();
    errno = !strcmp(plan.fault, "EIO") ? EIO : !strcmp(plan.fault, "EDQUOT") ? EDQUOT : ENOSPC;
    return FAIL;
}

/* ---- Intercepted calls ---- */

static ssize_t do_write(int fd, const void *bytes, size_t length, off_t at, int moves) {
    return moves ? syscall(SYS_write, fd, bytes, length) : syscall(SYS_pwrite64, fd, bytes, length, at);
}

/* A write at an offset, or at the position of the descriptor (`moves`). */
static ssize_t intercept_write(int fd, const void *bytes, size_t length, off_t at, int moves) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return do_write(fd, bytes, length, at, moves);
    pthread_mutex_lock(&mutex);
    if (moves) at = fcntl(fd, F_GETFL) & O_APPEND ? size_of(fd) : lseek(fd, 0, SEEK_CUR);
    enum verdict verdict = step(at + (off_t)length > size_of(fd) ? GROW : WRITE, path, length);
    ssize_t result = -1;
    if (verdict != FAIL) {
        if (verdict != GO) length /= 2;
        record_change(fd, bytes, length, at);
        result = do_write(fd, bytes, length, at, moves);
        if (verdict == HALF_THEN_KILL) kill_process();
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

/* Joins a vectored write into one buffer. */
static ssize_t intercept_writev(int fd, const struct iovec *parts, int count, off_t at, int moves) {
    char path[PATH_MAX];
    if (!path_of(fd, path))
        return moves ? syscall(SYS_writev, fd, parts, count) : syscall(SYS_pwritev, fd, parts, count, at, 0);
    size_t length = 0;
    for (int i = 0; i < count; i++) length += parts[i].iov_len;
    char *bytes = copy_of(NULL, length), *end = bytes;
    for (int i = 0; i < count; i++) end = mempcpy(end, parts[i].iov_base, parts[i].iov_len);
    ssize_t result = intercept_write(fd, bytes, length, at, moves);
    free(bytes);
    return result;
}

ssize_t write(int fd, const void *bytes, size_t length) { return intercept_write(fd, bytes, length, 0, 1); }
ssize_t pwrite(int fd, const void *bytes, size_t length, off_t at) { return intercept_write(fd, bytes, length, at, 0); }
ssize_t pwrite64(int fd, const void *bytes, size_t length, off_t at) { return intercept_write(fd, bytes, length, at, 0); }
ssize_t writev(int fd, const struct iovec *parts, int count) { return intercept_writev(fd, parts, count, 0, 1); }
ssize_t pwritev(int fd, const struct iovec *parts, int count, off_t at) { return intercept_writev(fd, parts, count, at, 0); }
ssize_t pwritev64(int fd, const struct iovec *parts, int count, off_t at) { return intercept_writev(fd, parts, count, at, 0); }

static int sync_one(int fd) {
    char path[PATH_MAX];
    struct stat stat;
    if (!path_of(fd, path) || fstat(fd, &stat)) return syscall(SYS_fsync, fd);
    int is_file = S_ISREG(stat.st_mode);
    pthread_mutex_lock(&mutex);
    enum verdict verdict = step(SYNC, path, 0);
    if (is_file) begin_sync(file_of(fd), verdict == FAIL);
    pthread_mutex_unlock(&mutex);
    if (verdict == FAIL) return -1;
    /* The real disk needs no sync, but other threads continue while a sync is in progress. */
    usleep(300);
    pthread_mutex_lock(&mutex);
    if (is_file) finish_sync(file_of(fd));
    else mark_names_durable(path);
    pthread_mutex_unlock(&mutex);
    return 0;
}

int fsync(int fd) { return sync_one(fd); }
int fdatasync(int fd) { return sync_one(fd); }

int ftruncate(int fd, off_t size) {
    char path[PATH_MAX];
    if (!path_of(fd, path)) return syscall(SYS_ftruncate, fd, size);
    pthread_mutex_lock(&mutex);
    int result = -1;
    if (step(size > size_of(fd) ? GROW : TRUNCATE, path, size) == GO) {
        record_change(fd, NULL, 0, size);
        result = syscall(SYS_ftruncate, fd, size);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

int ftruncate64(int fd, off_t size) { return ftruncate(fd, size); }

static int open_at(int at, const char *name, int flags, mode_t mode) {
    char path[PATH_MAX];
    if (!(flags & (O_CREAT | O_TRUNC)) || !path_at(at, name, path)) return syscall(SYS_openat, at, name, flags, mode);
    pthread_mutex_lock(&mutex);
    int is_new = access(path, F_OK) != 0;
    int fd = -1;
    if (!is_new || !(flags & O_CREAT) || step(CREATE, path, 0) == GO) {
        fd = syscall(SYS_openat, at, name, flags & ~O_TRUNC, mode);
        if (fd >= 0 && is_new) record_name_change(CREATE, path, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
    if (fd < 0 || is_new || !(flags & O_TRUNC) || !ftruncate(fd, 0)) return fd;
    int error = errno;
    syscall(SYS_close, fd);
    errno = error;
    return -1;
}

/* The mode argument exists only if the call can create a file. */
#define MODE_OF(flags, mode) \
    mode_t mode = 0; \
    if (flags & O_CREAT) { va_list rest; va_start(rest, flags); mode = va_arg(rest, mode_t); va_end(rest); }

int open(const char *name, int flags, ...) { MODE_OF(flags, mode) return open_at(AT_FDCWD, name, flags, mode); }
int open64(const char *name, int flags, ...) { MODE_OF(flags, mode) return open_at(AT_FDCWD, name, flags, mode); }
int openat(int at, const char *name, int flags, ...) { MODE_OF(flags, mode) return open_at(at, name, flags, mode); }
int openat64(int at, const char *name, int flags, ...) { MODE_OF(flags, mode) return open_at(at, name, flags, mode); }
int creat(const char *name, mode_t mode) { return open_at(AT_FDCWD, name, O_CREAT | O_WRONLY | O_TRUNC, mode); }

int mkdir(const char *name, mode_t mode) {
    char path[PATH_MAX];
    if (!path_at(AT_FDCWD, name, path)) return syscall(SYS_mkdirat, AT_FDCWD, name, mode);
    pthread_mutex_lock(&mutex);
    int result = -1;
    int is_new = access(path, F_OK) != 0;
    if (!is_new || step(CREATE, path, 0) == GO) {
        result = syscall(SYS_mkdirat, AT_FDCWD, path, mode);
        if (!result) record_name_change(CREATE, path, NULL, NULL);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

int unlinkat(int at, const char *name, int flags) {
    char path[PATH_MAX], backup[PATH_MAX];
    if (!path_at(at, name, path) || flags & AT_REMOVEDIR) return syscall(SYS_unlinkat, at, name, flags);
    pthread_mutex_lock(&mutex);
    int result = -1;
    if (access(path, F_OK)) {
        errno = ENOENT;
    } else if (step(UNLINK, path, 0) == GO) {
        new_backup_path(backup);
        result = rename_file(path, backup);
        if (!result) record_name_change(UNLINK, path, NULL, backup);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}

int unlink(const char *name) { return unlinkat(AT_FDCWD, name, 0); }

int rename(const char *from, const char *to) {
    char path[PATH_MAX], backup[PATH_MAX] = "";
    if (!path_at(AT_FDCWD, to, path)) return rename_file(from, to);
    pthread_mutex_lock(&mutex);
    int result = -1;
    if (step(RENAME, path, 0) == GO) {
        if (!access(path, F_OK)) new_backup_path(backup), rename_file(path, backup);
        result = rename_file(from, to);
        if (!result) record_name_change(RENAME, path, from, backup);
        else if (*backup) rename_file(backup, path);
    }
    pthread_mutex_unlock(&mutex);
    return result;
}
