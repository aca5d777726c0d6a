"""Composites: construction, equality, printing, values (08-python-api.md section 11), by file and stream."""

import gc
import struct
import threading
import weakref

import numpy as np
import pytest

import hurray
import wire
from hurray import (
    Composite,
    CompositeLayout,
    InvalidDescriptorError,
    Shard,
    StreamReader,
    StreamWriter,
    Tensor,
    UnsupportedError,
    float32,
    int8,
)


def piece(values, parent, offset, dtype=float32, **options):
    """A member of the view `parent` at `offset`."""
    values = np.asarray(values)
    return Tensor(
        values.tobytes(), dtype, values.shape, shard=Shard(parent, offset), **options
    )  # fmt: skip


def halves(shape=(8, 8)):
    rows = shape[0] // 2
    return [
        piece(np.full((rows, *shape[1:]), k, np.float32), shape, (k * rows, *[0] * (len(shape) - 1)))
        for k in range(2)
    ]


def partition(members=None, shape=(8, 8), dtype=float32):
    return Composite(
        "partition", shape=shape, dtype=dtype, members=halves(shape) if members is None else members
    )


def group(*members, shape=(), dtype=float32):
    return Composite("group", shape=shape, dtype=dtype, members=list(members))


def overlay(op, *members, shape, dtype=float32):
    return Composite("overlay", shape=shape, dtype=dtype, members=members, combine_op=op)


def nested(levels):
    composite = group()
    for _ in range(levels - 1):
        composite = group(composite)
    return composite


def stream(*items):
    with StreamWriter() as writer:
        for item in items:
            writer.write(item)
    return writer.getvalue()


def through_stream(item):
    (again,) = StreamReader(stream(item))
    return again


# ---- construction ---


def test_the_members_are_the_objects_that_were_passed():
    a, b = halves()
    inner = group(a)
    for members in ([a, b], (a, b), iter([a, b])):
        assert [m is n for m, n in zip(partition(members).members, (a, b), strict=True)] == [True] * 2
    composite = group(inner, a, inner)
    assert type(composite.members) is tuple and composite.member_count == 3
    assert composite.members[0] is inner and composite.members[2] is inner
    assert composite.members[0].members[0] is a


def test_what_a_head_says():
    composite = partition()
    assert composite.shape == (8, 8) and composite.ndim == 2
    assert composite.dtype is float32
    assert composite.layout == CompositeLayout("partition", 2)
    assert composite.layout is not composite.layout
    d = composite.descriptor
    assert (d.shape, d.layout, d.dtype) == ((8, 8), composite.layout, float32)
    assert (d.buffer_count, d.buffer_handles, d.device) == (0, (), None)
    assert hurray.Descriptor.decode(d.encode()) == d
    add = overlay("add", piece([1.0], (1,), (0,)), shape=(1,))
    assert add.layout == CompositeLayout("overlay", 1, "add")
    assert group().layout == CompositeLayout("group", 0) and group().members == ()


def test_roles_are_positional_and_no_attribute_of_a_tensor():
    base = piece(np.zeros(4, np.float32), (4,), (0,))
    fix = piece(np.ones(1, np.float32), (4,), (2,))
    composite = overlay("replace", base, fix, fix, shape=(4,))
    assert composite.member_roles == ("base", "correction", "correction")
    assert partition().member_roles == (None, None)
    assert group().member_roles == ()
    before = base.descriptor.encode()
    assert composite.members[0] is base and base.descriptor.encode() == before
    assert not hasattr(base, "role") and not hasattr(base, "member_role")
    # The same tensor can have another role elsewhere.
    assert overlay("replace", base, base, shape=(4,)).member_roles == ("base", "correction")


@pytest.mark.parametrize("wrong", [object(), None, "t", 3, np.zeros(2)])
def test_members_of_another_type(wrong):
    with pytest.raises(
        TypeError,
        match=r"members\[0\] must be a hurray.Tensor or a hurray.Composite, got " + type(wrong).__name__.replace("ndarray", "numpy.ndarray"),
    ):
        group(wrong)
    with pytest.raises(TypeError, match=r"members\[1\] must be"):
        group(halves()[0], wrong)


@pytest.mark.parametrize("wrong", [None, 3, "ab", b"ab", object()])
def test_members_that_are_no_sequence(wrong):
    with pytest.raises(TypeError, match="members must be a sequence"):
        Composite("group", shape=(), dtype=float32, members=wrong)
    with pytest.raises(TypeError, match="Tensor"):
        Composite("group", shape=(), dtype=float32, members=hurray.zeros((2,)))


