"""The fourteen layout classes: values, printed forms, what their constructors and shapes refuse (reference, section 8)."""

import itertools

import hurray
import numpy
import pytest
from hurray import (
    MXFP,
    NF4,
    BlockPagedLayout,
    ColMajorLayout,
    CompositeLayout,
    CooLayout,
    CscLayout,
    CsfLayout,
    CsrLayout,
    HilbertLayout,
    InvalidDescriptorError,
    Layout,
    MortonLayout,
    PerBlockAffine,
    PerChannelAffine,
    PerTensorAffine,
    PrivateExtensionLayout,
    RowMajorLayout,
    StridedLayout,
    TiledLayout,
    UnknownLayout,
)

#: One of each class: name, tag, buffers, the printed form.
EXAMPLES = [
    (RowMajorLayout(), "row_major", 0x01, 1, "RowMajorLayout()"),
    (ColMajorLayout(), "col_major", 0x02, 1, "ColMajorLayout()"),
    (StridedLayout([4, 1]), "strided", 0x03, 1, "StridedLayout(strides=(4, 1))"),
    (
        TiledLayout([4, 4]),
        "tiled",
        0x04,
        1,
        "TiledLayout(tile_shape=(4, 4), outer_layout='row_major', inner_layout='row_major')",
    ),
    (MortonLayout([3, 3]), "morton", 0x05, 1, "MortonLayout(morton_bits=(3, 3))"),
    (HilbertLayout(3, 2), "hilbert", 0x40, 1, "HilbertLayout(hilbert_order=3, hilbert_rank=2)"),
    (CooLayout(2), "coo", 0x06, 2, "CooLayout(nnz=2, is_sorted=False)"),
    (CsrLayout(4), "csr", 0x07, 3, "CsrLayout(nnz=4)"),
    (CscLayout(4), "csc", 0x08, 3, "CscLayout(nnz=4)"),
    (CsfLayout(5, [0, 1, 2]), "csf", 0x09, 7, "CsfLayout(nnz=5, mode_order=(0, 1, 2))"),
    (
        BlockPagedLayout(16, 4, 0, 2),
        "block_paged",
        0x0A,
        3,
        "BlockPagedLayout(page_size=16, num_pages=4, paged_axis=0, num_seqs=2, kv_role='key', "
        "layer_index=None, block_table_index_type='uint32')",
    ),
    (
        CompositeLayout("overlay", 3, "add"),
        "composite",
        0x0B,
        0,
        "CompositeLayout(composition_rule='overlay', member_count=3, combine_op='add')",
    ),
    (
        PrivateExtensionLayout(0xF0, 7),
        "extension",
        0xF0,
        None,
        "PrivateExtensionLayout(tag=0xF0, extension_layout_id=7, extension_data=0 bytes)",
    ),
    (UnknownLayout(0x0C), "extension", 0x0C, None, "UnknownLayout(tag=0x0C, raw_bytes=0 bytes)"),
]
LAYOUTS = [example[0] for example in EXAMPLES]
DENSE = {"row_major", "col_major", "strided", "tiled", "morton", "hilbert"}
SUMMARIES = (BlockPagedLayout, UnknownLayout, PrivateExtensionLayout)


def ids(examples):
    return [type(example[0]).__name__ for example in examples]


@pytest.mark.parametrize("layout, name, tag, buffers, text", EXAMPLES, ids=ids(EXAMPLES))
def test_what_every_layout_has(layout, name, tag, buffers, text):
    assert isinstance(layout, Layout)
    assert (layout.name, layout.tag, layout.buffer_count) == (name, tag, buffers)
    assert layout.is_dense is (name in DENSE)
    assert layout.is_virtual is (name == "composite")
    assert repr(layout) == str(layout) == text
    if not isinstance(layout, SUMMARIES):
        assert eval(text, vars(hurray)) == layout
    assert layout != name and not layout == text
    assert layout is not None and (layout == 3) is False
    for attribute in ("name", "tag", "nnz", "anything"):
        with pytest.raises(AttributeError):
            setattr(layout, attribute, 1)
    with pytest.raises(TypeError):
        layout < layout


def test_there_are_fourteen_and_they_differ():
    assert len({type(layout) for layout in LAYOUTS}) == 14
    for a, b in itertools.combinations(LAYOUTS, 2):
        assert a != b and not a == b
    assert len(set(LAYOUTS)) == 14


