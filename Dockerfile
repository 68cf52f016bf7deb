# Images with one static program each, no shell, no libraries, and no root:
#
#   docker build -t symfilter .
#   docker run --rm -i --network=none --read-only --cap-drop=ALL -v /usr/lib/debug:/usr/lib/debug:ro symfilter <app.log
#
#   docker build -t symfilterd --target symfilterd .
#   docker run --read-only --cap-drop=ALL -v ./symfilter.yaml:/etc/symfilter.yaml:ro -v /var/log/app:/var/log/app:ro symfilterd
#
# The tag of the base image is its exact version. To pin its bytes, too, append the digest that
# `docker buildx imagetools inspect golang:1.26.8-bookworm` shows: golang:1.26.8-bookworm@sha256:…
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN scripts/build-static /symfilter
RUN scripts/build-static /symfilterd symfilterd

FROM scratch AS symfilterd
COPY --from=build /symfilterd /symfilterd
# By number: there is no /etc/passwd to look a name up in.
USER 65532:65532
ENTRYPOINT ["/symfilterd"]
CMD ["--config", "/etc/symfilter.yaml"]

FROM scratch
COPY --from=build /symfilter /symfilter
# By number: there is no /etc/passwd to look a name up in.
USER 65532:65532
ENTRYPOINT ["/symfilter"]