def test_arguments():
    with pytest.raises(TypeError):
        Composite("group", (), float32, [])
    with pytest.raises(TypeError):
        Composite("group", shape=(), members=[])
    with pytest.raises(TypeError, match="dtype must be a hurray.Dtype, got str"):
        Composite("group", shape=(), dtype="float32", members=[])
    with pytest.raises(TypeError):
        Composite(1, shape=(), dtype=float32, members=[])
    with pytest.raises(TypeError, match="shape"):
        Composite("group", shape=3, dtype=float32, members=[])
    with pytest.raises(InvalidDescriptorError, match="non-negative"):
        Composite("group", shape=(-1,), dtype=float32, members=[])


@pytest.mark.parametrize("rule, op", [
    ("union", None), ("Partition", None), ("", None), ("overlay", None), ("overlay", "multiply"), ("overlay", "none"),
    ("partition", "add"), ("group", "replace"), ("group", "none"),
])  # fmt: skip
def test_rules_and_operations(rule, op):
    with pytest.raises(ValueError) as caught:
        Composite(rule, shape=(8, 8), dtype=float32, members=halves(), combine_op=op)
    assert type(caught.value) is ValueError
    assert "composition_rule" in str(caught.value) or "combine_op" in str(caught.value)


@pytest.mark.parametrize("rule", ["partition", "overlay", "group"])
@pytest.mark.parametrize("shape, at", [((None,), 0), ((8, None), 1)])
def test_the_shape_is_known(rule, shape, at):
    with pytest.raises(InvalidDescriptorError, match=rf"hurray\.Composite\(\).*index {at}"):
        Composite(
            rule, shape=shape, dtype=float32, members=[], combine_op="add" if rule == "overlay" else None
        )


# ---- the rules (the core's) ---


def test_coverage():
    a, b = halves()
    with pytest.raises(InvalidDescriptorError, match="cover"):
        partition([a])
    with pytest.raises(InvalidDescriptorError, match="cover"):
        partition([])
    with pytest.raises(InvalidDescriptorError, match="overlap"):
        partition([a, a])
    with pytest.raises(InvalidDescriptorError, match="overlap"):
        partition([a, b, piece(np.zeros((1, 1), np.float32), (8, 8), (3, 3))])
    assert partition([b, a]).member_count == 2
    assert partition([], shape=(0, 3)).members == ()


def test_members_of_views():
    a, b = halves()
    plain = Tensor(bytes(128), float32, (4, 8))
    with pytest.raises(InvalidDescriptorError, match="shard"):
        partition([a, plain])
    with pytest.raises(InvalidDescriptorError, match="parent_shape"):
        partition([a, piece(np.zeros((4, 8), np.float32), (9, 8), (4, 0))])
    with pytest.raises(InvalidDescriptorError, match="rank"):
        partition([a, piece(np.zeros(8, np.float32), (8,), (0,))])
    with pytest.raises(InvalidDescriptorError, match="float64"):
        partition([a, piece(np.zeros((4, 8)), (8, 8), (4, 0), hurray.float64)])
    with pytest.raises(InvalidDescriptorError, match="without elements"):
        partition([a, b, piece(np.zeros((0, 8), np.float32), (8, 8), (0, 0))])


def test_overlays():
    base = piece(np.zeros(4, np.float32), (4,), (0,))
    fix = piece(np.ones(2, np.float32), (4,), (1,))
    with pytest.raises(InvalidDescriptorError, match="base does not span"):
        overlay("add", fix, base, shape=(4,))
    with pytest.raises(InvalidDescriptorError, match="base"):
        overlay("add", shape=(4,))
    with pytest.raises(InvalidDescriptorError, match="no composite"):
        overlay("add", base, partition(), shape=(4,))
    # A nested overlay inside a partition is fine.
    inner = overlay("add", base, fix, shape=(4,))
    with pytest.raises(InvalidDescriptorError, match="shard"):
        partition([inner], shape=(4,))


def test_groups_are_free():
    anything = group(
        Tensor(bytes(3), hurray.uint8, (3,)), hurray.zeros((2, 2)), partition(), nested(3), shape=(7,), dtype=int8
    )
    assert anything.shape == (7,) and anything.dtype is int8 and anything.member_count == 4


def test_private_types_need_what_no_head_can_state():
    with pytest.raises(InvalidDescriptorError):
        group(dtype=hurray.Dtype.from_tag(0xF1))


def test_nesting():
    assert nested(64).member_count == 1
    with pytest.raises(InvalidDescriptorError, match="64.*65"):
        nested(65)


# ---- what is not there ---


