"""Sparse matrices of SciPy, and COO arrays (08-python-api.md sections 13.5, 14.6)."""

import gc
import weakref

import pytest

np = pytest.importorskip("numpy")
sp = pytest.importorskip("scipy.sparse")
hypothesis = pytest.importorskip("hypothesis")
from hypothesis import given, settings  # noqa: E402
from hypothesis import strategies as st  # noqa: E402

import hurray  # noqa: E402
from hurray import (  # noqa: E402
    CooLayout,
    CopyRequiredError,
    CscLayout,
    CsrLayout,
    InvalidDescriptorError,
    Tensor,
    UnsupportedError,
)

TYPES = "bool int8 int16 int32 int64 uint8 uint16 uint32 uint64 float32 float64 complex64 complex128".split()
KINDS = {"csr": (sp.csr_matrix, sp.csr_array), "csc": (sp.csc_matrix, sp.csc_array)}
ROLES = {"csr": ("values", "col_indices", "row_ptr"), "csc": ("values", "row_indices", "col_ptr")}


def aligned(values, dtype=None):
    values = np.asarray(values, dtype)
    with hurray.aligned_allocator():
        return values.copy()


def matrix(kind, data, indices, indptr, shape, dtype=np.int64):
    """A matrix with exactly these arrays: SciPy's constructors check and change them."""
    m = kind(shape)
    m.data, m.indices, m.indptr = (
        np.asarray(data),
        np.asarray(indices, dtype),
        np.asarray(indptr, dtype),
    )
    return m


def example(kind, dtype=np.float32):
    dense = np.zeros((3, 4), dtype)
    dense[[0, 0, 1, 2, 2], [0, 2, 2, 0, 1]] = [1, 2, 3, 4, 5]
    return kind(dense)


def parts(t):
    return [getattr(t, role).to_numpy() for role in ROLES[t.layout.name]]


# ---- from_scipy -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", TYPES)
@pytest.mark.parametrize("kind", [k for kinds in KINDS.values() for k in kinds], ids=lambda k: k.__name__)
def test_values_of_every_type(kind, name):
    m = example(kind, name)
    t = hurray.from_scipy(m)
    assert t.dtype.name == name and t.shape == (3, 4) and t.nnz == 5
    assert t.layout == (CsrLayout(5) if m.format == "csr" else CscLayout(5))
    assert t.device is hurray.device.cpu and not t.readonly
    values, indices, pointers = parts(t)
    assert indices.dtype == pointers.dtype == np.uint64
    assert (values == m.data).all() and values.dtype == m.dtype
    assert (indices == m.indices).all() and (pointers == m.indptr).all()
    assert [h.alignment >= 64 for h in t.buffer_handles] == [True] * 3
    back = t.to_scipy()
    assert type(back) is KINDS[m.format][0] and back.dtype == m.dtype
    assert (back.toarray() == m.toarray()).all()


@st.composite
def dense_arrays(draw):
    shape = draw(st.tuples(st.integers(0, 6), st.integers(0, 6)))
    seed = draw(st.integers(0, 2**32 - 1))
    rng = np.random.default_rng(seed)
    values = rng.integers(-3, 4, shape) * (rng.random(shape) < 0.5)
    return values.astype(draw(st.sampled_from(TYPES)))


@settings(max_examples=150, deadline=None)
@given(dense_arrays(), st.sampled_from(["csr", "csc"]), st.sampled_from([np.int32, np.int64]), st.booleans())
def test_there_and_back(dense, form, index, shuffled):
    m = KINDS[form][0](dense)
    m.indices, m.indptr = m.indices.astype(index), m.indptr.astype(index)
    if shuffled:  # the entries of each line in another order
        rng = np.random.default_rng(len(m.indices))
        for a, b in zip(m.indptr, m.indptr[1:]):
            order = rng.permutation(b - a)
            m.indices[a:b], m.data[a:b] = m.indices[a:b][order], m.data[a:b][order]
        m.has_sorted_indices = False
    before = m.indices.copy(), m.data.copy()
    t = hurray.from_scipy(m)
    assert (t.to_dense().to_numpy() == dense).all()
    back = t.to_scipy()
    assert (back.toarray() == dense).all() and back.has_sorted_indices
    assert (m.indices == before[0]).all() and (m.data == before[1]).all()


