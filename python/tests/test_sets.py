"""Several files as one: `save(max_shard_size=)`, indexes and folders (09-models-and-frameworks.md section 2)."""

import json
import os
import pickle
import shutil
import threading

import numpy as np
import pytest

import hurray
import processes

ARRAYS = {f"layer.{i}.w": np.full((100, 25), i, np.float32) for i in range(10)} | {"one": np.arange(3)}


def head(k):
    parts = [hurray.asarray(np.full(4, k + i, np.float32)) for i in range(2)]
    return hurray.Composite("group", shape=[4], dtype=hurray.float32, members=parts)


@pytest.fixture
def folder(tmp_path):
    hurray.save(tmp_path / "m.hrry", {**ARRAYS, "head": head(5)}, kv={"epoch": 3, "raw": b"x"}, max_shard_size=35_000)
    return tmp_path


def index(folder):
    return json.loads((folder / "m.hrry.index.json").read_text())


def test_shards_and_their_index(folder):
    names = sorted(os.listdir(folder))
    assert names == [f"m-0000{k}-of-00004.hrry" for k in (1, 2, 3, 4)] + ["m.hrry.index.json"]
    content = index(folder)
    assert list(content["weight_map"]) == [*ARRAYS, "head"]
    assert content["weight_map"]["layer.2.w"] == names[0] and content["weight_map"]["layer.3.w"] == names[1]
    assert content["metadata"]["total_size"] == 10 * 10_000 + 24 + 32
    for name in names[:4]:
        with hurray.open(folder / name) as f:
            assert f.kv == {"epoch": 3, "raw": b"x"} and f.has_checksums
            f.verify()


@pytest.mark.parametrize("mode", ["map", "copy_on_write", "memory", None])
@pytest.mark.parametrize("what", ["", "m.hrry.index.json"])
def test_one_file_over_all(folder, what, mode):
    with hurray.open(folder / what, mode=mode) as f:
        assert f.mode == (mode or "map") and f.path == str(folder / "m.hrry.index.json")
        assert f.names == (*ARRAYS, "head") and f.member_names == ("head.0", "head.1") and len(f) == 12
        assert f.kv == {"epoch": 3, "raw": b"x"} and f.has_checksums
        for name, array in ARRAYS.items():
            assert name in f and np.array_equal(f[name].to_numpy(), array)
            assert np.array_equal(f.read(name, slice(1, 2)).to_numpy(), array[1:2])
        assert np.array_equal(f["head"].members[1].to_numpy(), np.full(4, 6)) and "head.0" in f and "head.2" not in f
        assert f.get("nothing") is None and "<table" in f._repr_html_()
        assert f.descriptors().keys() == {*ARRAYS, "head", "head.0", "head.1"}
        f.prefetch()
        f.prefetch({"one": 1, "layer.9.w": slice(3)})
        f.verify()
        f.verify(["layer.7.w", "head"])
        with pytest.raises(hurray.FileError, match="no tensor is named 'nothing'"):
            f.verify(["nothing"])
    loaded = hurray.load(folder / what, mode=mode)
    assert list(loaded) == [*ARRAYS, "head"]
    assert list(hurray.load(folder / what, names=["one", "head.1"])) == ["one", "head.1"]
    assert hurray.load_kv(folder / what) == {"epoch": 3, "raw": b"x"}


def test_it_pickles_and_says_who_holds(folder):
    f = hurray.open(folder)
    again = pickle.loads(pickle.dumps(f))
    assert np.array_equal(again["layer.4.w"].to_numpy(), ARRAYS["layer.4.w"])
    held = f["layer.9.w"]
    assert f.close() == ("layer.9.w",) and np.array_equal(held.to_numpy(), ARRAYS["layer.9.w"])
    data = pickle.dumps(again)
    hurray.save(folder / "m.hrry", {**ARRAYS, "two": np.zeros(1)}, max_shard_size=35_000)
    with pytest.raises(hurray.FileError, match="not the file that was pickled"):
        pickle.loads(data)["one"]


