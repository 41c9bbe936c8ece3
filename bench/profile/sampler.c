/* Samples where a process is, by its own CPU time: preloaded, it makes a file of samples and one of maps.
 *
 * The timer counts user and kernel time, so what a page fault or a system call costs is found where it was caused. The
 * handler only copies registers and the top of the stack. What they mean is found out afterwards.
 *
 * Variables: SAMPLES is the folder of both, SAMPLE_MICROS the CPU time between two samples. Programs that the process
 * starts are not sampled. It must not become another program by exec: the timer would end that one.
 * A sample has SAMPLE_WORDS words: the program counter, and the top of the stack, with zeros where the stack ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#define SAMPLE_WORDS 192
#define MOST_SAMPLES 65536

static uint64_t (*samples)[SAMPLE_WORDS];
static uint64_t taken;

static void sample(int signal_number, siginfo_t *info, void *context) {
    (void)signal_number, (void)info;
    const int error_before = errno;
    const uint64_t at = __atomic_fetch_add(&taken, 1, __ATOMIC_RELAXED);
    if (at < MOST_SAMPLES) {
        const mcontext_t *machine = &((ucontext_t *)context)->uc_mcontext;
        uint64_t *words = samples[at];
        size_t known = 1;
#if defined(__x86_64__)
        words[0] = (uint64_t)machine->gregs[REG_RIP];
        const uint64_t stack = (uint64_t)machine->gregs[REG_RSP];
#elif defined(__aarch64__)
        words[0] = machine->pc;
        words[known++] = machine->regs[30];
        const uint64_t stack = machine->sp;
#else
#error "expected x86_64 or aarch64"
#endif
        /* The kernel copies as much as there is; reading beyond the end of the stack would end the process. */
        struct iovec to = {words + known, (SAMPLE_WORDS - known) * sizeof *words};
        struct iovec from = {(void *)stack, to.iov_len};
        if (process_vm_readv(getpid(), &to, 1, &from, 1, 0) < 0) words[known] = *(uint64_t *)stack;
    }
    errno = error_before;
}

static int open_file(const char *kind) {
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", getenv("SAMPLES"), kind);
    return open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
}

static void set_timer(long micros) {
    const struct itimerval every = {{0, micros}, {0, micros}};
    setitimer(ITIMER_PROF, &every, NULL);
}

__attribute__((constructor)) static void begin(void) {
    const char *micros = getenv("SAMPLE_MICROS");
    if (!getenv("SAMPLES") || !micros) return;
    unsetenv("LD_PRELOAD");
    const int file = open_file("samples");
    const size_t length = MOST_SAMPLES * sizeof *samples;
    if (file < 0 || ftruncate(file, (off_t)length)) return;
    samples = mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    if (samples == MAP_FAILED) { samples = NULL; return; }
    struct sigaction action = {.sa_sigaction = sample, .sa_flags = SA_SIGINFO | SA_RESTART};
    sigaction(SIGPROF, &action, NULL);
    set_timer(atol(micros));
}

/* The maps come last: they have all that was loaded. */
__attribute__((destructor)) static void end(void) {
    if (!samples) return;
    set_timer(0);
    char part[65536];
    const int to = open_file("maps");
    const int from = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
    ssize_t length;
    while (to >= 0 && from >= 0 && (length = read(from, part, sizeof part)) > 0) {
        if (write(to, part, (size_t)length) != length) break;
    }
}
