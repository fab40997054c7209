"""Log lines of processes whose standard logging belongs to Dagster."""

import contextlib
import io
import json

import structlog

from stemma.logs import write_json_lines


def test_a_line_goes_to_standard_error_as_it_is_when_the_line_is_written():
    before = structlog.get_config()
    try:
        with contextlib.redirect_stderr(io.StringIO()) as first:
            write_json_lines()
            structlog.get_logger().info("document failed", code="corrupt")
        with contextlib.redirect_stderr(io.StringIO()) as second:
            first.close()
            structlog.get_logger().info("document failed", code="encrypted")
            assert json.loads(second.getvalue())["code"] == "encrypted"
    finally:
        structlog.configure(**before)