@pytest.mark.parametrize("limit, files", [("5GB", 1), ("35kB", 4), ("35 KB", 4), ("0.02MiB", 5), (1, 12), (10_000, 11), (np.int64(10**9), 1)])
def test_limits(tmp_path, limit, files):
    hurray.save(tmp_path / "m", {**ARRAYS, "head": head(1)}, max_shard_size=limit)
    assert len(list(tmp_path.glob(f"m-*-of-{files:05}.hrry"))) == files and (tmp_path / "m.hrry.index.json").exists()
    assert len(hurray.open(tmp_path)) == 12


@pytest.mark.parametrize("limit, error", [(0, ValueError), (-1, ValueError), ("", ValueError), ("5 parsecs", ValueError), ("-5GB", ValueError),
                                          ("0.1B", ValueError), (1.5, TypeError), (True, TypeError), (b"5GB", TypeError)])  # fmt: skip
def test_wrong_limits(tmp_path, limit, error):
    with pytest.raises(error, match="max_shard_size"):
        hurray.save(tmp_path / "m.hrry", ARRAYS, max_shard_size=limit)
    assert not list(tmp_path.iterdir())


def test_nothing_is_a_checkpoint_too(tmp_path):
    hurray.save(tmp_path / "m.hrry", {}, max_shard_size=1, kv={"a": 1})
    with hurray.open(tmp_path) as f:
        assert f.names == () and f.kv == {"a": 1}


def test_shards_that_nobody_needs_go_and_others_stay(folder):
    (folder / "other-00001-of-00009.hrry").write_bytes(b"")
    hurray.save(folder / "m.hrry", ARRAYS, max_shard_size="1GB", sync=False)
    assert sorted(os.listdir(folder)) == ["m-00001-of-00001.hrry", "m.hrry.index.json", "other-00001-of-00009.hrry"]
    assert len(hurray.open(folder)) == 11


def test_the_path_that_was_saved_stands_for_the_shards(folder):
    for path in (folder / "m.hrry", folder / "m"):
        assert hurray.load(path).keys() == {*ARRAYS, "head"} and hurray.load_kv(path)["epoch"] == 3
        with hurray.open(path) as f:
            assert f.path == str(folder / "m.hrry.index.json")
    with pytest.raises(FileNotFoundError):
        hurray.open(folder / "n.hrry")


def test_the_save_that_came_last_is_the_one_that_is_loaded(folder):
    hurray.save(folder / "m.hrry", {"new": np.arange(3)})
    assert list(hurray.load(folder / "m.hrry")) == ["new"]
    for call in (hurray.open, hurray.load, hurray.load_kv):
        with pytest.raises(hurray.FileError, match="m.hrry.index.json and a m.hrry that it does not name.*open one of them"):
            call(folder)
    assert len(hurray.load(folder / "m.hrry.index.json")) == 12  # neither was destroyed
    hurray.save(folder / "m.hrry", ARRAYS, max_shard_size="1GB", sync=False)
    assert sorted(os.listdir(folder)) == ["m-00001-of-00001.hrry", "m.hrry.index.json"]
    assert hurray.load(folder).keys() == hurray.load(folder / "m.hrry").keys() == ARRAYS.keys()


@pytest.mark.parametrize("text", ["[1]", "5", "null", "{", "", '{"weight_map": 5}', '{"weight_map": {"a": 5, "b": "../x"}}', '"\\ud800"'])
def test_an_index_that_was_none_is_replaced(folder, text):
    (folder / "m.hrry.index.json").write_text(text)
    hurray.save(folder / "m.hrry", ARRAYS, max_shard_size="1GB", sync=False)
    assert hurray.load(folder).keys() == ARRAYS.keys()


def test_in_the_background(folder):
    arrays = {f"a{i}": np.full(1000, i) for i in range(9)}
    done = hurray.save_async(folder / "m.hrry", arrays, kv={"epoch": 4}, max_shard_size="20kB")
    with pytest.raises(hurray.UnsupportedError):
        hurray.save_async(folder / "m.hrry", {"a": object()}, max_shard_size=5)
    with pytest.raises(ValueError, match="max_shard_size"):
        hurray.save_async(folder / "m.hrry", arrays, max_shard_size="much")
    done.result()
    assert sorted(os.listdir(folder)) == [f"m-0000{k}-of-00005.hrry" for k in range(1, 6)] + ["m.hrry.index.json"]
    with hurray.open(folder) as f:
        f.verify()
        assert f.kv == {"epoch": 4} and f.names == tuple(arrays)
        for name, array in arrays.items():
            assert np.array_equal(f[name].to_numpy(), array)


