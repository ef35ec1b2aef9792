"""Ray's direct transport: an actor opens the memory of another one."""

import os
import signal
import struct
import zlib

import numpy as np
import pytest
import ray
import zeusm
import zeusm_ray

MIB = 1 << 20
# Ray looks for a transport where a method names it.
zeusm_ray.register()


pytestmark = pytest.mark.usefixtures("ray_cluster")


@ray.remote(num_cpus=0)
class Owner:
    """Has arrays."""

    @ray.method(tensor_transport="ZEUSM")
    def make(self, shape, usm_type):
        self.array = zeusm.asarray(np.arange(np.prod(shape)).reshape(shape), usm_type=usm_type)
        return self.array

    @ray.method(tensor_transport="ZEUSM")
    def several(self):
        array = zeusm.asarray(np.arange(20.0).reshape(4, 5), usm_type="device")
        return {
            "columns": array[:, ::2],
            "rows": [array.T, array[1:2]],
            "none": array[:0],
            "number": 3,
        }

    @ray.method(tensor_transport="ZEUSM")
    def computed(self):
        import dpnp

        result = dpnp.ones(1 << 20)
        for _ in range(20):
            result += 1
        return zeusm.from_dlpack(result)

    def seem_elsewhere(self):
        """From now on, handles name another machine in their bytes 16 to 31, with a valid checksum."""
        transport = zeusm_ray._Transport
        extract = transport.extract_tensor_transport_metadata

        def elsewhere(*arguments):
            found = extract(*arguments)
            for number, (data, *state) in enumerate(found.exports):
                content = data[:16] + b"\1" * 16 + data[32:-4]
                found.exports[number] = content + struct.pack("<I", zlib.crc32(content)), *state
            return found

        transport.extract_tensor_transport_metadata = elsewhere

    def first(self):
        return int(self.array.reshape(-1)[0])

    def process(self):
        return os.getpid()


@ray.remote(num_cpus=0, enable_tensor_transport=True)
class Reader:
    """Gets arrays of others."""

    def read(self, array):
        return array.usm_type, array.copy_to_host()

    def read_several(self, value):
        rows = [row.copy_to_host() for row in value["rows"]]
        return value["columns"].copy_to_host(), rows, value["none"].shape, value["number"]

    def write(self, array, number):
        array.copy_from_host(np.full(array.shape, number))

    def sum_by_dpnp(self, array):
        import dpnp

        return float(dpnp.from_dlpack(array).sum())

    def nothing(self, array):
        return array.nbytes


@pytest.fixture(scope="module")
def actors():
    return Owner.remote(), Reader.remote()


@pytest.mark.parametrize("usm_type", ["device", "shared", "host"])
def test_an_actor_reads_the_memory_of_another(actors, usm_type):
    owner, reader = actors
    kind, content = ray.get(reader.read.remote(owner.make.remote((30, 40), usm_type)))
    assert kind == usm_type
    np.testing.assert_array_equal(content, np.arange(1200).reshape(30, 40))


def test_arrays_in_collections_with_any_layout(actors):
    owner, reader = actors
    columns, rows, none, number = ray.get(reader.read_several.remote(owner.several.remote()))
    expected = np.arange(20.0).reshape(4, 5)
    np.testing.assert_array_equal(columns, expected[:, ::2])
    np.testing.assert_array_equal(rows[0], expected.T)
    np.testing.assert_array_equal(rows[1], expected[1:2])
    assert (none, number) == ((0, 5), 3)


@pytest.mark.parametrize("size", [300, 8 * MIB])
def test_what_the_reader_writes_the_owner_sees(actors, size):
    """Large arrays are not copied either."""
    owner, reader = actors
    reference = owner.make.remote((size,), "device")
    ray.get(reader.write.remote(reference, 77))
    assert ray.get(owner.first.remote()) == 77


def test_kernels_of_both_actors(actors):
    owner, reader = actors
    assert ray.get(reader.sum_by_dpnp.remote(owner.computed.remote())) == 21 << 20


def test_an_owner_that_was_killed_is_an_error():
    owner, reader = Owner.remote(), Reader.remote()
    reference = owner.make.remote((300,), "device")
    ray.get(reader.nothing.remote(reference))
    os.kill(ray.get(owner.process.remote()), signal.SIGKILL)
    with pytest.raises(ray.exceptions.RayError):
        ray.get(Reader.remote().nothing.remote(reference), timeout=120)


def test_the_memory_of_another_machine_is_an_error_and_nothing_is_lost():
    owner, reader = Owner.remote(), Reader.remote()
    ray.get(owner.seem_elsewhere.remote())
    reference = owner.make.remote((300,), "device")
    with pytest.raises(ray.exceptions.RayError, match="another machine"):
        ray.get(reader.nothing.remote(reference), timeout=120)
    assert ray.get(owner.first.remote()) == 0
    assert ray.get(reader.nothing.remote(Owner.remote().make.remote((300,), "device"))) == 2400
