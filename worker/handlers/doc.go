// Package handlers holds ready handlers for a pool of package worker: Exec runs a program, HTTP calls a web service, Fetch
// downloads into a directory.
//
//	handler, err := handlers.HTTP("http://127.0.0.1:8080/refresh", handlers.HTTPOptions{})
//	if err != nil {
//		return err
//	}
//	pool, err := worker.Open(ctx, "redis://127.0.0.1:6379", "feeds", handler, worker.Config{})
package handlers
