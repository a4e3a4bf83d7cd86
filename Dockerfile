FROM golang:1.26 AS build
WORKDIR /src
COPY go.mod go.sum ./
RUN go mod download
COPY . .
# What the program is called by refreshd version: --build-arg VERSION=v1.2.3. Without it the commit of the checkout says so.
ARG VERSION=
# Without git data (an archive, a linked work tree) the build has no commit.
RUN git rev-parse HEAD || export GOFLAGS=-buildvcs=false; \
    CGO_ENABLED=0 go build -trimpath -ldflags="-s -w -X main.release=$VERSION" -o /out/refreshd ./cmd/refreshd
RUN mkdir /out/data

# Time zones and the authorities of TLS are in the binary.
FROM scratch
COPY --from=build /out/refreshd /refreshd
# A new volume takes its owner from here, so that the worker may write to it.
COPY --from=build --chown=65532:65532 /out/data /data
USER 65532:65532
# Each daemon serves its health inside its container only, unless this is set to something else. What is unhealthy here a restart may
# help; while only Redis fails, it does not.
ENV REFRESHD_HEALTH=127.0.0.1:8080
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["/refreshd", "health", "/livez"]
ENTRYPOINT ["/refreshd"]