def test_each_array_by_the_copy_rule():
    data, pointers = aligned([1.0, 2.0, 3.0]), aligned([0, 2, 3], np.uint64)
    columns = aligned([0, 2, 1], np.uint64)
    m = matrix(sp.csr_matrix, data, columns, pointers, (2, 3), np.uint64)
    for copy in (None, False):
        t = hurray.from_scipy(m, copy=copy)
        for part, source in zip((t.values, t.col_indices, t.row_ptr), (data, columns, pointers)):
            assert np.shares_memory(np.asarray(part), source)
    own = hurray.from_scipy(m, copy=True)
    assert not np.shares_memory(np.asarray(own.values), data)
    assert not np.shares_memory(np.asarray(own.col_indices), columns)
    assert (np.asarray(own.to_dense()) == [[1, 0, 2], [0, 3, 0]]).all()


def off(values, dtype):
    """An array eight bytes behind a multiple of 64."""
    values = np.asarray(values, dtype)
    with hurray.aligned_allocator():
        room = np.zeros(values.nbytes + 64, np.uint8)
    out = room[8 : 8 + values.nbytes].view(dtype)
    out[:] = values
    return out


@pytest.mark.parametrize("form", ROLES)
def test_the_first_array_that_needs_a_copy_is_named(form):
    values, indices, pointers = ROLES[form]
    good = [aligned([1.0, 2.0, 3.0]), aligned([0, 1, 0], np.uint64), aligned([0, 2, 3], np.uint64)]
    bad = [off([1.0, 2.0, 3.0], np.float64), off([0, 1, 0], np.uint64), off([0, 2, 3], np.uint64)]
    kind = KINDS[form][0]

    def build(*which):
        return matrix(kind, *(bad[i] if i in which else good[i] for i in range(3)), (2, 2), np.uint64)

    assert hurray.from_scipy(build(), copy=False).nnz == 3
    for which, named in (((0,), values), ((1,), indices), ((2,), pointers), ((1, 2), indices), ((0, 2), values)):
        with pytest.raises(CopyRequiredError, match=rf"{named}: .*8-byte aligned.*64.*copy=None.*aligned_allocator\(\)"):
            hurray.from_scipy(build(*which), copy=False)
        t = hurray.from_scipy(build(*which))
        assert (t.to_dense().to_numpy() == ([[1, 2], [3, 0]] if form == "csr" else [[1, 3], [2, 0]])).all()
        for i, part in enumerate(getattr(t, role) for role in ROLES[form]):
            assert np.shares_memory(np.asarray(part), good[i]) == (i not in which)