@pytest.mark.parametrize(
    "name",
    "values buffer buffer_count buffer_handles nnz nbytes device __dlpack__ __dlpack_device__ __array__ "
    "__array_interface__ __hurray__ to_numpy __len__ __iter__ __getitem__".split(),
)
def test_absent(name):
    assert not hasattr(partition(), name)


def test_a_composite_has_no_bytes():
    with pytest.raises(TypeError):
        memoryview(partition())
    with pytest.raises(TypeError):
        bytes(partition())
    with pytest.raises(TypeError):
        hurray.from_dlpack(partition())


def test_it_is_frozen_and_no_key():
    composite = partition()
    for name in ("members", "shape", "dtype", "layout", "member_roles", "other"):
        with pytest.raises(AttributeError):
            setattr(composite, name, ())
    with pytest.raises(TypeError, match="unhashable"):
        hash(composite)
    with pytest.raises(TypeError):
        type("Sub", (Composite,), {})
    with pytest.raises(TypeError):
        composite < composite  # noqa: B015
    assert weakref.ref(composite)() is composite and bool(composite)


def test_an_object_that_was_never_made():
    raw = Composite.__new__(Composite)
    with pytest.raises(TypeError):
        group(raw)
    assert (raw == partition()) is False
    with pytest.raises(TypeError):
        StreamWriter().write(raw)


# ---- equality and printing ---


def test_equality():
    assert partition() == partition() and not partition() != partition()
    assert partition() == partition(halves())  # bytes aside
    a, b = halves()
    assert partition([a, b]) != partition([b, a])
    assert partition() != group(*halves(), shape=(8, 8))
    assert group(shape=(3,)) != group(shape=(4,)) and group() != group(dtype=int8)
    assert group(nested(3)) == group(nested(3)) != group(nested(4))
    assert group(nested(2), nested(1)) != group(nested(1), nested(2))
    base, fix = piece(np.zeros(4, np.float32), (4,), (0,)), piece(np.ones(1, np.float32), (4,), (2,))
    assert overlay("add", base, fix, shape=(4,)) != overlay("replace", base, fix, shape=(4,))
    for other in (None, 3, "partition", a, [a, b], partition().descriptor):
        assert partition() != other and (partition() == other) is False
    ours = Tensor(bytes(8), float32, (2,), statistics=hurray.Statistics(nnz=0))
    assert group(ours) != group(Tensor(bytes(8), float32, (2,)))
    assert group(hurray.zeros((2,), device=hurray.device.cuda)) != group(hurray.zeros((2,)))


def test_alignment_and_bytes_do_not_count():
    strong = hurray.empty((8,), dtype=float32, alignment=4096)
    weak = Tensor(np.arange(8, dtype=np.float32).tobytes(), float32, (8,))
    assert strong.descriptor != weak.descriptor
    assert group(strong) == group(weak)


def test_a_round_trip_is_equal():
    base = piece(np.zeros(4, np.float32), (4,), (0,))
    fix = piece(np.ones(1, np.float32), (4,), (2,))
    composite = group(overlay("add", base, fix, shape=(4,)), partition(), nested(4), hurray.zeros((3,)))
    assert through_stream(composite) == composite == through_stream(through_stream(composite))


def test_relayed_members_are_compared_and_written_as_they_came():
    raw = wire.descriptor(wire.FLOAT32, (2,), 8, alignment=4096, device=1, sync=1) + bytes(8)
    (waiting,) = StreamReader(raw)
    composite = group(waiting)
    assert composite == through_stream(composite)
    assert stream(composite).endswith(raw)
    assert composite != group(hurray.zeros((2,), dtype=float32, device=hurray.device.cuda))


def test_repr():
    assert repr(partition()) == "hurray.Composite(rule='partition', shape=(8, 8), members=[Tensor, Tensor])"
    assert str(partition()) == repr(partition())
    base = piece([1.0], (1,), (0,))
    assert (
        repr(overlay("add", base, base, shape=(1,)))
        == "hurray.Composite(rule='overlay', shape=(1,), members=[Tensor, Tensor])"
    )
    assert repr(group()) == "hurray.Composite(rule='group', shape=(), members=[])"
    inner = group(base)
    assert repr(group(base, inner, shape=(2,))) == (
        "hurray.Composite(rule='group', shape=(2,), members=[Tensor, "
        "hurray.Composite(rule='group', shape=(), members=[Tensor])])"
    )
    assert repr(group(group(inner, base))) == (
        "hurray.Composite(rule='group', shape=(), members=[hurray.Composite(rule='group', shape=(), "
        "members=[hurray.Composite(rule='group', shape=(), members=[...]), Tensor])])"
    )


