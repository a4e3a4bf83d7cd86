// Package conformance plays the server against somebody's worker: real dispatchers and pollers, and between the worker and Redis a proxy
// that counts what the worker asks and cuts its connections. docs/worker.md tells what the worker under test has to do.
package conformance