@pytest.mark.parametrize("index", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", ">i4", ">u8"])
def test_other_indices_are_widened(index):
    m = matrix(sp.csr_matrix, aligned([1.0, 2.0, 3.0]), [0, 2, 1], [0, 2, 3], (2, 3), index)
    t = hurray.from_scipy(m)
    assert parts(t)[1].tolist() == [0, 2, 1] and parts(t)[2].tolist() == [0, 2, 3]
    with pytest.raises(CopyRequiredError, match="col_indices"):
        hurray.from_scipy(m, copy=False)
    largest = matrix(sp.csr_matrix, [1.0], [2**32 - 1], [0, 1], (1, 2**32), np.uint32)
    assert parts(hurray.from_scipy(largest))[1].tolist() == [2**32 - 1]


def test_bool_and_other_byte_orders_are_converted():
    m = matrix(sp.csr_matrix, aligned([True, False, True]), aligned([0, 2, 1], np.uint64),
               aligned([0, 2, 3], np.uint64), (2, 3), np.uint64)  # fmt: skip
    t = hurray.from_scipy(m)
    assert t.dtype is hurray.bool and t.values.nbytes == 1
    assert t.to_dense().to_numpy().tolist() == [[True, False, False], [False, True, False]]
    with pytest.raises(CopyRequiredError, match="values: bool"):
        hurray.from_scipy(m, copy=False)
    m.data = aligned([1, 2, 3], ">f4")
    assert parts(hurray.from_scipy(m))[0].tolist() == [1, 2, 3]
    with pytest.raises(CopyRequiredError, match="values: .*byte order"):
        hurray.from_scipy(m, copy=False)
    m.data = np.arange(6.0)[::2]
    assert parts(hurray.from_scipy(m))[0].tolist() == [0, 2, 4]
    with pytest.raises(CopyRequiredError, match="values"):
        hurray.from_scipy(m, copy=False)


@pytest.mark.parametrize(
    "data, indices, indptr, said",
    [
        ([1.0, 2], [0, 1], [1, 1, 2], r"_ptr\[0\].*first pointer"),
        ([1.0, 2], [0, 1], [0, 2, 1], r"_ptr\[2\].*pointer before it"),
        ([1.0, 2], [0, 1], [0, 1, 3], r"_ptr\[2\].*at most 2 .*found 3"),
        ([1.0, 2], [0, 1], [0, 1], "_ptr must have 3 entries"),
        ([1.0, 2], [0, 1], [0, 1, 2, 2], "_ptr must have 3 entries"),
        ([1.0, 2], [0, 2], [0, 1, 2], r"_indices\[1\].*at most 1.*found 2"),
        ([1.0, 2], [0, -1], [0, 1, 2], r"_indices\[1\] is negative"),
        ([1.0, 2], [0, 1], [0, -1, 2], r"_ptr\[1\] is negative"),
        ([1.0, 2], [0, 1], [0, 1, -2], r"_ptr\[2\] is negative"),
        ([1.0, 2], [1, 1], [0, 2, 2], "duplicate.*sum_duplicates"),
        ([1.0, 2, 3], [1, 0, 1], [0, 3, 3], "duplicate.*sum_duplicates"),
    ],
)
@pytest.mark.parametrize("form", ROLES)
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_broken_rules_are_named(form, index, data, indices, indptr, said):
    m = matrix(KINDS[form][0], data, indices, indptr, (2, 2), index)
    with pytest.raises(InvalidDescriptorError, match=said) as info:
        hurray.from_scipy(m)
    assert ROLES[form][1 if "indices" in said or "duplicate" in said else 2] in str(info.value)


def test_unsorted_lines_are_sorted_on_a_copy():
    data, columns = aligned([1.0, 2.0, 3.0]), aligned([2, 0, 1], np.uint64)
    m = matrix(sp.csr_matrix, data, columns, aligned([0, 2, 3], np.uint64), (2, 3), np.uint64)
    t = hurray.from_scipy(m)
    assert parts(t)[0].tolist() == [2, 1, 3] and parts(t)[1].tolist() == [0, 2, 1]
    assert data.tolist() == [1, 2, 3] and columns.tolist() == [2, 0, 1]
    with pytest.raises(CopyRequiredError, match="values: .*col_indices.*ascending"):
        hurray.from_scipy(m, copy=False)
    columns[:2] = 1
    with pytest.raises(InvalidDescriptorError, match="duplicate"):
        hurray.from_scipy(m, copy=False)


def test_explicit_zeros_stay():
    m = matrix(sp.csr_matrix, [0.0, 2.0], [0, 1], [0, 1, 2], (2, 2))
    t = hurray.from_scipy(m)
    assert t.nnz == 2 and parts(t)[0].tolist() == [0, 2] and t.to_scipy().nnz == 2


def test_arrays_longer_than_what_the_pointers_reach():
    m = matrix(sp.csr_matrix, [1.0, 2.0, 9.0, 9.0], [0, 1, 7, -5], [0, 1, 2], (2, 2))
    t = hurray.from_scipy(m)
    assert t.nnz == 2 and parts(t)[0].tolist() == [1, 2]


@pytest.mark.parametrize("shape", [(0, 0), (0, 3), (3, 0), (2, 2)])
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array])
def test_empty_matrices(shape, kind):
    for copy in (None, True):
        t = hurray.from_scipy(kind(shape), copy=copy)
        assert t.shape == shape and t.nnz == 0
        assert t.buffer_handles[0].alignment == 1 and t.buffer_handles[0].is_empty
        assert t.to_scipy().shape == shape and t.to_scipy().nnz == 0


def test_the_arrays_are_kept_alive_and_not_the_matrix():
    data = aligned([1.0, 2.0])
    m = matrix(sp.csr_matrix, data, aligned([0, 1], np.uint64), aligned([0, 1, 2], np.uint64), (2, 2), np.uint64)
    array, whole = weakref.ref(data), weakref.ref(m)
    t = hurray.from_scipy(m, copy=False)
    del m, data
    gc.collect()
    assert whole() is None and array() is not None
    del t
    gc.collect()
    assert array() is None


