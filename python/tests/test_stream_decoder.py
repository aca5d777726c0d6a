"""hurray.StreamDecoder (09-models-and-frameworks.md section 7)."""

import asyncio
import http.server
import pathlib
import threading
import urllib.request

import hypothesis
import numpy as np
import pytest
import test_conformance
from hypothesis import strategies as st

import hurray
from hurray import StreamDecoder, StreamError

GOLDEN = pathlib.Path(__file__).resolve().parents[3] / "shared" / "vectors"


def shown(item):
    if isinstance(item, hurray.Composite):
        return item.layout, [shown(member) for member in item.members]
    return (item.dtype.name, item.shape, item.layout,
            [bytes(item.buffer(i)) for i in range(len(item.buffer_handles))])


def outcome_of(items):
    got = []
    try:
        for item in items():
            got.append(shown(item))
    except Exception as error:  # noqa: BLE001
        return got, type(error), str(error)
    return got, None, None


def read(data, **limits):
    return outcome_of(lambda: hurray.StreamReader(data, **limits))


def decoded(data, sizes, **limits):
    def items():
        decoder, at = StreamDecoder(**limits), 0
        for size in sizes:
            yield from decoder.feed(data[at:at + size])
            at += size
            if at >= len(data):
                break
        yield from decoder.feed(data[at:])
        decoder.finish()
    return outcome_of(items)


def stream(*items):
    writer = hurray.StreamWriter()
    for item in items:
        writer.write(item)
    return writer.getvalue()


@pytest.fixture(scope="module")
def sample():
    matrix = hurray.from_numpy(np.arange(24, dtype=np.float32).reshape(4, 6))
    group = hurray.Composite("group", shape=[], dtype=hurray.float32,
                             members=[hurray.arange(3), matrix, hurray.zeros((0, 4))])
    return stream(matrix, hurray.from_numpy(np.arange(9) % 2 == 0), group, hurray.arange(5))


@pytest.mark.parametrize("size", [1, 2, 5, 10, 64, 1000, 1 << 20])
def test_pieces_of_every_size(sample, size):
    whole = read(sample)
    assert len(whole[0]) == 4 and whole[1] is None
    assert decoded(sample, iter(lambda: size, None)) == whole


@hypothesis.given(st.lists(st.integers(0, 300), max_size=40), st.data())
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], deadline=None)
def test_any_cut_and_any_end(sample, sizes, data):
    cut = sample[:data.draw(st.integers(0, len(sample)))]
    assert decoded(cut, sizes) == read(cut)


