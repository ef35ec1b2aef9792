// oneCCL's C++ API with the functions of its C API, for Python: the communicator and the stream are those of `cppCommInitRank`.
//
// Compiled by g++ with the headers of SYCL's runtime: it has no kernels. All operations are in the order of the queue, for which the
// caller waits.

#include <cstdio>
#include <cstring>
#include <exception>
#include <memory>
#include <optional>

#include <sycl/sycl.hpp>

#include <oneapi/ccl.hpp>

namespace {

std::shared_ptr<ccl::kvs> store;
std::optional<ccl::communicator> ranks;
std::optional<ccl::stream> stream;

/// The result 0, or 1 after saying what was thrown.
template <class Call>
int guarded(Call call) {
    try {
        call();
        return 0;
    } catch (const std::exception &error) {
        std::fprintf(stderr, "%s\n", error.what());
        return 1;
    }
}

} // namespace

extern "C" {

int cppGetUniqueId(char *address) {
    return guarded([=] {
        ccl::init();
        store = ccl::create_main_kvs();
        const auto made = store->get_address();
        std::memcpy(address, made.data(), made.size());
    });
}

int cppCommInitRank(const char *address, int count, int rank, sycl::queue *queue) {
    return guarded([=] {
        ccl::init();
        if (!store) {
            ccl::kvs::address_type known;
            std::memcpy(known.data(), address, known.size());
            store = ccl::create_kvs(known);
        }
        const auto device = ccl::create_device(queue->get_device());
        const auto context = ccl::create_context(queue->get_context());
        ranks = ccl::create_communicator(count, rank, device, context, store);
        stream = ccl::create_stream(*queue);
    });
}

/// Before SYCL's runtime ends, which destructors of static objects come after.
int cppCommDestroy(void *) {
    return guarded([] {
        stream.reset();
        ranks.reset();
        store.reset();
    });
}

int cppGroupStart() {
    return guarded([] { ccl::group_start(); });
}

int cppGroupEnd() {
    return guarded([] { ccl::group_end(); });
}

int cppAllReduce(void *from, void *to, size_t count, int type, int, void *, void *) {
    return guarded([=] {
        ccl::allreduce(from, to, count, ccl::datatype(type), ccl::reduction::sum, *ranks, *stream);
    });
}

int cppReduce(void *from, void *to, size_t count, int type, int, int root, void *, void *) {
    return guarded([=] {
        ccl::reduce(from, to, count, ccl::datatype(type), ccl::reduction::sum, root, *ranks, *stream);
    });
}

int cppBroadcast(void *from, void *to, size_t count, int type, int root, void *, void *) {
    return guarded([=] {
        ccl::broadcast(from, to, count, ccl::datatype(type), root, *ranks, *stream);
    });
}

int cppAllGather(void *from, void *to, size_t count, int type, void *, void *) {
    return guarded([=] {
        ccl::allgather(from, to, count, ccl::datatype(type), *ranks, *stream);
    });
}

int cppAllToAll(void *from, void *to, size_t count, int type, void *, void *) {
    return guarded([=] {
        ccl::alltoall(from, to, count, ccl::datatype(type), *ranks, *stream);
    });
}

int cppReduceScatter(void *from, void *to, size_t count, int type, int, void *, void *) {
    return guarded([=] {
        ccl::reduce_scatter(from, to, count, ccl::datatype(type), ccl::reduction::sum, *ranks, *stream);
    });
}

int cppSend(void *from, size_t count, int type, int to, void *, void *) {
    return guarded([=] {
        ccl::send(from, count, ccl::datatype(type), to, *ranks, *stream);
    });
}

int cppRecv(void *to, size_t count, int type, int from, void *, void *) {
    return guarded([=] {
        ccl::recv(to, count, ccl::datatype(type), from, *ranks, *stream);
    });
}

}
