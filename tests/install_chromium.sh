#!/bin/sh
# Browser tests drive Debian's Chromium; install it where it is missing, and say so.
set -e
command -v chromium >/dev/null 2>&1 && exit 0
echo "make test: Chromium is missing; installing the Debian package 'chromium' (browser tests need it)"
as_root=""; [ "$(id -u)" = 0 ] || as_root="sudo"
$as_root apt-get update -qq
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq chromium >/dev/null
