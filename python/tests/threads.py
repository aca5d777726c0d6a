"""Work that several threads do at once."""

import threading

THREADS = 6


def together(work, threads=THREADS):
    """Runs `work(i)` on that many threads, which start at once; the results, or the first exception."""
    barrier, results, errors = threading.Barrier(threads), [None] * threads, []

    def body(i):
        barrier.wait()
        try:
            results[i] = work(i)
        except BaseException as error:  # noqa: BLE001 # raised below, in the thread of the test
            errors.append(error)

    workers = [threading.Thread(target=body, args=(i,)) for i in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    if errors:
        raise errors[0]
    return results