def test_deep_ones_on_a_small_stack():
    raw = struct.pack("<4sHIIBBB3xQBBHIB", b"HRRY", 1, 37, 0, 3, 0x0B, 0, 0, 3, 0, 0, 1, 0)
    encoded = raw * 63 + raw[:-5] + bytes(5)
    done = []

    def work():
        (read,) = StreamReader(encoded, max_composite_depth=64)
        made = nested(64)
        assert made == read and repr(made) == repr(read)
        assert made != nested(63)
        del made, read
        gc.collect()
        done.append(True)

    before = threading.stack_size(512 * 1024)
    try:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    finally:
        threading.stack_size(before)
    assert done


def test_members_live_as_long_as_the_composite():
    t = hurray.zeros((3,))
    alive = weakref.ref(t)
    composite = group(group(t))
    del t
    assert alive() is not None
    inner = composite.members[0]
    del composite
    assert alive() is not None
    del inner
    assert alive() is None


# ---- values ---


def test_partition_values():
    whole = np.arange(30, dtype=np.float32).reshape(6, 5)
    boxes = [((0, 0), (6, 2)), ((0, 2), (4, 3)), ((4, 2), (2, 3))]
    members = [
        piece(whole[r : r + h, c : c + w], (6, 5), (r, c)) for (r, c), (h, w) in boxes
    ]  # fmt: skip
    t = partition(members, shape=(6, 5)).materialize()
    assert type(t) is Tensor and t.layout == hurray.RowMajorLayout() and not t.readonly
    assert t.device is hurray.device.cpu and t.dtype is float32
    assert np.array_equal(np.asarray(t), whole)
    np.asarray(t)[:] = 0
    assert np.array_equal(np.asarray(members[0]), whole[:, :2])
    assert np.array_equal(
        np.asarray(through_stream(partition(members, shape=(6, 5))).materialize()), whole
    )


def test_nested_values():
    inner = Composite("partition", shape=(4, 8), dtype=float32, members=halves((4, 8)))
    with pytest.raises(InvalidDescriptorError, match="shard"):
        partition([inner, halves()[1]])  # a head that is stated here has no shard
    assert np.array_equal(
        np.asarray(inner.materialize()), np.repeat([0, 0, 1, 1], 8).reshape(4, 8)
    )


def test_overlay_values():
    base = piece(np.array([1, 2, 3, 4], np.int8), (4,), (0,), int8)
    fix = piece(np.array([100, 50], np.int8), (4,), (2,), int8)
    assert np.asarray(overlay("replace", base, fix, shape=(4,), dtype=int8).materialize()).tolist() == [1, 2, 100, 50]
    assert np.asarray(overlay("add", base, fix, fix, shape=(4,), dtype=int8).materialize()).tolist() == [1, 2, -53, 104]


def test_a_sparse_correction_covers_what_it_stores():
    base = piece(np.full((2, 3), 7, np.float32), (2, 3), (0, 0))
    fix = Tensor(
        np.array([1, 0], np.float32),
        float32,
        (2, 3),
        layout=hurray.CooLayout(2),
        aux_buffers=[np.array([[0, 1], [1, 2]], np.uint64)],
        shard=Shard((2, 3), (0, 0)),
    )
    got = overlay("replace", base, fix, shape=(2, 3)).materialize()
    assert np.asarray(got).tolist() == [[7, 1, 7], [7, 7, 0]]


def test_what_has_no_values():
    with pytest.raises(UnsupportedError, match="group"):
        group(hurray.zeros((2,))).materialize()
    bits = piece(np.zeros(1, np.uint8), (1,), (0,), hurray.bool)
    with pytest.raises(UnsupportedError, match="cannot be added"):
        overlay("add", bits, bits, shape=(1,), dtype=hurray.bool).materialize()
    elsewhere = piece(np.zeros(2, np.float32), (2,), (0,), device=hurray.device.cuda)
    with pytest.raises(UnsupportedError, match=r"device.*members\[0\]|members\[0\].*device"):
        partition([elsewhere], shape=(2,)).materialize()


def test_index_buffers_are_checked_first():
    broken = Tensor(
        np.array([1, 0], np.float32),
        float32,
        (2, 3),
        layout=hurray.CooLayout(2),
        aux_buffers=[np.array([[0, 1], [9, 2]], np.uint64)],
        shard=Shard((2, 3), (0, 0)),
    )
    with pytest.raises((InvalidDescriptorError, hurray.BufferError), match=r"members\[0\]"):
        partition([broken], shape=(2, 3)).materialize()