def test_read_only_arrays():
    data = aligned([1.0, 2.0])
    data.flags.writeable = False
    m = matrix(sp.csr_matrix, data, [0, 1], [0, 1, 2], (2, 2))
    t = hurray.from_scipy(m)
    assert t.readonly and not t.to_scipy().data.flags.writeable
    assert not hurray.from_scipy(m, copy=True).readonly


@pytest.mark.parametrize("form", ["coo", "bsr", "dia", "lil", "dok"])
def test_other_formats_are_refused_by_name(form):
    m = example(sp.csr_matrix).asformat(form)
    said = r"hurray\.sparse_coo\(.*\[nnz|COO.*hurray\.sparse_coo" if form == "coo" else form.upper()
    for copy in (None, False, True):
        with pytest.raises(UnsupportedError, match=said):
            hurray.from_scipy(m, copy=copy)
    with pytest.raises(UnsupportedError):
        hurray.from_scipy(sp.coo_array(np.eye(2)))


def test_other_objects_and_ranks():
    for wrong in (np.eye(2), [[1]], None, hurray.zeros((2, 2))):
        with pytest.raises(TypeError, match="scipy"):
            hurray.from_scipy(wrong)
    with pytest.raises(TypeError, match="copy"):
        hurray.from_scipy(sp.csr_matrix((2, 2)), copy=1)
    with pytest.raises(TypeError):
        hurray.from_scipy(sp.csr_matrix((2, 2)), False)
    if tuple(map(int, __import__("scipy").__version__.split(".")[:2])) >= (1, 15):
        with pytest.raises(UnsupportedError, match="1 dimension"):
            hurray.from_scipy(sp.csr_array(np.array([1, 0, 2])))


def test_types_that_are_not_here():
    m = example(sp.csr_matrix, np.float64)
    m.data = m.data.astype(np.longdouble)
    if np.finfo(np.longdouble).nmant != 112:
        with pytest.raises(UnsupportedError, match="dtype"):
            hurray.from_scipy(m)
    m.data = m.data.astype(object)
    with pytest.raises(UnsupportedError, match="dtype"):
        hurray.from_scipy(m)
    m = matrix(sp.csr_matrix, [1.0], [0.0], [0, 1, 1], (2, 2), np.float64)
    with pytest.raises(InvalidDescriptorError, match="integers"):
        hurray.from_scipy(m)


# ---- to_scipy ---------------------------------------------------------------------------------------


def csr(values, columns, pointers, shape, dtype=hurray.float64, **keywords):
    return Tensor(values, dtype, shape, layout=CsrLayout(len(columns)),
                  aux_buffers=[np.asarray(columns, np.uint64), np.asarray(pointers, np.uint64)],
                  **keywords)  # fmt: skip


def test_to_scipy_shares_the_values():
    t = csr(np.array([1.0, 2.0]), [0, 1], [0, 1, 2], (2, 2))
    m = t.to_scipy()
    assert np.shares_memory(m.data, np.asarray(t.values))
    m.data[0] = 7
    assert t.values.to_numpy().tolist() == [7, 2]
    watch = weakref.ref(t)
    del t
    gc.collect()
    assert watch() is not None or m.data.tolist() == [7, 2]
    assert m.toarray().tolist() == [[7, 0], [0, 2]]


@pytest.mark.parametrize(
    "columns, pointers, said",
    [([0, 2], [0, 1, 2], r"col_indices\[1\]"), ([0, 1], [1, 1, 2], r"row_ptr\[0\]"), ([0, 1], [0, 2, 1], r"row_ptr\[2\]"),
     ([0, 1], [0, 1, 3], r"row_ptr\[2\]"), ([1, 0], [0, 2, 2], r"col_indices\[1\]"), ([1, 1], [0, 2, 2], "duplicate"),
     ([2**64 - 1, 0], [0, 1, 2], r"col_indices\[0\]")],
)  # fmt: skip
def test_to_scipy_checks_first(columns, pointers, said):
    with pytest.raises(InvalidDescriptorError, match=said):
        csr(bytes(16), columns, pointers, (2, 2)).to_scipy()


def test_to_scipy_refuses_what_scipy_cannot_count():
    t = csr(bytes(8), [2**63], [0, 1, 1], (2, 2**63 + 1))
    with pytest.raises(UnsupportedError, match=r"2\*\*63"):
        t.to_scipy()