def test_the_base_has_no_constructor_and_the_classes_no_subclass():
    with pytest.raises(TypeError):
        Layout()
    for layout in LAYOUTS:
        with pytest.raises(TypeError):
            type("Mine", (type(layout),), {})


def test_an_object_whose_constructor_never_ran_is_no_layout():
    raw = CooLayout.__new__(CooLayout)
    assert (raw == CooLayout(2)) is False and (CooLayout(2) == raw) is False
    with pytest.raises(TypeError):
        hash(raw)


#: Arguments, and what they read back as.
VALUES = [
    (StridedLayout, ([-3, 0, 2**62],), {"strides": (-3, 0, 2**62)}),
    (StridedLayout, (numpy.array([4, -1], "i4"),), {"strides": (4, -1)}),
    (StridedLayout, (range(2),), {"strides": (0, 1)}),
    (
        TiledLayout,
        ((2, 3),),
        {
            "tile_shape": (2, 3),
            "outer_layout": "row_major",
            "inner_layout": "row_major",
            "outer_strides": None,
            "inner_strides": None,
            "inner_tiled": None,
        },
    ),
    (
        TiledLayout,
        ((2, 3), "strided", "strided", (-4, 1), [1, -2]),
        {"outer_layout": "strided", "outer_strides": (-4, 1), "inner_strides": (1, -2)},
    ),
    (
        TiledLayout,
        ((8, 8), "row_major", "tiled", None, None, TiledLayout((4, 2), "col_major")),
        {"inner_layout": "tiled", "inner_tiled": TiledLayout((4, 2), "col_major"), "inner_strides": None},
    ),
    (MortonLayout, ((1, 3),), {"morton_bits": (1, 3)}),
    (MortonLayout, ([63],), {"morton_bits": (63,)}),
    (HilbertLayout, (31, 2), {"hilbert_order": 31, "hilbert_rank": 2}),
    (HilbertLayout, (1, 63), {"hilbert_order": 1, "hilbert_rank": 63}),
    (CooLayout, (2**64 - 1, True), {"nnz": 2**64 - 1, "is_sorted": True}),
    (CooLayout, (numpy.uint8(7), numpy.bool_(True)), {"nnz": 7, "is_sorted": True}),
    (CsrLayout, (0,), {"nnz": 0}),
    (CscLayout, (3,), {"nnz": 3}),
    (CsfLayout, (4, [0, 1]), {"nnz": 4, "mode_order": (0, 1), "buffer_count": 5}),
    (CsfLayout, (0, (2, 0, 1)), {"nnz": 0, "mode_order": (2, 0, 1)}),
    (
        BlockPagedLayout,
        (1, 2**64 - 1, 1, 2**32 - 1, "fused", 7, "uint64"),
        {
            "page_size": 1,
            "num_pages": 2**64 - 1,
            "paged_axis": 1,
            "num_seqs": 2**32 - 1,
            "kv_role": "fused",
            "layer_index": 7,
            "block_table_index_type": "uint64",
        },
    ),
    (BlockPagedLayout, (1, 0, 0, 0, "value"), {"kv_role": "value", "layer_index": None, "num_seqs": 0}),
    (CompositeLayout, ("partition", 0), {"composition_rule": "partition", "member_count": 0, "combine_op": None}),
    (CompositeLayout, ("group", 2**32 - 2), {"member_count": 2**32 - 2, "combine_op": None}),
    (CompositeLayout, ("overlay", 1, "replace"), {"combine_op": "replace"}),
    (
        PrivateExtensionLayout,
        (0xFE, 2**64 - 1, b"abc"),
        {"tag": 0xFE, "extension_layout_id": 2**64 - 1, "extension_data": b"abc"},
    ),
    (PrivateExtensionLayout, (0xF0, 0, None), {"extension_data": b""}),
    (PrivateExtensionLayout, (0xF0, 0, bytearray(b"x")), {"extension_data": b"x"}),
    (UnknownLayout, (0x0C,), {"tag": 0x0C, "raw_bytes": b""}),
    (UnknownLayout, (0x41, memoryview(b"raw")), {"tag": 0x41, "raw_bytes": b"raw"}),
    (UnknownLayout, (0xEF, b"\0"), {"tag": 0xEF, "raw_bytes": b"\0"}),
]


