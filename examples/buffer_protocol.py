"""What a consumer may rely on: handles, alignment, sync modes. docs/buffer-protocol.md shows these
functions beside their C++ form."""

import gc
import weakref

import hurray
import numpy as np


def read_handles() -> None:
    t = hurray.zeros([2, 3], dtype=hurray.float32)
    (h,) = t.buffer_handles
    print(h.byte_size, h.alignment, h.sync_mode, h.device.kind)  # 24 64 producer_synced cpu
    assert h.byte_size == 24 and h.alignment == 64  # own memory declares 64
    assert h.sync_mode == "producer_synced"  # what we made is complete
    assert h.device is t.device  # one fact, one object


def handles_pin_nothing() -> None:
    t = hurray.empty([4096], dtype=hurray.uint8)
    seen = list(t.buffer_handles)
    tensor = weakref.ref(t)
    del t
    gc.collect()
    assert tensor() is None and seen[0].byte_size == 4096


def alignment_is_measured() -> None:
    page = hurray.empty([8192], dtype=hurray.uint8, alignment=4096).to_numpy()
    for offset in (0, 64, 192, 256, 16):
        part = page[offset : offset + 64]
        try:
            t = hurray.from_numpy(part, copy=False)
            print(f"at {offset}: {t.buffer_handles[0].alignment}")
            assert offset % t.buffer_handles[0].alignment == 0 and np.shares_memory(t, part)
        except hurray.CopyRequiredError as error:
            print(f"at {offset}: {error}")
            assert offset == 16  # below 64 there is no handle


def ask_for_more() -> None:
    t = hurray.empty([1 << 20], dtype=hurray.uint8, alignment=hurray.PAGE_ALIGNMENT)
    address = t.__array_interface__["data"][0]
    assert t.buffer_handles[0].alignment == 4096 and address % 4096 == 0


def from_a_gpu(sync_mode: int) -> hurray.Tensor:
    """What a stream's reader gives for a tensor that somebody sent from CUDA memory."""
    unified = hurray.Device("cuda", 0, "unified")
    descriptor = hurray.empty([4], dtype=hurray.float32, device=unified).descriptor
    frame = bytearray(descriptor.encode())
    frame[-3] = sync_mode  # a handle ends with device, sync mode, memory class, 0
    item = next(hurray.StreamReader(bytes(frame) + bytes(16)))
    assert isinstance(item, hurray.Tensor)
    return item


def sync_modes_are_honoured() -> None:
    t = from_a_gpu(sync_mode=1)
    assert t.buffer_handles[0].sync_mode == "event"
    try:
        np.asarray(t)
        raise AssertionError("nobody waited for the event")
    except hurray.UnsupportedError as error:
        print(error)
    relay = hurray.StreamWriter()
    relay.write(t)  # passing it on is not reading a byte
    sent = hurray.Descriptor.decode(relay.getvalue())
    assert sent.buffer_handles[0].sync_mode == "event"


def placement_is_declared() -> None:
    t = from_a_gpu(sync_mode=0)
    try:
        np.asarray(t)
        raise AssertionError("declared on the GPU, held by the host")
    except hurray.UnsupportedError as error:
        print(error)
    host = t.to_cpu()  # the same memory under its true label
    assert host.device is hurray.device.cpu and host.to_numpy().shape == (4,)


if __name__ == "__main__":
    read_handles()
    handles_pin_nothing()
    alignment_is_measured()
    ask_for_more()
    sync_modes_are_honoured()
    placement_is_declared()
