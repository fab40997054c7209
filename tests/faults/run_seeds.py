"""`make faults SEEDS=200`: run that many seeds, print what was survived, and end with 1 if anything was violated.

Every fiftieth seed, and the first, is one of the full stack.
"""

import argparse
import shutil
import sys
import tempfile
import traceback
from collections import Counter
from pathlib import Path

import psycopg
from fault_library import NEEDLE
from fault_seed import Bench, Report, Seed
from fault_stack import StackSeed
from throwaway_server import prepare_server

from stemma.store import embedded

STACK_EVERY = 50


def main() -> int:
    """Run, print, and say whether all was well."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--seeds", type=int, default=200)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--no-stack", action="store_true", help="the quick tier alone")
    given = options.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="stemma-faults-"))
    bench = Bench.open(folder, NEEDLE)
    url = embedded.start_embedded(folder / "server")
    reports: list[Report] = []
    try:
        prepare_server(url)
        for seed in range(given.first, given.first + given.seeds):
            stack = not given.no_stack and (seed - given.first) % STACK_EVERY == 0
            reports.append(_one(seed, folder, url, bench, stack=stack))
    finally:
        bench.nursery.close()
        embedded.stop_embedded(folder / "server", mode="immediate")
    bad = [report for report in reports if report.violations]
    _print_total(reports)
    if bad:
        print(f"what is left of the violated seeds lies in {folder}")
    else:
        shutil.rmtree(folder, ignore_errors=True)
    return int(bool(bad))


def _one(seed: int, folder: Path, url: str, bench: Bench, *, stack: bool) -> Report:
    names = [f"seed_{seed}", f"seed_{seed}_reference"]
    urls = [url.replace("/stemma?", f"/{name}?") for name in names]
    with psycopg.connect(url, autocommit=True) as connection:
        for name in names:
            connection.execute(f'CREATE DATABASE "{name}" TEMPLATE template_stemma')
    place = folder / f"seed-{seed}"
    place.mkdir()
    try:
        work = StackSeed(seed, place, urls[1], bench) if stack else Seed(seed, place, *urls, bench)
        report = work.run()
    except Exception:
        report = Report(seed, violations=[f"the harness failed: {traceback.format_exc()}"])
    if not report.violations:
        shutil.rmtree(place, ignore_errors=True)
        with psycopg.connect(url, autocommit=True) as connection:
            for name in names:
                connection.execute(f'DROP DATABASE "{name}" WITH (FORCE)')
    print(
        f"seed {seed}{' (stack)' if stack else ''}: {report.n_operations} operations, {report.n_kills} kills, {report.n_reads} reads, "
        f"{report.n_documents} documents, {len(report.violations)} violations, {report.seconds:.1f} s",
        flush=True,
    )
    for line in (*report.violations[:20], *report.story) if report.violations else ():
        print(f"    {line}", flush=True)
    return report


def _print_total(reports: list[Report]) -> None:
    fired = sum((report.fired for report in reports), Counter[str]())
    print(", ".join(f"{name} {times}" for name, times in fired.most_common()))
    print(
        f"{len(reports)} seeds: kills survived {sum(r.n_kills for r in reports)}, operations applied {sum(r.n_operations for r in reports)}, "
        f"reads checked {sum(r.n_reads for r in reports)}, violations {sum(len(r.violations) for r in reports)}"
    )


if __name__ == "__main__":
    sys.exit(main())
