# Images with one static program each, no shell, no libraries, and no root:
#
#   make build
#   docker build -t symfilter .
#   docker run --rm -i --network=none --read-only --cap-drop=ALL -v /usr/lib/debug:/usr/lib/debug:ro symfilter <app.log
#
#   docker build -t symfilterd --target symfilterd .
#   docker run --read-only --cap-drop=ALL -v ./symfilter.yaml:/etc/symfilter.yaml:ro -v /var/log/app:/var/log/app:ro symfilterd
#
# The images have no base image, whose bytes others could change: `make build` makes the programs beforehand.
FROM scratch AS symfilterd
COPY symfilterd /symfilterd
# By number: there is no /etc/passwd to look a name up in.
USER 65532:65532
ENTRYPOINT ["/symfilterd"]
CMD ["--config", "/etc/symfilter.yaml"]

FROM scratch
COPY symfilter /symfilter
# By number: there is no /etc/passwd to look a name up in.
USER 65532:65532
ENTRYPOINT ["/symfilter"]
