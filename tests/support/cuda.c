/* A stand-in for libcuda: device memory is memory of the host. Copies of a stream are executed when it is synchronised, and
 * all arguments are checked. A violated rule ends the process. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t pointer;
typedef int result;
enum { SUCCESS = 0, INVALID_VALUE = 1, OUT_OF_MEMORY = 2, NOT_INITIALIZED = 3, INVALID_CONTEXT = 201 };

#define CHECK(rule) \
    do { \
        if (!(rule)) { \
            fprintf(stderr, "libcuda stand-in: %s: %s\n", __func__, #rule); \
            abort(); \
        } \
    } while (0)

/* --- the record of calls, and the failure to inject --- */

static char record[1 << 20];
static char failing[64];
static result failure;
static int skipped;

static result called(const char *name) {
    size_t used = strlen(record);
    snprintf(record + used, sizeof record - used, "%s ", name);
    if (strcmp(name, failing) == 0 && skipped-- == 0) {
        failing[0] = 0;
        return failure;
    }
    return SUCCESS;
}
#define CALLED() \
    do { \
        result answer = called(__func__); \
        if (answer != SUCCESS) \
            return answer; \
    } while (0)

const char *stand_in_calls(void) { return record; }
void stand_in_forget(void) { record[0] = 0; }
void stand_in_fail(const char *name, result answer, int after) {
    snprintf(failing, sizeof failing, "%s", name);
    failure = answer;
    skipped = after;
}

/* --- contexts: the device's primary one, which owns no pool memory, and one of the program's own --- */

static int initialised, primary_users;
static char contexts[2];
#define PRIMARY ((void *)&contexts[0])
#define OWN ((void *)&contexts[1])
static _Thread_local void *stack[8];
static _Thread_local int depth;

result cuInit(unsigned flags) {
    CALLED();
    CHECK(flags == 0);
    initialised = 1;
    return SUCCESS;
}
result cuGetErrorName(result code, const char **name) {
    switch (code) {
    case INVALID_VALUE: *name = "CUDA_ERROR_INVALID_VALUE"; return SUCCESS;
    case OUT_OF_MEMORY: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return SUCCESS;
    case 700: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return SUCCESS;
    default: *name = NULL; return INVALID_VALUE;
    }
}
result cuDevicePrimaryCtxRetain(void **context, int device) {
    CALLED();
    CHECK(device == 0);
    primary_users++;
    *context = PRIMARY;
    return SUCCESS;
}
result cuDevicePrimaryCtxRelease_v2(int device) {
    called(__func__);
    CHECK(device == 0 && primary_users > 0);
    primary_users--;
    return SUCCESS;
}
result cuCtxPushCurrent_v2(void *context) {
    CALLED();
    CHECK(context == OWN || (context == PRIMARY && primary_users > 0));
    CHECK(depth < 8);
    stack[depth++] = context;
    return SUCCESS;
}
result cuCtxPopCurrent_v2(void **context) {
    called(__func__);
    CHECK(depth > 0);
    *context = stack[--depth];
    return SUCCESS;
}
int stand_in_depth(void) { return depth; }
int stand_in_primary_users(void) { return primary_users; }

/* --- memory --- */

enum { ROOM = 4096 };
static struct block {
    char *base;
    size_t size;
    int pooled;
} blocks[ROOM];

static struct block *block_of(uintptr_t address, size_t size) {
    for (int i = 0; i < ROOM; i++) {
        uintptr_t base = (uintptr_t)blocks[i].base;
        if (base && base <= address && address + size <= base + blocks[i].size)
            return &blocks[i];
    }
    return NULL;
}
static result allocate(void **base, size_t size, int pooled) {
    for (int i = 0; i < ROOM; i++) {
        if (!blocks[i].base) {
            blocks[i] = (struct block){malloc(size), size, pooled};
            memset(blocks[i].base, 0xee, size);
            *base = blocks[i].base;
            return SUCCESS;
        }
    }
    return OUT_OF_MEMORY;
}
static void release(uintptr_t address) {
    struct block *found = block_of(address, 1);
    CHECK(found && (uintptr_t)found->base == address);
    free(found->base);
    *found = (struct block){0};
}
result cuMemAlloc_v2(pointer *base, size_t size) { return allocate((void **)base, size, 0); }
result stand_in_alloc_pooled(pointer *base, size_t size) { return allocate((void **)base, size, 1); }
result cuMemFree_v2(pointer base) {
    release(base);
    return SUCCESS;
}
result cuMemcpyHtoD_v2(pointer to, const void *from, size_t size) {
    memcpy((void *)to, from, size);
    return SUCCESS;
}
result cuMemcpyDtoH_v2(void *to, pointer from, size_t size) {
    memcpy(to, (void *)from, size);
    return SUCCESS;
}
result cuPointerGetAttribute(void *answer, int which, pointer address) {
    CALLED();
    CHECK(initialised);
    struct block *found = block_of(address, 1);
    if (!found)
        return INVALID_VALUE;
    switch (which) {
    case 1: *(void **)answer = found->pooled ? NULL : OWN; return SUCCESS;
    case 3: *(pointer *)answer = address; return SUCCESS;
    case 9: *(int *)answer = 0; return SUCCESS;
    case 11: *(pointer *)answer = (pointer)found->base; return SUCCESS;
    case 12: *(size_t *)answer = found->size; return SUCCESS;
    }
    CHECK(!"an attribute that copies need");
    return INVALID_VALUE;
}