@pytest.mark.parametrize("cls, arguments, values", VALUES)
def test_arguments_read_back(cls, arguments, values):
    layout = cls(*arguments)
    for name, value in values.items():
        found = getattr(layout, name)
        assert found == value and type(found) is type(value), name
    again = cls(*arguments)
    assert again == layout and hash(again) == hash(layout)


def test_arguments_have_names():
    assert StridedLayout(strides=(1,)) == StridedLayout((1,))
    assert TiledLayout(
        tile_shape=(2,), outer_layout="strided", inner_layout="col_major", outer_strides=(1,), inner_strides=None,
        inner_tiled=None,
    ) == TiledLayout((2,), "strided", "col_major", (1,))
    assert MortonLayout(morton_bits=(1,)) == MortonLayout((1,))
    assert HilbertLayout(hilbert_order=1, hilbert_rank=2) == HilbertLayout(1, 2)
    assert CooLayout(nnz=1, is_sorted=True) == CooLayout(1, True)
    assert CsrLayout(nnz=1) == CsrLayout(1) and CscLayout(nnz=1) == CscLayout(1)
    assert CsfLayout(nnz=1, mode_order=(0,)) == CsfLayout(1, (0,))
    assert BlockPagedLayout(
        page_size=1, num_pages=2, paged_axis=0, num_seqs=3, kv_role="key", layer_index=0,
        block_table_index_type="uint32",
    ) == BlockPagedLayout(1, 2, 0, 3, "key", 0)
    assert CompositeLayout(composition_rule="overlay", member_count=1, combine_op="add") == CompositeLayout(
        "overlay", 1, "add"
    )
    assert PrivateExtensionLayout(tag=0xF0, extension_layout_id=1, extension_data=b"") == PrivateExtensionLayout(
        0xF0, 1
    )
    assert UnknownLayout(tag=0x20, raw_bytes=b"") == UnknownLayout(0x20)


DIFFERENT = [
    (StridedLayout((1, 2)), StridedLayout((2, 1)), StridedLayout((1,)), StridedLayout(())),
    (TiledLayout((2,)), TiledLayout((2,), "col_major"), TiledLayout((2,), "row_major", "col_major"), TiledLayout((3,))),
    (
        TiledLayout((4,), inner_layout="tiled", inner_tiled=TiledLayout((2,))),
        TiledLayout((4,), inner_layout="tiled", inner_tiled=TiledLayout((1,))),
        TiledLayout((4,)),
    ),
    (CooLayout(1), CooLayout(1, True), CooLayout(2)),
    (CsfLayout(1, (0, 1, 2)), CsfLayout(1, (0, 2, 1))),
    (BlockPagedLayout(1, 2, 0, 3), BlockPagedLayout(1, 2, 0, 3, layer_index=0), BlockPagedLayout(1, 2, 1, 3)),
    (CompositeLayout("group", 1), CompositeLayout("partition", 1), CompositeLayout("overlay", 1, "add")),
    (PrivateExtensionLayout(0xF0, 1), PrivateExtensionLayout(0xF1, 1), PrivateExtensionLayout(0xF0, 1, b"x")),
    (UnknownLayout(0x0C), UnknownLayout(0x0D), UnknownLayout(0x0C, b"x")),
]


@pytest.mark.parametrize("layouts", DIFFERENT)
def test_every_argument_counts_in_comparison(layouts):
    for a, b in itertools.combinations(layouts, 2):
        assert a != b
    assert len(set(layouts)) == len(layouts)


def nested(levels):
    """A tiled layout of so many levels over one dimension; the innermost tile has 2 elements."""
    layout = TiledLayout((2,))
    for level in range(1, levels):
        layout = TiledLayout((2 ** (level + 1),), inner_layout="tiled", inner_tiled=layout)
    return layout


def test_tiles_nest_eight_levels_deep():
    layout = nested(8)
    depth = 1
    while layout.inner_tiled is not None:
        assert layout.inner_layout == "tiled" and layout.tile_shape == (2 ** (9 - depth),)
        assert layout == nested(9 - depth)
        layout, depth = layout.inner_tiled, depth + 1
    assert depth == 8
    with pytest.raises(InvalidDescriptorError, match="at most 8 levels"):
        nested(9)


