package dashboard

import (
	"context"
	"fmt"
)

func cancelBulk(ctx context.Context, req *request) (outcome, error) {
	id := req.get("id")
	cancelled, err := req.queue.Fleet().CancelBulk(ctx, id)
	if err == nil && !cancelled {
		err = fmt.Errorf("%s: expected a bulk that is not over, found none of that name", id)
	}
	return outcome{text: "The bulk " + id + " is cancelled; what it has done stays done."}, err
}