def test_to_scipy_refusals():
    coo = hurray.sparse_coo([1.0], [[0, 1]], (2, 2))
    with pytest.raises(UnsupportedError, match=r"coo.*\.values.*\.indices"):
        coo.to_scipy()
    i = coo.indices.to_numpy()  # the cure
    assert sp.coo_array((coo.values.to_numpy(), tuple(i.T)), coo.shape).toarray().tolist() == [[0, 1], [0, 0]]
    for layout, t in (
        ("row_major", hurray.zeros((2, 2))),
        ("strided", Tensor(bytes(8), hurray.uint8, (2, 2), layout=hurray.StridedLayout((1, 2)))),
        ("tiled", Tensor(bytes(4), hurray.uint8, (2, 2), layout=hurray.TiledLayout((2, 2)))),
    ):
        with pytest.raises(UnsupportedError, match=layout):
            t.to_scipy()
    for name in ("float8_e4m3", "int4", "float128", "float6_e2m3", "uint2"):
        with pytest.raises(UnsupportedError, match=name):
            csr(bytes(32), [0, 1], [0, 1, 2], (2, 2), getattr(hurray.dtype, name)).to_scipy()
    with pytest.raises(UnsupportedError, match="bfloat16"):
        csr(bytes(4), [0, 1], [0, 1, 2], (2, 2), hurray.bfloat16).to_scipy()
    with pytest.raises(UnsupportedError, match="cuda.*to_cpu"):
        csr(bytes(16), [0, 1], [0, 1, 2], (2, 2), device=hurray.device.cuda).to_scipy()
    with pytest.raises(UnsupportedError, match="dynamic"):
        csr(bytes(16), [0, 1], [0, 1, 2], (2, None)).to_scipy()
    quantized = csr(bytes(2), [0, 1], [0, 1, 2], (2, 2), hurray.int8,
                    quantization=hurray.PerTensorAffine(0.5, 1))  # fmt: skip
    with pytest.raises(UnsupportedError, match="per_tensor_affine"):
        quantized.to_scipy()


def test_bool_values_whose_bytes_can_be_read_in_two_ways():
    t = csr(bytes([1, 0]), [0, 1], [0, 1, 2], (2, 2), hurray.bool)
    with pytest.raises(UnsupportedError, match="2 bytes"):
        t.to_scipy()


# ---- sparse_coo -------------------------------------------------------------------------------------


def test_sparse_coo():
    for values, indices in (
        (np.array([1.0, 2.0]), np.array([[2, 0], [0, 1]])),
        ([1.0, 2.0], [[2, 0], [0, 1]]),
        (hurray.asarray([1.0, 2.0]), hurray.asarray([[2, 0], [0, 1]])),
        (np.array([1.0, 9, 2.0])[::2], np.asfortranarray([[2, 0], [0, 1]])),
        (np.array([1.0, 2.0], ">f8"), np.array([[2, 0], [0, 1]], ">i2")),
    ):
        t = hurray.sparse_coo(values, indices, (3, 2))
        assert t.layout == CooLayout(2, is_sorted=False) and t.nnz == 2 and t.shape == (3, 2)
        assert t.dtype is hurray.float64 and t.indices.dtype is hurray.uint64
        assert t.indices.to_numpy().tolist() == [[2, 0], [0, 1]]
        assert t.to_dense().to_numpy().tolist() == [[0, 2], [0, 0], [1, 0]]
    t = hurray.sparse_coo([5], [[1, 0, 2, 1]], (2, 1, 3, 2))
    assert t.to_dense().to_numpy()[1, 0, 2, 1] == 5
    assert hurray.sparse_coo(np.array([True]), [[1]], (2,)).dtype is hurray.bool


@settings(max_examples=100, deadline=None)
@given(dense_arrays(), st.integers(0, 2**32 - 1))
def test_sparse_coo_of_scipy(dense, seed):
    m = sp.coo_matrix(dense)
    order = np.random.default_rng(seed).permutation(m.nnz)
    t = hurray.sparse_coo(m.data[order], np.stack([m.row, m.col], axis=1)[order], m.shape)
    assert (t.to_dense().to_numpy() == dense).all() and t.dtype.name == dense.dtype.name