def test_the_fourth_nested_level_is_not_printed():
    def text(level, levels):
        head = f"TiledLayout(tile_shape=({2 ** (levels - level)},), outer_layout='row_major', inner_layout="
        if level == levels - 1:
            return head + "'row_major')"
        inner = "..." if level == 3 else text(level + 1, levels)
        return head + f"'tiled', inner_tiled={inner})"

    for levels in range(1, 9):
        assert repr(nested(levels)) == text(0, levels)
    assert eval(repr(nested(4)), vars(hurray)) == nested(4)
    assert repr(nested(5)).endswith("inner_tiled=...))))") and repr(nested(4)).count("...") == 0
    strided = TiledLayout((4, 4), "strided", "tiled", (1, -2), None, TiledLayout((2, 2), inner_layout="strided", inner_strides=(2, 1)))
    assert repr(strided) == (
        "TiledLayout(tile_shape=(4, 4), outer_layout='strided', inner_layout='tiled', outer_strides=(1, -2), "
        "inner_tiled=TiledLayout(tile_shape=(2, 2), outer_layout='row_major', inner_layout='strided', "
        "inner_strides=(2, 1)))"
    )


def test_other_printed_forms():
    assert repr(StridedLayout((1,))) == "StridedLayout(strides=(1,))"
    assert repr(StridedLayout(())) == "StridedLayout(strides=())"
    assert repr(CooLayout(2, True)) == "CooLayout(nnz=2, is_sorted=True)"
    assert repr(CompositeLayout("group", 0)) == "CompositeLayout(composition_rule='group', member_count=0)"
    assert repr(PrivateExtensionLayout(0xFE, 1, b"abc")).endswith("tag=0xFE, extension_layout_id=1, extension_data=3 bytes)")
    assert repr(UnknownLayout(0x7F, b"abc")) == "UnknownLayout(tag=0x7F, raw_bytes=3 bytes)"
    paged = repr(BlockPagedLayout(16, 4, 0, 2, "fused", 3, "uint64"))
    assert paged.endswith("kv_role='fused', layer_index=3, block_table_index_type='uint64')")


def raises(error, fragment, cls, *arguments, **named):
    with pytest.raises(error, match=fragment) as caught:
        cls(*arguments, **named)
    assert type(caught.value) is error


def test_unknown_strings_are_value_errors():
    raises(ValueError, "outer_layout 'diagonal'.*'row_major', 'col_major', 'strided'", TiledLayout, (2,), "diagonal")
    raises(ValueError, "outer_layout 'tiled'", TiledLayout, (2,), "tiled")
    raises(ValueError, "inner_layout 'csr'.*'tiled'", TiledLayout, (2,), "row_major", "csr")
    raises(ValueError, "kv_role 'query'.*'key', 'value', 'fused'", BlockPagedLayout, 1, 1, 0, 1, "query")
    raises(
        ValueError, "block_table_index_type 'int32'", BlockPagedLayout, 1, 1, 0, 1, block_table_index_type="int32"
    )
    raises(ValueError, "composition_rule 'stack'.*'partition', 'overlay', 'group'", CompositeLayout, "stack", 1)
    raises(ValueError, "combine_op 'multiply'.*'replace', 'add'", CompositeLayout, "overlay", 1, "multiply")
    raises(ValueError, "combine_op 'none'", CompositeLayout, "overlay", 1, "none")
    for wrong in (1, b"row_major", hurray.RowMajorLayout()):
        raises(TypeError, "outer_layout must be a str", TiledLayout, (2,), wrong)


def test_an_operation_belongs_to_overlays():
    raises(ValueError, "needs a combine_op", CompositeLayout, "overlay", 1)
    raises(ValueError, "needs a combine_op", CompositeLayout, "overlay", 0)
    for rule in ("partition", "group"):
        raises(ValueError, "takes no combine_op", CompositeLayout, rule, 1, "replace")


