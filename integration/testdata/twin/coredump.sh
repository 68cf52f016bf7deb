#!/bin/sh
# Usage: unshare -m coredump.sh FOLDER FEEDER PID COMM EXE CORE
#
# Runs a journal of its own, feeds a core to systemd-coredump, and writes what coredumpctl and journalctl print about it to
# files in FOLDER: info, short and export.
set -e
folder=$1
shift
mkdir -p /run/log "$folder"/etc
for hidden in /run/systemd /run/log /var/lib/systemd; do
  mount -t tmpfs none $hidden
done
mkdir /run/systemd/journal /run/log/journal /var/lib/systemd/coredump
printf '[Journal]\nStorage=volatile\nReadKMsg=no\nAudit=no\nForwardToSyslog=no\n' >"$folder"/etc/journald.conf
mount --bind "$folder"/etc /etc/systemd
/lib/systemd/systemd-journald >"$folder"/journald 2>&1 &
journald=$!
trap 'kill $journald' EXIT
while ! [ -S /run/systemd/journal/socket ] && kill -0 $journald; do :; done
"$@"
journalctl --sync
coredumpctl --no-pager info >"$folder"/info
for format in short export; do
  journalctl --no-pager -o $format SYSLOG_IDENTIFIER=systemd-coredump >"$folder"/$format
done