/* Whether the bytes are in memory that is no block's. */
static int is_host(uintptr_t address, size_t size) {
    return !block_of(address, 1) && !block_of(address + size - 1, 1);
}

/* --- streams, whose copies are deferred --- */

struct rows {
    size_t from_x, from_y;
    unsigned from_type;
    const void *from_host;
    pointer from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    unsigned to_type;
    void *to_host;
    pointer to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height;
};
struct stream {
    struct task {
        char *to;
        const char *from;
        size_t to_pitch, from_pitch, width, height;
    } *tasks;
    size_t count;
};
/* The streams, by handle: the default ones and one more. A stream may have copies of the producer, too. */
static struct stream streams[4];

static void add(struct stream *stream, struct task task) {
    stream->tasks = realloc(stream->tasks, (stream->count + 1) * sizeof task);
    stream->tasks[stream->count++] = task;
}
static struct stream *stream_of(void *handle) {
    CHECK(handle != NULL && (uintptr_t)handle < 4);
    return &streams[(uintptr_t)handle];
}
static void run(struct stream *stream) {
    for (size_t i = 0; i < stream->count; i++)
        for (size_t row = 0; row < stream->tasks[i].height; row++)
            memcpy(stream->tasks[i].to + row * stream->tasks[i].to_pitch,
                   stream->tasks[i].from + row * stream->tasks[i].from_pitch, stream->tasks[i].width);
    stream->count = 0;
}
void stand_in_produce(uintptr_t stream, pointer to, const void *from, size_t size) {
    void *kept = malloc(size);
    memcpy(kept, from, size);
    add(stream_of((void *)stream), (struct task){(char *)to, kept, 0, 0, size, 1});
}
result cuStreamSynchronize(void *stream) {
    char name[64];
    snprintf(name, sizeof name, "%s(%d)", __func__, (int)(uintptr_t)stream);
    result answer = called(name);
    run(stream_of(stream)); /* A failed wait is for complete copies, too. */
    return answer;
}
int stand_in_in_flight(void) {
    int count = 0;
    for (int i = 0; i < 4; i++)
        count += streams[i].count > 0;
    return count;
}
result cuCtxSynchronize(void) {
    CALLED();
    CHECK(depth > 0);
    for (int i = 0; i < 4; i++)
        run(&streams[i]);
    return SUCCESS;
}
result cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t size, void *stream) {
    CALLED();
    CHECK(depth > 0 && block_of(from, size) && is_host((uintptr_t)to, size));
    add(stream_of(stream), (struct task){to, (char *)from, 0, 0, size, 1});
    return SUCCESS;
}
result cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t size, void *stream) {
    CALLED();
    CHECK(depth > 0 && block_of(to, size) && is_host((uintptr_t)from, size));
    add(stream_of(stream), (struct task){(char *)to, from, 0, 0, size, 1});
    return SUCCESS;
}
result cuMemcpy2DAsync_v2(const struct rows *rows, void *stream) {
    CALLED();
    CHECK(depth > 0 && rows->height > 0 && rows->from_pitch >= rows->width && rows->to_pitch >= rows->width);
    CHECK(rows->from_x == 0 && rows->from_y == 0 && rows->to_x == 0 && rows->to_y == 0);
    CHECK(rows->from_type + rows->to_type == 3);
    int down = rows->from_type == 2;
    uintptr_t from = down ? rows->from_device : (uintptr_t)rows->from_host;
    uintptr_t to = down ? (uintptr_t)rows->to_host : rows->to_device;
    size_t from_size = (rows->height - 1) * rows->from_pitch + rows->width;
    size_t to_size = (rows->height - 1) * rows->to_pitch + rows->width;
    CHECK(down ? block_of(from, from_size) && is_host(to, to_size) : block_of(to, to_size) && is_host(from, from_size));
    add(stream_of(stream), (struct task){(char *)to, (char *)from, rows->to_pitch, rows->from_pitch, rows->width, rows->height});
    return SUCCESS;
}
/* For the tests on a real device, which make a context of their own. */
result cuDeviceGetCount(int *count) {
    *count = 1;
    return SUCCESS;
}
