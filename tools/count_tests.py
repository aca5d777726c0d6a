"""Adds up JUnit reports and ends with one line: "N passed, N failed, N skipped"."""

import argparse
import pathlib
import sys
import xml.etree.ElementTree as ElementTree


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--failed-stages", type=int, default=0)
    parser.add_argument("reports", nargs="*", type=pathlib.Path)
    options = parser.parse_args()

    if not any(report.exists() for report in options.reports) and not options.failed_stages:
        return 0  # stages without tests

    passed = skipped = 0
    failed = 0
    for report in options.reports:
        if not report.exists():
            continue
        tests = failures = skips = 0
        reasons: dict[str, int] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            tests += 1
            skip = case.find("skipped")
            if case.find("failure") is not None or case.find("error") is not None:
                failures += 1
            elif skip is not None or case.get("status") in ("disabled", "notrun"):
                skips += 1
                reason = (skip.get("message") if skip is not None else None) or "not run"
                reasons[reason] = reasons.get(reason, 0) + 1
        print(f"{report.stem}: {tests - failures - skips} passed, {failures} failed, {skips} skipped")
        for reason, count in sorted(reasons.items()):
            print(f"  skipped {count}: {reason}")
        passed += tests - failures - skips
        failed += failures
        skipped += skips

    failed = max(failed, options.failed_stages)  # a stage may fail outside its tests
    print(f"{passed} passed, {failed} failed, {skipped} skipped")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