def test_sparse_coo_by_the_copy_rule():
    values, indices = aligned([1.0, 2.0]), aligned([[0, 1], [1, 0]], np.uint64)
    for copy in (None, False):
        t = hurray.sparse_coo(values, indices, (2, 2), copy=copy)
        assert np.shares_memory(np.asarray(t.values), values)
        assert np.shares_memory(np.asarray(t.indices), indices)
    own = hurray.sparse_coo(values, indices, (2, 2), copy=True)
    assert not np.shares_memory(np.asarray(own.values), values)
    mixed = hurray.sparse_coo(values, indices.astype(np.int32), (2, 2))
    assert np.shares_memory(np.asarray(mixed.values), values)
    for v, i, named in (
        (off([1.0, 2.0], np.float64), indices, "values"),
        (values, aligned([[0, 1], [1, 0]], np.int64), "indices"),
        (off([1.0, 2.0], np.float64), aligned([[0, 1], [1, 0]], np.int64), "values"),
        (values, np.asfortranarray(indices), "indices"),
        ([1.0, 2.0], indices, "values"),
        (values, [[0, 1], [1, 0]], "indices"),
    ):
        with pytest.raises(CopyRequiredError, match=f"{named}: "):
            hurray.sparse_coo(v, i, (2, 2), copy=False)


@pytest.mark.parametrize(
    "values, indices, shape, said",
    [
        ([1.0, 2.0], [[0, 1]], (2, 2), r"indices must have shape.*\(2, 2\), got \(1, 2\)"),
        ([1.0], [[0, 1, 2]], (2, 2), r"indices must have shape"),
        ([1.0], [0], (2,), r"indices must have shape"),
        ([[1.0]], [[0]], (2,), r"values must have one dimension"),
        (1.0, [[0]], (2,), r"values must have one dimension"),
        ([1.0], [[0, 2]], (2, 2), r"indices\[1\].*at most 1.*found 2"),
        ([1.0, 2.0], [[0, 1], [1, -1]], (2, 2), r"indices\[1, 1\] is negative"),
        ([1.0, 2.0], [[0, 1], [0, 1]], (2, 2), "duplicate"),
        ([1.0], [[0.0, 1.0]], (2, 2), "integers"),
        ([1.0], [[True, False]], (2, 2), "integers"),
        ([1.0], [[0, 1]], (2, None), r"hurray\.sparse_coo\(\)"),
        ([1.0], [[0, 1]], (2, -1), r"hurray\.sparse_coo\(\)"),
        ([], np.zeros((0, 0)), (), "rank"),
        ([1.0], [[0]], (0,), "nnz.*at most 0"),
    ],
)
def test_sparse_coo_names_what_is_wrong(values, indices, shape, said):
    with pytest.raises(InvalidDescriptorError, match=said):
        hurray.sparse_coo(values, indices, shape)


def test_sparse_coo_without_entries():
    for copy in (None, False, True):
        t = hurray.sparse_coo(np.zeros(0, np.float32), np.zeros((0, 2), np.uint64), (3, 4), copy=copy)
        assert t.nnz == 0 and t.shape == (3, 4) and t.dtype is hurray.float32
        assert [h.alignment for h in t.buffer_handles] == [1, 1]
    assert hurray.sparse_coo([], np.zeros((0, 2)), (3, 4)).nnz == 0


def test_sparse_coo_of_a_large_index():
    t = hurray.sparse_coo([1.0], np.array([[2**63]], np.uint64), (2**63 + 1,))
    assert t.indices.to_numpy().tolist() == [[2**63]]


def test_sparse_tensors_are_written(tmp_path):
    tensors = {
        "csr": hurray.from_scipy(example(sp.csr_matrix)),
        "csc": hurray.from_scipy(example(sp.csc_array)),
        "coo": hurray.sparse_coo([1, 2], [[0, 1], [1, 0]], (2, 2)),
    }
    hurray.save(tmp_path / "s.hrry", tensors)
    for name, t in hurray.load(tmp_path / "s.hrry").items():
        assert t.layout == tensors[name].layout
        assert (t.to_dense().to_numpy() == tensors[name].to_dense().to_numpy()).all()


@pytest.mark.parametrize("make", ["csr_matrix", "coo_array", "bsr_matrix"])
def test_asarray_leads_to_the_function_for_sparse_matrices(make):
    matrix = getattr(sp, make)(np.eye(4))
    for dtype in (None, hurray.float32):
        with pytest.raises(hurray.UnsupportedError, match="hurray.from_scipy"):
            hurray.asarray(matrix, dtype=dtype)
