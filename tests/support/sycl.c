// dpctl's library over a SYCL runtime, as far as zeusm uses them. There is one object of each class. With METHODS it has the
// functions of libsycl instead, which dpctl's library links. The variables are the test's.

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct simulated {
    // The function that returns nothing or, if exceptions are possible, throws one; and how often the queue was waited for.
    const char *failing;
    unsigned waits;
    // The numbers of dpctl: a backend, and the status of an event.
    unsigned backend, status;
    bool is_in_order, is_empty;
    // Level Zero's device behind the device; all other handles are 1.
    uintptr_t device;
};

#ifdef METHODS

struct simulated simulated;

_Noreturn void throw_error(const char *text) __asm__("_ZSt21__throw_runtime_errorPKc");

static bool fails(const char *function) { return simulated.failing && strcmp(simulated.failing, function) == 0; }

static void may_throw(const char *function)
{
    if (fails(function))
        throw_error(function);
}

uintptr_t context_native(void *object) __asm__("_ZNK4sycl3_V17context9getNativeEv");
uintptr_t context_native(void *object) { return 1; }

uintptr_t device_native(void *object) __asm__("_ZNK4sycl3_V16device9getNativeEv");
uintptr_t device_native(void *object)
{
    may_throw("device_native");
    return simulated.device;
}

uintptr_t event_native(void *object) __asm__("_ZNK4sycl3_V15event9getNativeEv");
uintptr_t event_native(void *object) { return fails("event_native") ? 0 : 1; }

bool queue_is_empty(void *object) __asm__("_ZNK4sycl3_V15queue16ext_oneapi_emptyEv");
bool queue_is_empty(void *object)
{
    may_throw("queue_is_empty");
    return simulated.is_empty;
}

void *event_make(void *, uintptr_t, void *, bool, char) __asm__("_ZN4sycl3_V16detail10make_eventEmRKNS0_7contextEbNS0_7backendE");
void *event_make(void *place, uintptr_t native, void *context, bool keep, char backend)
{
    may_throw("event_make");
    return place;
}

void queue_wait(void)
{
    simulated.waits++;
    may_throw("DPCTLQueue_Wait");
}

#else

extern struct simulated simulated;
void queue_wait(void);

static void *unless_failing(void *object, const char *function)
{
    return simulated.failing && strcmp(simulated.failing, function) == 0 ? NULL : object;
}

#define OBJECT(class)                                                                   \
    char class##_object;                                                                \
    void *DPCTL##class##_Copy(void *object) { return unless_failing(object, __func__); } \
    void DPCTL##class##_Delete(void *object) {}                                         \
    unsigned DPCTL##class##_GetBackend(void *object) { return simulated.backend << 16; } \
    bool DPCTL##class##_AreEq(void *one, void *other) { return one == other; }

OBJECT(Context)
OBJECT(Device)
OBJECT(Queue)
OBJECT(Event)

void *DPCTLContext_GetDevices(void *context) { return unless_failing(context, __func__); }
size_t DPCTLDeviceVector_Size(void *vector) { return 1; }
void *DPCTLDeviceVector_GetAt(void *vector, size_t index) { return unless_failing(&Device_object, __func__); }
void DPCTLDeviceVector_Delete(void *vector) {}

void *DPCTLQueue_GetContext(void *queue) { return unless_failing(&Context_object, __func__); }
void *DPCTLQueue_GetDevice(void *queue) { return unless_failing(&Device_object, __func__); }
bool DPCTLQueue_IsInOrder(void *queue) { return simulated.is_in_order; }
void *DPCTLQueue_SubmitBarrier(void *queue) { return unless_failing(&Event_object, __func__); }
void *DPCTLQueue_SubmitBarrierForEvents(void *queue, void **events, size_t count) { return unless_failing(&Event_object, __func__); }
void DPCTLQueue_Wait(void *queue) { queue_wait(); }

unsigned DPCTLEvent_GetCommandExecutionStatus(void *event) { return simulated.status; }
void DPCTLEvent_Wait(void *event) { simulated.waits++; }

#endif