def test_what_the_disk_refuses_at_the_end_changes_nothing(folder):
    before = {n: (folder / n).read_bytes() for n in os.listdir(folder)}
    processes.run(f'''
        import resource, signal
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        arrays = {{"a": np.zeros(100), "b": np.zeros(100)}}
        hurray.save({str(folder / "limit.hrry")!r}, arrays, max_shard_size=800, kv={{"x": "y" * 40_000}}, sync=False)
        size = os.path.getsize({str(folder / "limit-00002-of-00002.hrry")!r})
        resource.setrlimit(resource.RLIMIT_FSIZE, (size - 100, size))
        try:
            hurray.save({str(folder / "m.hrry")!r}, arrays, max_shard_size=800, kv={{"x": "y" * 40_000}}, sync=False)
        except hurray.FileError as error:
            assert "too large" in str(error), error
        else:
            raise AssertionError("saved")
    ''')
    after = {n: (folder / n).read_bytes() for n in os.listdir(folder) if not n.startswith("limit")}
    assert after == before


def test_a_save_that_fails_changes_nothing(folder):
    before = {n: (folder / n).read_bytes() for n in os.listdir(folder)}
    for tensors, error in (({**ARRAYS, "bad": object()}, hurray.UnsupportedError), ({**ARRAYS, "": np.zeros(1)}, hurray.FileError),
                           ({**ARRAYS, "head": head(1), "head.0": np.zeros(1)}, hurray.FileError)):  # fmt: skip
        with pytest.raises(error):
            hurray.save(folder / "m.hrry", tensors, max_shard_size=20_000)
    after = {n: (folder / n).read_bytes() for n in os.listdir(folder)}
    assert after == before


def test_onto_the_files_that_it_comes_from(folder):
    tensors = hurray.load(folder)
    hurray.save(folder / "m.hrry", tensors, max_shard_size=15_000)
    assert index(folder)["weight_map"]["layer.9.w"] == "m-00010-of-00010.hrry"
    for name, array in ARRAYS.items():
        assert np.array_equal(tensors[name].to_numpy(), array) and np.array_equal(hurray.load(folder)[name].to_numpy(), array)


def test_missing_shards_are_all_named(folder):
    (folder / "m-00002-of-00004.hrry").unlink()
    (folder / "m-00004-of-00004.hrry").unlink()
    for use in (hurray.open, hurray.load, hurray.load_kv):
        with pytest.raises(hurray.FileError, match=r"incomplete download\? 2 of 4 shards missing: m-00002-of-00004.hrry, m-00004-of-00004.hrry"):
            use(folder)


def test_a_shard_of_another_save(folder, tmp_path_factory):
    other = tmp_path_factory.mktemp("other")
    hurray.save(other / "m.hrry", {**ARRAYS, "layer.0.w": np.zeros((50, 49), np.float32), "head": head(5)}, max_shard_size=35_000)
    shutil.copy(other / "m-00001-of-00004.hrry", folder)
    with pytest.raises(hurray.FileError, match="00001-of-00004.*saved or replaced apart from the others"):
        hurray.open(folder)


def test_shards_of_two_saves_of_one_model(tmp_path):
    def save(value):
        arrays = {f"a{i}": np.full(1000, value) for i in range(3)}
        hurray.save(tmp_path / "m.hrry", arrays, max_shard_size=8000, sync=False)

    save(1)
    first = tmp_path / "m-00002-of-00003.hrry"
    old = first.read_bytes()
    save(2)
    first.write_bytes(old)
    for path in ("m.hrry", "", "m.hrry.index.json"):
        with pytest.raises(hurray.FileError, match="m-00002-of-00003.hrry: kv_crc32c: expected.*saved or replaced apart from the others"):
            hurray.open(tmp_path / path)
    save(1)
    assert first.read_bytes() == old and len(hurray.open(tmp_path)) == 3


