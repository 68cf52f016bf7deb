# An image with one static program, no shell, no libraries, and no root:
#
#   docker build -t symfilter .
#   docker run --rm -i --network=none --read-only --cap-drop=ALL -v /usr/lib/debug:/usr/lib/debug:ro symfilter <app.log
#
# The tag of the base image is its exact version. To pin its bytes, too, append the digest that
# `docker buildx imagetools inspect golang:1.26.8-bookworm` shows: golang:1.26.8-bookworm@sha256:…
FROM golang:1.26.8-bookworm AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN scripts/build-static /symfilter

FROM scratch
COPY --from=build /symfilter /symfilter
# By number: there is no /etc/passwd to look a name up in.
USER 65532:65532
ENTRYPOINT ["/symfilter"]