def test_known_tags_are_not_unknown():
    named = {
        0x01: "RowMajorLayout",
        0x02: "ColMajorLayout",
        0x03: "StridedLayout",
        0x04: "TiledLayout",
        0x05: "MortonLayout",
        0x06: "CooLayout",
        0x07: "CsrLayout",
        0x08: "CscLayout",
        0x09: "CsfLayout",
        0x0A: "BlockPagedLayout",
        0x0B: "CompositeLayout",
        0x40: "HilbertLayout",
    }
    for tag in range(256):
        kind = hurray.layout_tag_kind(tag)
        if kind == "reserved":
            assert UnknownLayout(tag).tag == tag
        elif kind == "invalid":
            raises(InvalidDescriptorError, f"0x{tag:02X}", UnknownLayout, tag)
        elif kind == "private":
            raises(ValueError, "use hurray.PrivateExtensionLayout instead", UnknownLayout, tag)
        else:
            raises(ValueError, f"use hurray.{named.pop(tag)} instead", UnknownLayout, tag)
        if kind == "private":
            assert PrivateExtensionLayout(tag, 1).tag == tag
        else:
            raises(InvalidDescriptorError, "0xF0 to 0xFE", PrivateExtensionLayout, tag, 1)
    assert not named
    with pytest.raises(ValueError, match="tag 0x07 is the csr layout, not an unknown one; use hurray.CsrLayout instead"):
        UnknownLayout(0x07)


@pytest.mark.parametrize(
    "cls, arguments, fragment",
    [
        (TiledLayout, ((),), "tiled"),
        (TiledLayout, ((2, 0),), r"tile_shape\[1\]"),
        (TiledLayout, ((2,), "strided"), "'strided' needs outer_strides"),
        (TiledLayout, ((2,), "row_major", "strided"), "'strided' needs inner_strides"),
        (TiledLayout, ((2,), "row_major", "row_major", (1,)), "outer_strides goes with outer_layout 'strided'"),
        (TiledLayout, ((2,), "row_major", "row_major", None, (1,)), "inner_strides goes with inner_layout 'strided'"),
        (TiledLayout, ((2,), "strided", "row_major", (1, 2)), "outer_strides has 2 entries for a tile of rank 1"),
        (TiledLayout, ((2,), "row_major", "strided", None, ()), "inner_strides has 0 entries for a tile of rank 1"),
        (TiledLayout, ((2,), "row_major", "tiled"), "'tiled' needs inner_tiled"),
        (TiledLayout, ((2,), "row_major", "row_major", None, None, TiledLayout((1,))), "inner_tiled goes with"),
        (TiledLayout, ((2,), "row_major", "tiled", None, None, TiledLayout((1, 1))), "rank 2 inside a tile of rank 1"),
        (TiledLayout, ((6,), "row_major", "tiled", None, None, TiledLayout((4,))), "a divisor of the enclosing tile"),
        (TiledLayout, ((2**32, 2**32),), "tile_shape"),
        (TiledLayout, ((1,) * 65,), "at most 64"),
        (StridedLayout, ((1,) * 65,), "at most 64"),
        (MortonLayout, ((),), "morton"),
        (MortonLayout, ((2, 0),), r"morton_bits\[1\]"),
        (MortonLayout, ((32, 32),), "at most 63 bits"),
        (MortonLayout, ((64,),), "at most 63 bits"),
        (HilbertLayout, (0, 2), "hilbert_order"),
        (HilbertLayout, (1, 1), "hilbert_rank"),
        (HilbertLayout, (1, 0), "hilbert_rank"),
        (HilbertLayout, (1, 64), "hilbert_rank"),
        (HilbertLayout, (2**32 - 1, 2), "at most 63 bits"),
        (HilbertLayout, (32, 2), "at most 63 bits"),
        (CsfLayout, (1, (0,) * 65), "at most 64"),
        (CompositeLayout, ("group", 2**32 - 1), "member_count"),
        (CompositeLayout, ("overlay", 0, "add"), "the base"),
        (BlockPagedLayout, (0, 1, 0, 1), "page_size"),
        (BlockPagedLayout, (1, 2**32, 0, 1), "uint32 indices"),
        (BlockPagedLayout, (1, 1, 0, 1, "key", 2**32 - 1), "pass None"),
    ],
)
def test_what_constructors_refuse(cls, arguments, fragment):
    raises(InvalidDescriptorError, fragment, cls, *arguments)


