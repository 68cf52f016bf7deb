#!/bin/sh
# Usage: run.sh FLAGS-OF-CTR-RUN... IMAGE ID [COMMAND...]
#
# Runs a container whose log symfilter writes, with names: containerd starts symfilter for it, and passes it the container's output. Members
# of the URI are flags of symfilter container-log, in any order; a switch has the value true.
exec ctr run --rm \
  --log-uri 'binary:///usr/bin/symfilter?container-log=&--path=/var/log/containers/{id}.log&--no-paths=true&--max-memory=256M' \
  "$@"