# ---- by stream (05-stream.md section 4) ---


def test_a_composite_is_one_item():
    items = [hurray.zeros((2,)), partition(), nested(3), hurray.zeros((3,))]
    raw = stream(*items)
    got = list(StreamReader(raw, expected_items=4))
    assert [type(item) for item in got] == [Tensor, Composite, Composite, Tensor]
    assert got[1:3] == items[1:3]
    with pytest.raises(hurray.StreamError, match="expected_items.*5.*4"):
        list(StreamReader(raw, expected_items=5))


def test_write_composite_takes_nothing_else():
    writer = StreamWriter()
    for wrong in (hurray.zeros((2,)), np.zeros(2), None, [partition()]):
        with pytest.raises(TypeError, match="hurray.Composite"):
            writer.write_composite(wrong)
    with pytest.raises(TypeError, match="expected a hurray.Tensor or a hurray.Composite"):
        writer.write([partition()])
    assert writer.getvalue() == b""
    writer.write_composite(partition())
    writer.finish()
    assert writer.getvalue() == stream(partition())
    with pytest.raises(hurray.StreamError):
        writer.write_composite(partition())


def test_a_refused_composite_leaves_the_writer_as_it_was():
    writer = StreamWriter(cross_machine=True)
    writer.write(hurray.zeros((1,)))
    before = writer.getvalue()
    raw = wire.descriptor(wire.FLOAT32, (2,), 8, device=1, sync=2) + bytes(8)
    (waiting,) = StreamReader(raw)
    with pytest.raises(hurray.StreamError, match="consumer_stream|sync"):
        writer.write(group(hurray.zeros((2,)), waiting))
    with pytest.raises(InvalidDescriptorError, match="8.*9"):
        writer.write(nested(9))
    assert writer.getvalue() == before
    writer.write(nested(8))
    writer.write(partition())
    writer.finish()
    assert [type(i) for i in StreamReader(writer.getvalue())] == [Tensor, Composite, Composite]


def plain(items, *wanted):
    """Nothing was added to the descriptors: alignment aside, they are those of `wanted`."""
    return all(
        item.descriptor.differences(t.descriptor) == ()
        and item.descriptor.encoded_len == t.descriptor.encoded_len
        for item, t in zip(items, wanted, strict=True)
    )


def test_members_that_are_read_have_no_role():
    base = piece(np.zeros(4, np.float32), (4,), (0,))
    fix = piece(np.ones(1, np.float32), (4,), (2,))
    raw = stream(overlay("add", base, fix, shape=(4,)))
    (read,) = StreamReader(raw)
    assert read.member_roles == ("base", "correction")
    assert plain(read.members, base, fix)
    # A member that comes alone is a plain tensor (02-layouts.md L17).
    alone = raw[len(read.descriptor.encode()) :]
    assert plain(StreamReader(alone), base, fix)
    assert stream(read) == raw


HEAD = bytes.fromhex(
    "485252590100 2D000000 00000000 03 0B 01 000000 0200000000000000 0000000000000000 03 00 0000 01000000 00"
)
MEMBER = bytes.fromhex(
    "485252590100 35000000 00000000 10 01 01 000000 0200000000000000 0000000000000000 01 0200000000000000 40000000 00000000 05FB"
)


def test_the_worked_bytes():
    raw = HEAD + MEMBER
    assert len(raw) == 100
    (read,) = StreamReader(raw)
    assert read.shape == (2,) and np.asarray(read.members[0]).tolist() == [5, -5]
    member = Tensor(b"\x05\xfb", int8, (2,))
    assert stream(group(member, shape=(2,))) == raw
    for cut in range(1, 100):
        reader = StreamReader(raw[:cut])
        with pytest.raises(hurray.StreamError, match="torn composite" if cut == 45 else "truncated"):
            list(reader)
        assert list(reader) == []


def test_torn_composites_say_what_is_missing():
    raw = stream(partition())
    with pytest.raises(hurray.StreamError, match="torn composite.*|2.*1"):
        list(StreamReader(raw[: len(raw) - len(stream(halves()[1]))]))


def test_rules_are_judged_as_members_come():
    a, _ = halves()
    raw = partition().descriptor.encode() + stream(a) + stream(a)
    with pytest.raises(InvalidDescriptorError, match="overlap"):
        list(StreamReader(raw))
    with pytest.raises(InvalidDescriptorError, match="shard"):
        list(StreamReader(partition().descriptor.encode() + stream(hurray.zeros((3,), dtype=float32))))