@pytest.mark.parametrize(
    "cls, arguments",
    [
        (StridedLayout, ((2**63,),)),
        (StridedLayout, ((-(2**63) - 1,),)),
        (TiledLayout, ((-1,),)),
        (TiledLayout, ((2**64,),)),
        (MortonLayout, ((2**32,),)),
        (MortonLayout, ((-1,),)),
        (HilbertLayout, (-1, 2)),
        (HilbertLayout, (1, 2**32)),
        (CooLayout, (-1,)),
        (CooLayout, (2**64,)),
        (CsrLayout, (-1,)),
        (CscLayout, (2**64,)),
        (CsfLayout, (1, (-1,))),
        (BlockPagedLayout, (2**32, 1, 0, 1)),
        (BlockPagedLayout, (1, 2**64, 0, 1)),
        (BlockPagedLayout, (1, 1, -1, 1)),
        (BlockPagedLayout, (1, 1, 0, 2**32)),
        (BlockPagedLayout, (1, 1, 0, 1, "key", -1)),
        (CompositeLayout, ("group", -1)),
        (CompositeLayout, ("group", 2**32)),
        (PrivateExtensionLayout, (256, 1)),
        (PrivateExtensionLayout, (0xF0, 2**64)),
        (PrivateExtensionLayout, (0xF0, -1)),
        (UnknownLayout, (-1,)),
        (UnknownLayout, (256,)),
    ],
)
def test_integers_out_of_range(cls, arguments):
    raises(OverflowError, "outside the range", cls, *arguments)


@pytest.mark.parametrize(
    "cls, arguments",
    [
        (StridedLayout, ()),
        (StridedLayout, (4,)),
        (StridedLayout, ("41",)),
        (StridedLayout, ((1.0,),)),
        (StridedLayout, ({1: 2},)),
        (TiledLayout, (4,)),
        (TiledLayout, ((2,), "row_major", "tiled", None, None, (2,))),
        (TiledLayout, ((2,), "row_major", "tiled", None, None, RowMajorLayout())),
        (MortonLayout, ((None,),)),
        (HilbertLayout, (1.0, 2)),
        (HilbertLayout, (1,)),
        (CooLayout, ()),
        (CooLayout, ("4",)),
        (CooLayout, (4, 1)),
        (CooLayout, (4, None)),
        (CsrLayout, (None,)),
        (CsfLayout, (1,)),
        (BlockPagedLayout, (1, 1, 0)),
        (BlockPagedLayout, (1, 1, 0, 1, "key", "3")),
        (CompositeLayout, (1, 1)),
        (CompositeLayout, ("group", 1.5)),
        (PrivateExtensionLayout, (0xF0,)),
        (PrivateExtensionLayout, (0xF0, 1, "text")),
        (PrivateExtensionLayout, ("0xF0", 1)),
        (UnknownLayout, ()),
        (UnknownLayout, (0x0C, 5)),
        (RowMajorLayout, (1,)),
    ],
)
def test_wrong_types(cls, arguments):
    with pytest.raises(TypeError):
        cls(*arguments)


