// Package client is for applications: it saves, runs, holds and reads models, and reports the results. The Redis user application of `refreshd acl`
// suffices.
//
//	shop, err := client.Open(ctx, "redis://127.0.0.1:6379", "feeds", client.Config{By: "shop"})
//	if err != nil {
//		return err
//	}
//	defer func() { _ = shop.Close() }()
//	_, err = shop.Put(ctx, client.Definition{UID: "tbl_1", Payload: map[string]any{"input_url": url}, Rule: "every day at 6 AM"})
//
// A command is pushed to the control list, which a poller reads, and the call waits for its reply. All commands about one model that come
// one after the other are carried out in that order. A command that was refused is a RefusedError; without a reply it is ErrNoReply.
package client