def test_limits_of_a_reader():
    with StreamWriter() as writer:
        writer.write(nested(8))
    raw = writer.getvalue()
    assert list(StreamReader(raw)) == [nested(8)]
    deep = raw[: len(raw) // 8] + raw
    with pytest.raises(hurray.StreamError, match="8.*9"):
        list(StreamReader(deep))
    assert list(StreamReader(deep, max_composite_depth=9)) == [nested(9)]
    with pytest.raises(hurray.StreamError, match="3.*4"):
        list(StreamReader(raw, max_composite_depth=3))
    for wrong in (0, 65, 2**40):
        with pytest.raises(ValueError, match="1 to 64"):
            StreamReader(raw, max_composite_depth=wrong)
    five = stream(group(*[hurray.zeros((1,))] * 5))
    assert list(StreamReader(five, max_item_members=5)) == [group(*[hurray.zeros((1,))] * 5)]
    with pytest.raises(hurray.StreamError, match="max_item_members.*4.*5|4.*5"):
        list(StreamReader(five, max_item_members=4))
    many = HEAD[:40] + struct.pack("<I", 2**32 - 2) + HEAD[44:]
    with pytest.raises(hurray.StreamError, match="1048576.*4294967294"):
        list(StreamReader(many))
    with pytest.raises(OverflowError):
        StreamReader(raw, max_item_members=-1)


# ---- by file (04-file.md section 9) ---


@pytest.fixture
def path(tmp_path):
    return tmp_path / "c.hrry"


def test_names_in_a_file(path):
    tree = group(hurray.zeros((1,)), group(hurray.zeros((2,)), hurray.zeros((3,))), nested(2))
    hurray.save(path, {"first": hurray.zeros((4,)), "head": tree, "last": partition()})
    f = hurray.open(path)
    assert f.names == ("first", "head", "last") == tuple(f) == tuple(f.keys())
    assert len(f) == 3
    assert f.member_names == (
        "head.0", "head.1", "head.1.0", "head.1.1", "head.2", "head.2.0", "last.0", "last.1",
    )  # fmt: skip
    assert f["head"] == tree and f["last"] == partition()
    assert dict(f.items())["head"] == tree
    assert [type(value) for value in f.values()] == [Tensor, Composite, Composite]
    assert f.get("head") == tree
    for name in f.member_names:
        assert name in f and f[name] is not None
    assert f["head.1"] == group(hurray.zeros((2,)), hurray.zeros((3,)))
    assert f["head.1.1"].shape == (3,) and f["head.2.0"] == nested(1)
    for unknown in ("head.3", "head.", "1", "head.1.2"):
        assert unknown not in f
        with pytest.raises(KeyError):
            f[unknown]
    assert list(f.descriptors()) == ["first", "head", *f.member_names[:6], "last", *f.member_names[6:]]
    assert f.descriptor("head").layout == CompositeLayout("group", 3)
    assert f.descriptor("head.1.0").shape == (2,)
    assert "member_names" not in hurray.load_kv(path)


@pytest.mark.parametrize("mode", ["map", "copy_on_write", "memory"])
def test_load_gives_a_composite_once(path, mode):
    hurray.save(path, {"b": partition(), "a": hurray.zeros((2,))})
    loaded = hurray.load(path, mode=mode)
    assert list(loaded) == ["b", "a"] and loaded["b"] == partition()
    assert np.array_equal(
        np.asarray(loaded["b"].materialize()), np.asarray(partition().materialize())
    )
    some = hurray.load(path, names=["b.1", "a", "b", "b.1"], mode=mode)
    assert list(some) == ["b.1", "a", "b"]
    assert type(some["b.1"]) is Tensor and some["b"] == partition()
    assert loaded["b"].members[0].readonly is (mode == "map")
    with pytest.raises(hurray.FileError, match="'b.2'"):
        hurray.load(path, names=["b.2"])


def test_a_member_read_alone_has_no_role(path):
    base = piece(np.zeros(4, np.float32), (4,), (0,))
    hurray.save(path, {"o": overlay("add", base, base, shape=(4,))})
    loaded = hurray.load(path, names=["o.0", "o.1"])
    read = [*loaded.values(), *hurray.load(path)["o"].members, hurray.open(path)["o.1"]]
    assert plain(read, *[base] * 5)
    # Where it is stored, it has one.
    assert hurray.open(path).descriptor("o.0").encoded_len > base.descriptor.encoded_len


@pytest.mark.parametrize("tensors, name", [
    ({"c": group(hurray.zeros((1,))), "c.0": hurray.zeros((1,))}, "c.0"),
    ({"c.0": hurray.zeros((1,)), "c": group(hurray.zeros((1,)))}, "c.0"),
    ({"c": group(group(hurray.zeros((1,)))), "c.0.0": hurray.zeros((1,))}, "c.0.0"),
    ({"c": group(group(hurray.zeros((1,)))), "c.0": group(hurray.zeros((1,)))}, "c.0"),
])  # fmt: skip
def test_names_that_clash(path, tensors, name):
    with pytest.raises(hurray.FileError, match=name):
        hurray.save(path, tensors)
    assert not path.exists() and list(path.parent.iterdir()) == []


def test_nothing_is_written_when_anything_is_refused(path):
    path.write_bytes(b"old")
    good = hurray.zeros((1,))
    for value in (nested(9), [good], group(nested(8))):
        with pytest.raises((InvalidDescriptorError, UnsupportedError)):
            hurray.save(path, {"good": good, "bad": value})
    with pytest.raises(UnsupportedError, match='"bad".*hurray.Composite'):
        hurray.save(path, {"good": good, "bad": [good]})
    with pytest.raises(InvalidDescriptorError, match="8.*9"):
        hurray.save(path, {"good": good, "bad": nested(9)})
    with pytest.raises(hurray.FileError, match="65535"):
        hurray.save(path, {"n" * 65535: group(good)})
    assert path.read_bytes() == b"old"
    hurray.save(path, {"good": good, "eight": nested(8)})
    assert hurray.load(path)["eight"] == nested(8)


def test_two_saves_are_the_same_bytes(path, tmp_path):
    tree = {"c": group(partition(), hurray.zeros((3,)))}
    hurray.save(path, tree)
    hurray.save(tmp_path / "again", hurray.load(path))
    assert path.read_bytes() == (tmp_path / "again").read_bytes()
    assert hurray.open(path).has_checksums


def test_depth_of_a_file(path):
    hurray.save(path, {"c": nested(8), "t": hurray.zeros((1,))})
    for read in (hurray.load, hurray.open):
        for wrong in (0, 65):
            with pytest.raises(ValueError, match="1 to 64"):
                read(path, max_composite_depth=wrong)
    with pytest.raises(InvalidDescriptorError, match="7.*8"):
        hurray.load(path, max_composite_depth=7)
    f = hurray.open(path, max_composite_depth=2)
    assert f.names == ("c", "t") and f["t"].shape == (1,)
    with pytest.raises(InvalidDescriptorError, match="2.*3"):
        f["c"]
    assert f["c.0.0.0.0.0.0"] == nested(2)


def heads_file(path, *entries):
    """Heads are entries with `(name, descriptor, 0)`."""
    position, index, out = 64, b"", bytearray(64)
    struct.pack_into("<8sBBxxIIQQ", out, 0, b"HRRYFILE", 1, 0, 4, 4096, 64, 2**64 - 1)
    for name, encoded, data in entries:
        start = len(out)
        out += encoded
        align = 8 if not data and len(encoded) < 53 else 4096
        out += bytes(-len(out) % align)
        at = len(out)
        out += data
        out += bytes(-len(out) % 8)
        index += struct.pack("<H", len(name)) + name.encode()
        index += struct.pack("<QIQQI", start, len(encoded), at, len(data), 0)
    position = len(out)
    index = struct.pack("<Q", len(entries)) + index
    out += index
    out += struct.pack("<QQQIII4s", position, len(index), 0, 0, wire.crc32c(index), 0, b"HRRY")
    path.write_bytes(out)


def test_a_torn_head_takes_nothing_along(path):
    head = HEAD[:37] + HEAD[37:40] + HEAD[40:]
    one = wire.descriptor(wire.UINT8, (2,), 2)
    heads_file(path, ("a", one, b"12"), ("h", head[:40] + struct.pack("<I", 5) + head[44:], b""), ("b", one, b"34"), ("c", one, b"56"))  # fmt: skip
    f = hurray.open(path)
    assert f.names == ("a", "h", "b", "c") and f.member_names == ()
    with pytest.raises(hurray.FileError, match="torn composite"):
        f["h"]
    assert np.asarray(f["b"]).tolist() == [51, 52]
    with pytest.raises(hurray.FileError, match="h.*torn composite"):
        hurray.load(path)
    assert list(hurray.load(path, names=["c", "a"])) == ["c", "a"]


def test_listing_reads_the_descriptors_of_heads_alone(path):
    """Those of tensors with data may be anything."""
    one = wire.descriptor(wire.UINT8, (2,), 2)
    heads_file(path, ("a", b"?" * 53, b"12"), ("h", HEAD, b""), ("h.0", one, b"34"), ("z", b"?" * 20, b""))
    f = hurray.open(path)
    assert f.names == ("a", "h", "z") and f.member_names == ("h.0",) and len(f) == 3
    assert np.asarray(f["h"].members[0]).tolist() == [51, 52]
    for name in ("a", "z"):
        with pytest.raises(InvalidDescriptorError, match="magic"):
            f[name]


def test_a_composite_that_breaks_a_rule_leaves_its_members_readable(path):
    one = wire.descriptor(wire.UINT8, (2,), 2)
    view = partition(shape=(8, 8)).descriptor.encode()
    heads_file(path, ("h", view[:45] + view[45:], b""), ("x", one, b"12"), ("y", one, b"34"))
    f = hurray.open(path)
    assert f.names == ("h",) and f.member_names == ("x", "y")
    with pytest.raises(InvalidDescriptorError, match="shard"):
        f["h"]
    assert np.asarray(f["y"]).tolist() == [51, 52]


def test_verify_goes_into_composites(path):
    hurray.save(path, {"c": group(hurray.zeros((4,)), partition()), "t": hurray.zeros((4,))})
    f = hurray.open(path)
    f.verify()
    f.verify(["c"])
    at = path.read_bytes().index(np.ones(8, np.float32).tobytes())
    with open(path, "r+b") as out:
        out.seek(at)
        out.write(b"\1")
    f = hurray.open(path)
    f.verify(["t"])
    f.verify(["c.0"])
    for names in (["c"], ["c.1"], ["c.1.1"], None):
        with pytest.raises(hurray.FileError, match=r"c\.1\.1"):
            f.verify(names)
    with pytest.raises(hurray.FileError, match=r"c\.1\.1"):
        hurray.load(path, mode="memory")
    with pytest.raises(hurray.FileError, match=r"c\.1\.1"):
        hurray.load(path, names=["c"], verify=True)


def test_close_names_the_composite_that_is_held(path):
    hurray.save(path, {"c": partition(), "t": hurray.zeros((4,))})
    f = hurray.open(path)
    member = f["c"].members[1]
    alone = f["c.0"]
    assert f.close() == ("c", "c.0")
    assert np.array_equal(np.asarray(member), np.ones((4, 8), np.float32))
    del member, alone
    f = hurray.open(path)
    view = np.asarray(f["c"].members[0])
    with pytest.raises(BufferError, match="'c'"):
        f.close(strict=True)
    del view
    assert f.close(strict=True) == ()
    for ask in (lambda: f.names, lambda: f.member_names, lambda: len(f), lambda: f["c"]):
        with pytest.raises(ValueError, match="closed"):
            ask()


def test_save_over_the_file_that_is_open(path):
    hurray.save(path, {"c": partition()})
    loaded = hurray.load(path)
    hurray.save(path, {"again": loaded["c"], "m": loaded["c"].members[1]})
    assert hurray.load(path)["again"] == partition() == loaded["c"]


def test_composites_of_mapped_tensors_and_threads(path):
    hurray.save(path, {"c": group(*[hurray.full((1000,), i) for i in range(20)])})
    f = hurray.open(path)
    errors = []

    def work():
        try:
            for _ in range(20):
                assert f.names == ("c",) and len(f.member_names) == 20
                for i, member in enumerate(f["c"].members):
                    assert np.asarray(member)[0] == i
        except Exception as error:  # noqa: BLE001
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors


def test_every_layout_and_private_type_comes_back_as_saved(path):
    """What the vectors of streams hold, plain and as members."""
    import test_conformance

    tensors = {}
    for entry in test_conformance.entries("stream", "valid"):
        # Members without elements are read, and written by nobody (02-layouts.md L21).
        if test_conformance.agreed_only(entry) and "with_empty_member" not in entry["name"]:
            for i, item in enumerate(StreamReader(test_conformance.read(entry)[0])):
                tensors[f"{entry['name']} {i}"] = item
    assert len(tensors) > 400
    with StreamWriter() as writer:
        for item in tensors.values():
            writer.write(item)
    for mode in ("map", "memory"):
        hurray.save(path, tensors)
        loaded = hurray.load(path, mode=mode)
        assert list(loaded) == list(tensors)
        with StreamWriter() as again:
            for item in loaded.values():
                again.write(item)
        assert again.getvalue() == writer.getvalue()
        for name, item in loaded.items():
            if isinstance(item, Composite):
                assert item == tensors[name], name
            else:
                other = tensors[name].descriptor
                assert item.descriptor.encoded_len == other.encoded_len, name