FITS = [
    (RowMajorLayout(), [(), (0,), (2, 3), (None, 4), (2**40, 2**40), (1,) * 64]),
    (ColMajorLayout(), [(3,), (2, 3), (None,)]),
    (StridedLayout((4, 1)), [(3, 4), (0, 9), (None, 2), (1000, 4)]),
    (StridedLayout((2**62,)), [(1,), (2,), (None,), (0,)]),
    (TiledLayout((2, 3)), [(5, 7), (1, 1), (None, 3), (0, 2)]),
    (MortonLayout((1, 3)), [(2, 8), (1, 5), (None, 8), (0, 0)]),
    (HilbertLayout(3, 2), [(8, 8), (None, 8)]),
    (CooLayout(6), [(6,), (2, 3), (None, 1), (7, 2**60, 2**60)]),
    (CooLayout(0), [(0,), (4,)]),
    (CsrLayout(4), [(2, 2), (4, 6), (None, 0)]),
    (CscLayout(4), [(2, 2), (4, 6)]),
    (CsfLayout(5, (2, 0, 1)), [(3, 4, 5), (None, 1, 1)]),
    (BlockPagedLayout(16, 4, 0, 2), [(8, 3, 4), (0, 0, 0), (None, None, None)]),
    (BlockPagedLayout(16, 4, 0, 0), [(0, 3, 4), (None, 3, 4)]),
    (CompositeLayout("group", 1), [(), (2, None)]),
    (CompositeLayout("partition", 1), [(), (2, 3), (0,)]),
    (CompositeLayout("overlay", 1, "add"), [(2, 3)]),
    (PrivateExtensionLayout(0xF0, 1), [(), (2, 3), (None,)]),
    (UnknownLayout(0x0C), [(), (2, 3), (None,)]),
]
DOES_NOT_FIT = [
    (ColMajorLayout(), (), "rank"),
    (StridedLayout((4, 1)), (3,), "strides"),
    (StridedLayout(()), (), "rank"),
    (StridedLayout((2**62,)), (9,), "64 bits"),
    (TiledLayout((2, 3)), (5,), "tile"),
    (TiledLayout((2, 3)), (), "rank"),
    (TiledLayout((2**31, 2**31)), (2**40, 2**40), "2\\^63"),
    (MortonLayout((1, 3)), (3, 8), "morton_bits"),
    (MortonLayout((1, 3)), (2,), "morton_bits"),
    (MortonLayout((1, 3)), (None, 9), "morton_bits"),
    (HilbertLayout(3, 2), (8, 7), "hilbert_order"),
    (HilbertLayout(3, 2), (8, 8, 8), "hilbert_rank"),
    (HilbertLayout(3, 2), (0, 8), "hilbert_order"),
    (CooLayout(7), (2, 3), "nnz"),
    (CooLayout(1), (0, 3), "nnz"),
    (CooLayout(1), (), "rank"),
    (CsrLayout(1), (4,), "rank"),
    (CsrLayout(1), (2, 2, 2), "rank"),
    (CsrLayout(5), (2, 2), "nnz"),
    (CscLayout(1), (2, 2, 2), "rank"),
    (CsfLayout(4, (0, 1)), (2, 2), "rank"),
    (CsfLayout(4, (0, 1)), (2, 2, 2), "mode_order"),
    (CsfLayout(4, (0, 1, 1)), (2, 2, 2), "mode_order"),
    (CsfLayout(4, (0, 1, 3)), (None, 2, 2), "mode_order"),
    (CsfLayout(9, (0, 1, 2)), (2, 2, 2), "nnz"),
    (BlockPagedLayout(16, 4, 0, 2), (8, 3), "rank"),
    (BlockPagedLayout(16, 4, 1, 2), (8, 3, 4), "paged_axis"),
    (BlockPagedLayout(16, 4, 0, 0), (8, 3, 4), "num_seqs"),
    (CompositeLayout("partition", 1), (2, None), "dynamic"),
    (CompositeLayout("overlay", 1, "add"), (None,), "dynamic"),
    (CompositeLayout("partition", 1), (2**50,) * 3, "2\\^128"),
]


@pytest.mark.parametrize("layout, shapes", FITS, ids=ids(FITS))
def test_shapes_that_fit(layout, shapes):
    for shape in shapes:
        assert layout.validate_against_shape(shape) is None
        assert layout.validate_against_shape(list(shape)) is None


@pytest.mark.parametrize("layout, shape, fragment", DOES_NOT_FIT)
def test_shapes_that_do_not_fit(layout, shape, fragment):
    with pytest.raises(InvalidDescriptorError, match=f"{layout.name} layout.*{fragment}"):
        layout.validate_against_shape(shape)


def test_shapes_are_checked_as_everywhere():
    layout = RowMajorLayout()
    with pytest.raises(InvalidDescriptorError, match="non-negative, got -1"):
        layout.validate_against_shape((-1,))
    with pytest.raises(InvalidDescriptorError, match="64"):
        layout.validate_against_shape((1,) * 65)
    for wrong in (3, "12", (1.5,)):
        with pytest.raises(TypeError):
            layout.validate_against_shape(wrong)


def test_tag_kinds_are_a_partition():
    kinds = [hurray.layout_tag_kind(tag) for tag in range(256)]
    assert [tag for tag in range(256) if kinds[tag] == "named"] == [*range(0x01, 0x0C), 0x40]
    assert [tag for tag in range(256) if kinds[tag] == "private"] == list(range(0xF0, 0xFF))
    assert [tag for tag in range(256) if kinds[tag] == "invalid"] == [0x00, 0xFF]
    assert set(kinds) == {"named", "private", "invalid", "reserved"}
    for tag in (-1, 256, 2**70):
        with pytest.raises(OverflowError):
            hurray.layout_tag_kind(tag)
    with pytest.raises(TypeError):
        hurray.layout_tag_kind("7")