def test_readers_beside_a_writer_see_one_save(tmp_path):
    def arrays(value):
        return {f"a{i}": np.full(500, value) for i in range(6)}

    stop = threading.Event()

    def write():
        for value in range(2, 10_000):
            hurray.save(tmp_path / "m.hrry", arrays(value), max_shard_size=4000, sync=False)
            if stop.wait(0.02):
                return

    hurray.save(tmp_path / "m.hrry", arrays(1), max_shard_size=4000)
    writer = threading.Thread(target=write)
    writer.start()
    seen = set()
    try:
        for _ in range(5000):
            if len(seen) > 3:
                break
            try:
                loaded = hurray.load(tmp_path / "m.hrry", mode="memory")
            except hurray.FileError as error:
                assert "crc32c" in str(error)
                continue
            values = {int(v) for t in loaded.values() for v in np.unique(t.to_numpy())}
            assert len(values) == 1
            seen |= values
    finally:
        stop.set()
        writer.join()
    assert len(seen) > 3


def test_targets_that_shards_cannot_have(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    os.mkdir("ck")
    os.mkdir("k.hrry.index.json")
    hurray.save("k.hrry", {"old": np.arange(2)})
    for path, error in {"ck": IsADirectoryError, "ck/": IsADirectoryError, "": FileNotFoundError, "k.hrry": IsADirectoryError,
                        "/dev/null": hurray.FileError, os.fsdecode(b"\xff.hrry"): hurray.FileError}.items():  # fmt: skip
        with pytest.raises(error) as refused:
            hurray.save(path, {"a": np.zeros(9), "b": np.ones(3)}, max_shard_size=10)
        assert isinstance(refused.value, hurray.FileError)
    assert sorted(os.listdir()) == ["ck", "k.hrry", "k.hrry.index.json"] and os.listdir("ck") == []
    assert list(hurray.load("k.hrry")) == ["old"]


def test_more_shards_than_files_may_be_open(tmp_path):
    processes.run('''
        import resource
        resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        arrays = {f"a{i}": np.zeros(10) for i in range(100)}
        try:
            hurray.save(sys.argv[1], arrays, max_shard_size=80, sync=False)
        except hurray.FileError as error:
            assert "ulimit -n" in str(error), error
        else:
            raise AssertionError("saved")
    ''', tmp_path / "m.hrry")  # fmt: skip
    assert os.listdir(tmp_path) == []


def test_spoiled_shards(folder):
    path = folder / "m-00003-of-00004.hrry"
    data = bytearray(path.read_bytes())
    with hurray.open(path) as f:
        name = f.names[0]
    at = data.index(ARRAYS[name].tobytes())
    data[at] ^= 1
    path.write_bytes(data)
    with hurray.open(folder) as f:
        f.verify(["layer.0.w"])
        for names in (None, [name]):
            with pytest.raises(hurray.FileError, match=f'00003-of-00004.*"{name}"'):
                f.verify(names)
    path.write_bytes(data[:-3])
    with pytest.raises(hurray.FileError, match="00003-of-00004"):
        hurray.open(folder)


def edited(folder, change):
    content = index(folder)
    change(content)
    (folder / "m.hrry.index.json").write_text(json.dumps(content))


@pytest.mark.parametrize("change, words", [
    (lambda c: c["weight_map"].update({"ghost": "m-00001-of-00004.hrry", "g2": "m-00002-of-00004.hrry"}),
     '2 of 14 tensors missing: "ghost" in m-00001-of-00004.hrry, "g2" in m-00002'),
    (lambda c: c["weight_map"].update({"one": "m-00001-of-00004.hrry"}), '1 of 12 tensors missing: "one"'),
    (lambda c: c["weight_map"].update({"one": "../m-00001-of-00004.hrry"}), "bare name of a file"),
    (lambda c: c["weight_map"].update({"one": "/etc/passwd"}), "bare name"),
    (lambda c: c["weight_map"].update({"one": ".."}), "bare name"),
    (lambda c: c["weight_map"].update({"one": "a\0b"}), "bare name"),
    (lambda c: c["weight_map"].update({"one": 5}), "bare name"),
    (lambda c: c["weight_map"].update({"one": "C:x"}), "bare name"),
    (lambda c: c.pop("weight_map"), "expected an index of tensors"),
    (lambda c: c.update(weight_map=[1]), "expected an index of tensors"),
    (lambda c: c["metadata"]["index_crc32c"].update({"m-00001-of-00004.hrry": 5}), "saved or replaced apart"),
    (lambda c: c["metadata"]["index_crc32c"].update({"m-00001-of-00004.hrry": -5}), "32-bit number"),
    (lambda c: c["metadata"]["index_crc32c"].update({"m-00001-of-00004.hrry": "5"}), "32-bit number"),
    (lambda c: c["metadata"]["index_crc32c"].update({"../x": 5}), "bare name"),
    (lambda c: c["weight_map"].update({"\ud800": "m-00001-of-00004.hrry"}), "UTF-8|surrogate"),
])  # fmt: skip
def test_wrong_indexes(folder, change, words):
    edited(folder, change)
    with pytest.raises(hurray.FileError, match=words):
        hurray.open(folder)


def test_foreign_indexes_need_no_more_than_the_map(folder):
    edited(folder, lambda c: c.pop("metadata"))
    assert len(hurray.open(folder)) == 12
    edited(folder, lambda c: c["weight_map"].pop("layer.3.w"))  # what the index does not name is not there
    with hurray.open(folder) as f:
        assert len(f) == 11 and "layer.3.w" not in f and f.get("layer.3.w") is None
        assert "head.0" in f and "layer.3.w" not in hurray.load(folder)


def test_a_name_in_two_shards(folder):
    hurray.save(folder / "m-00004-of-00004.hrry", {"one": np.arange(3), "head": head(1), "layer.0.w": np.zeros(1)})
    edited(folder, lambda c: c.pop("metadata"))
    with pytest.raises(hurray.FileError, match='"(one|layer.0.w)".*it is in m-0000[14]-of-00004.hrry and in m-0000[14]'):
        hurray.open(folder)


@pytest.mark.parametrize("text", ["{", '{"weight_map": {"a": "x", "a": "y"}}', "{}", '{"weight_map": {}}', "[" * 100_000, "{" * 100_000, '{"weight_map": NaN}', '{"a": "\\ud800"'])
def test_json_that_is_no_index(tmp_path, text):
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(hurray.FileError):
        hurray.open(tmp_path / "x.json")
    (tmp_path / "x.json").write_bytes(b"\xef\xbb\xbf{" + text.encode() + b"\xff")
    with pytest.raises(hurray.FileError):
        hurray.open(tmp_path / "x.json")


def test_limits_of_an_index(folder):
    with pytest.raises(hurray.FileError, match="max_index_bytes=100"):
        hurray.open(folder, max_index_bytes=100)


def test_kv_that_differ(folder):
    with hurray.open(folder / "m-00001-of-00004.hrry") as f:
        tensors = dict(f.items())
    hurray.save(folder / "m-00001-of-00004.hrry", tensors, kv={"epoch": 4})
    edited(folder, lambda c: c.pop("metadata"))
    with hurray.open(folder) as f:
        with pytest.raises(hurray.FileError, match='say different things.*"epoch"'):
            f.kv
        assert len(f) == 12


def test_folders(tmp_path):
    with pytest.raises(IsADirectoryError, match="holds no .hrry file"):
        hurray.open(tmp_path)
    hurray.save(tmp_path / "a.hrry", {"a": np.arange(2)})
    (tmp_path / "config.json").write_text("{}")
    with hurray.open(tmp_path) as f:
        assert f.path == str(tmp_path / "a.hrry") and f.names == ("a",)
    hurray.save(tmp_path / "b.hrry", {"b": np.arange(2)})
    with pytest.raises(hurray.FileError, match="2 candidates, open one of them: a.hrry, b.hrry"):
        hurray.open(tmp_path)
    hurray.save(tmp_path / "c.hrry", {"c": np.arange(2)}, max_shard_size=1)
    assert hurray.open(tmp_path).names == ("c",)  # its one index
    hurray.save(tmp_path / "d.hrry", {"d": np.arange(2)}, max_shard_size=1)
    with pytest.raises(hurray.FileError, match="2 candidates.*c.hrry.index.json, d.hrry.index.json"):
        hurray.open(tmp_path)