@hypothesis.given(st.data())
@hypothesis.settings(suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture], deadline=None)
def test_damage_is_said_as_the_reader_says_it(sample, data):
    broken = bytearray(sample)
    broken[data.draw(st.integers(0, len(sample) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    sizes = data.draw(st.lists(st.integers(1, 500), max_size=20))
    limits = {"max_buffer_bytes": 1 << 20}
    assert decoded(bytes(broken), sizes, **limits) == read(bytes(broken), **limits)


@pytest.mark.skipif(not GOLDEN.is_dir(), reason="the golden files are not here")
def test_golden_bytes_one_by_one():
    for path in sorted(GOLDEN.glob("*.bin")):
        data = path.read_bytes()
        assert decoded(data, iter(lambda: 1, None)) == read(data), path.name


@pytest.mark.parametrize("entry", [e for e in test_conformance.MANIFEST["vectors"] if e["kind"] == "stream"],
                         ids=lambda entry: entry["name"])  # fmt: skip
def test_every_conformance_stream_at_every_cut(entry):
    if not test_conformance.agreed_only(entry):
        pytest.skip("options of the decoder that the module does not have")
    data, _ = test_conformance.read(entry)
    whole = read(data)
    cuts = range(len(data) + 1) if len(data) <= 600 else sorted({*range(0, 200), *range(len(data) - 200, len(data) + 1)})
    for cut in cuts:
        assert decoded(data, [cut]) == whole, cut
    assert decoded(data, [7] * (len(data) // 7)) == whole


def test_depth_and_machines():
    one = hurray.asarray(np.zeros(2, np.float32))
    nested = one
    for _ in range(5):
        nested = hurray.Composite("group", shape=[2], dtype=hurray.float32, members=[nested])
    data = stream(nested)
    for limit in (1, 4, 5, 64):
        assert decoded(data, [3, 50], max_composite_depth=limit) == read(data, max_composite_depth=limit)
    assert decoded(data, [9], max_composite_depth=4)[1] is not None and decoded(data, [9], max_composite_depth=5)[1] is None
    with pytest.raises(ValueError):
        StreamDecoder(max_composite_depth=65)
    cuda = hurray.Tensor(bytes(64), hurray.uint8, [64], device=hurray.Device("cuda"))
    for cross_machine in (True, False):
        assert decoded(stream(cuda), [40], cross_machine=cross_machine) == read(stream(cuda), cross_machine=cross_machine)


def test_limits_are_those_of_the_reader(sample):
    for limits in ({"max_descriptor_bytes": 50}, {"max_buffer_bytes": 50}, {"max_tensor_bytes": 50},
                   {"max_item_members": 2}, {"expected_items": 9}):
        want = read(sample, **limits)
        assert want[1] is StreamError and decoded(sample, [7, 7, 7], **limits) == want
    with pytest.raises(ValueError, match="max_composite_depth: expected 1 to 64"):
        StreamDecoder(max_composite_depth=65)
    with pytest.raises(TypeError):
        StreamDecoder(5)


def test_a_failure_waits_for_the_items_before_it_and_stays():
    decoder = StreamDecoder()
    (item,) = decoder.feed(stream(hurray.arange(3)) + b"GET / HTTP/1.1")
    assert item.size == 3
    for _ in range(2):
        with pytest.raises(StreamError, match="no tensor begins so"):
            decoder.feed(b"more")
        with pytest.raises(StreamError, match="no tensor begins so"):
            decoder.finish()


def test_finish_says_what_is_missing_and_ends():
    data = stream(hurray.arange(3))
    decoder = StreamDecoder()
    assert decoder.feed(data[:-1]) == []
    with pytest.raises(StreamError, match="expected 24 bytes, found 23"):
        decoder.finish()
    decoder = StreamDecoder()
    assert len(decoder.feed(data)) == 1
    decoder.finish()
    decoder.finish()
    with pytest.raises(StreamError, match="the decoder is finished"):
        decoder.feed(b"x")


def test_what_is_fed():
    data = stream(hurray.arange(3))
    for kind in (bytes, bytearray, memoryview, lambda b: np.frombuffer(b, np.uint8)):
        assert len(StreamDecoder().feed(kind(data))) == 1
    decoder = StreamDecoder()
    source = bytearray(data)
    (item,) = decoder.feed(source)
    source[:] = bytes(len(source))
    assert item.to_numpy().tolist() == [0, 1, 2] and not item.readonly
    for wrong in ("text", 5, None, memoryview(data)[::2]):
        with pytest.raises(TypeError):
            decoder.feed(wrong)
    assert decoder.feed(b"") == []


def test_threads_take_turns(sample):
    decoder, done, failures = StreamDecoder(), [], []

    def work():
        try:
            for _ in range(20):
                done.extend(decoder.feed(sample))
        except Exception as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    decoder.finish()
    assert not failures and len(done) == 4 * 20 * 4


@pytest.mark.filterwarnings("ignore:nanobind")
def test_half_made_objects_are_refused():
    for use in (lambda d: d.feed(b""), lambda d: d.finish()):
        with pytest.raises(TypeError):
            use(StreamDecoder.__new__(StreamDecoder))


def test_asyncio(sample):
    async def serve(reader, writer):
        for i in range(0, len(sample), 100):
            writer.write(sample[i:i + 100])
            await writer.drain()
        writer.close()

    async def main():
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        decoder, items = StreamDecoder(), []
        while data := await reader.read(333):
            items += decoder.feed(data)
        decoder.finish()
        writer.close()
        server.close()
        return items

    assert [shown(item) for item in asyncio.run(main())] == read(sample)[0]


def test_an_http_body(sample):
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            for i in range(0, len(sample), 500):
                piece = sample[i:i + 500]
                self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        decoder, items = StreamDecoder(), []
        with urllib.request.urlopen(f"http://127.0.0.1:{server.server_port}/") as body:
            while data := body.read(777):
                items += decoder.feed(data)
        decoder.finish()
        server.shutdown()
    assert [shown(item) for item in items] == read(sample)[0]