# The example of the layout page: sequences of 3, 0 and 5 tokens, page 4 shared.
PAGED = BlockPagedLayout(2, 6, 0, 3, "value", 7)


@pytest.mark.parametrize("make", [list, tuple, lambda v: numpy.array(v, "u4"), lambda v: numpy.array(v, "i8")])
def test_index_lists_that_hold(make):
    assert PAGED.validate_index_buffers(make([0, 2, 2, 5]), make([4, 1, 4, 0, 5])) is None
    assert BlockPagedLayout(2, 6, 0, 0).validate_index_buffers(make([0]), make([])) is None
    assert BlockPagedLayout(2, 0, 0, 2).validate_index_buffers(make([0, 0, 0]), make([])) is None
    wide = BlockPagedLayout(1, 2**64 - 1, 0, 1, block_table_index_type="uint64")
    assert wide.validate_index_buffers([0, 1], [2**64 - 2]) is None


@pytest.mark.parametrize(
    "seq_ptr, table, fragment",
    [
        ([0, 2, 5], [4, 1, 4, 0, 5], "seq_ptr: expected 4 entries.*found 3"),
        ([0, 2, 2, 5, 5], [4, 1, 4, 0, 5], "seq_ptr: expected 4 entries.*found 5"),
        ([], [], "seq_ptr"),
        ([1, 2, 2, 5], [4, 1, 4, 0, 5], r"seq_ptr\[0\]: expected 0"),
        ([0, 3, 2, 5], [4, 1, 4, 0, 5], r"seq_ptr\[2\]: expected at least 3"),
        ([0, 2, 2, 4], [4, 1, 4, 0, 5], "block_table: expected 4 entries.*found 5"),
        ([0, 2, 2, 6], [4, 1, 4, 0, 5], r"seq_ptr\[3\]: expected at most 5"),
        ([0, 2, 2, 5], [4, 1, 4, 0, 6], r"block_table\[4\]: expected at most 5"),
        ([0, 2, 2, 5], [4, -1, 4, 0, 5], r"block_table\[1\].*found -1"),
        ([-1, 2, 2, 5], [4, 1, 4, 0, 5], r"seq_ptr\[0\].*found -1"),
        ([0, 2, 2, 2**64], [4, 1, 4, 0, 5], r"seq_ptr\[3\]"),
    ],
)
def test_index_lists_that_do_not_hold(seq_ptr, table, fragment):
    with pytest.raises(InvalidDescriptorError, match=fragment):
        PAGED.validate_index_buffers(seq_ptr, table)


def test_index_lists_of_another_type():
    for seq_ptr, table in (([0, 2, 2, 5.0], [4, 1, 4, 0, 5]), ([0, 2, 2, 5], 5), ("0225", []), ([0], [None])):
        with pytest.raises(TypeError):
            PAGED.validate_index_buffers(seq_ptr, table)


def test_schemes_of_a_paged_cache():
    check = PAGED.validate_quantization_compatibility
    for fits in (
        PerTensorAffine(0.5, 3),
        PerChannelAffine.symmetric(1, 3),
        PerChannelAffine.asymmetric(2, 3, 4),
        PerBlockAffine.symmetric(0, 2, 3, hurray.float16),
        PerBlockAffine.asymmetric(0, 2, 3, 4, hurray.float32),
    ):
        assert check(fits) is None
    for scheme, fragment in (
        (PerChannelAffine.symmetric(0, 3), "1 or 2 for channels"),
        (PerChannelAffine.symmetric(3, 3), "axis"),
        (PerBlockAffine.symmetric(1, 2, 3, hurray.float16), "0 \\(tokens\\)"),
        (PerBlockAffine.symmetric(0, 4, 3, hurray.float16), "2 \\(page_size\\)"),
        (NF4(0, 8, 3), "affine"),
        (MXFP(0, 32, 3), "affine"),
    ):
        with pytest.raises(InvalidDescriptorError, match=fragment):
            check(scheme)
    for wrong in (3, 0x03, "per_block_affine", None, PerBlockAffine, hurray.float16):
        with pytest.raises(
            InvalidDescriptorError, match="PerTensorAffine, PerChannelAffine, PerBlockAffine, NF4, MXFP"
        ):
            check(wrong)
