package dashboard

import (
	"context"
	"strings"

	"github.com/refreshd/refreshd/internal/operate"
	"github.com/refreshd/refreshd/model"
)

var auditPage = page{path: "audit", title: "Audit", nav: true, file: "audit", read: readAudit, live: []string{"audit-list"}}

// audit is what people and programs did.
type audit struct {
	operate.DeedsRequest

	Deeds []model.Deed
	First bool
	Next  string // where the next page begins; "": there is none
}

func readAudit(ctx context.Context, req *request) (any, error) {
	a := &audit{First: req.get("before") == "", DeedsRequest: operate.DeedsRequest{
		By: strings.TrimSpace(req.get("by")), About: strings.TrimSpace(req.get("about")), Since: req.get("since"), Before: req.get("before"), Limit: maxRows,
	}}
	var err error
	a.Deeds, a.Next, err = operate.Deeds(ctx, req.operator, a.DeedsRequest)
	return a, err
}
